// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/classic/heap_regions.h"

#include <gtest/gtest.h>

#include <map>

#include "fakes/fake_metadata.h"

namespace tcmalloc {
namespace {

class HeapRegionsTest : public ::testing::Test {
 protected:
  [[nodiscard]] bool Add(uintptr_t first, uintptr_t length) {
    return regions_.Add(PageId(first), Length(length));
  }

  // First page to length.
  std::map<uintptr_t, uintptr_t> Contents() const {
    std::map<uintptr_t, uintptr_t> contents;
    for (const auto* region = regions_.first(); region != nullptr; region = region->next) {
      contents[region->first.index()] = region->length.pages();
    }
    return contents;
  }

  testing::FakeMetadata metadata_;
  MetadataArena arena_{testing::FakeMetadata::Source};
  HeapRegions regions_{arena_};
};

using Runs = std::map<uintptr_t, uintptr_t>;

TEST_F(HeapRegionsTest, ApartStaysApart) {
  ASSERT_TRUE(Add(100, 10));
  ASSERT_TRUE(Add(120, 5));
  EXPECT_EQ(Contents(), (Runs{{100, 10}, {120, 5}}));
  EXPECT_EQ(regions_.total(), Length(15));
}

TEST_F(HeapRegionsTest, GrowsAtBothEnds) {
  ASSERT_TRUE(Add(100, 10));
  ASSERT_TRUE(Add(110, 5));
  ASSERT_TRUE(Add(90, 10));
  EXPECT_EQ(Contents(), (Runs{{90, 25}}));
}

TEST_F(HeapRegionsTest, ClosingAGapLeavesOneRegion) {
  ASSERT_TRUE(Add(100, 10));
  ASSERT_TRUE(Add(300, 1));
  ASSERT_TRUE(Add(120, 10));
  ASSERT_TRUE(Add(110, 10));
  EXPECT_EQ(Contents(), (Runs{{100, 30}, {300, 1}}));
  EXPECT_EQ(regions_.total(), Length(31));
}

TEST_F(HeapRegionsTest, WithoutMemoryNothingChanges) {
  metadata_.exhausted = true;
  EXPECT_FALSE(Add(100, 10));
  EXPECT_EQ(regions_.first(), nullptr);
  EXPECT_EQ(regions_.total(), Length(0));
}

TEST_F(HeapRegionsTest, RecordsAreRecycled) {
  ASSERT_TRUE(Add(100, 10));
  const size_t used = arena_.stats().used_bytes;
  for (uintptr_t page = 200; page < 2000; page += 20) {
    ASSERT_TRUE(Add(page + 10, 10));
    ASSERT_TRUE(Add(page, 10));
  }
  EXPECT_EQ(Contents(), (Runs{{100, 10}, {200, 1800}}));
  // At most three records were alive at once, though ninety were made.
  EXPECT_LE(arena_.stats().used_bytes, used + 2 * sizeof(HeapRegions::Region));
}

}  // namespace
}  // namespace tcmalloc
