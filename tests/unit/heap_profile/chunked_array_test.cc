// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/chunked_array.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "system/own_memory.h"

namespace tcmalloc {
namespace {

struct Element {
  uint64_t words[4];
};

// Elements of which the steps of a chunk are whole numbers, and room for the first pages.
constexpr size_t MostCounted(size_t used) { return used + used / 16 + (size_t{64} << 10); }

template <typename Array>
void ExpectToCountWhatIsUsed(uint32_t first_counted) {
  auto array = std::make_unique<Array>();
  const size_t before = own_bytes.get();
  uint32_t used = 0;
  for (const uint32_t wanted : {10U, 1000U, 1025U, 60'000U, 70'000U, 1'100'000U}) {
    for (; used < wanted; ++used) {
      ASSERT_TRUE(array->Ensure(used));
      (*array)[used].words[0] = used;
    }
    const size_t bytes = used > first_counted ? (used - first_counted) * sizeof(Element) : 0;
    EXPECT_GE(own_bytes.get() - before, bytes) << used;
    EXPECT_LE(own_bytes.get() - before, MostCounted(bytes)) << used;
  }
  const size_t counted = own_bytes.get();
  for (uint32_t i = 0; i < used; ++i) ASSERT_TRUE(array->Ensure(i));
  EXPECT_EQ(own_bytes.get(), counted) << "each element counts once";
}

TEST(ChunkedArrayTest, CountsWhatIsUsed) { ExpectToCountWhatIsUsed<ChunkedArray<Element, 16>>(0); }

TEST(ChunkedArrayTest, DoesNotCountTheChunkInside) {
  ExpectToCountWhatIsUsed<ChunkedArray<Element, 1024, FirstChunk::kInside>>(1024);
}

TEST(ChunkedArrayTest, SmallChunksCountAsTheyAreTaken) {
  auto small = std::make_unique<SmallChunks>();
  const size_t before = own_bytes.get();
  size_t taken = 0;
  for (int i = 0; i < 1000; ++i) {
    auto array = std::make_unique<ChunkedArray<Element, 16>>();
    for (const uint32_t index : {0U, 1U, 16U}) ASSERT_TRUE(array->EnsureFrom(*small, index));
    taken += 3 * 16 * sizeof(Element);
  }
  EXPECT_GE(own_bytes.get() - before, taken);
  EXPECT_LE(own_bytes.get() - before, MostCounted(taken));
}

}  // namespace
}  // namespace tcmalloc
