// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "central/object_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tcmalloc::testing {
namespace {

constexpr uint64_t kEndWord = 0;

class LinkRunTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  LinkRunTest() { codec_.Initialize(0x9d2c5680, uintptr_t{1} << 47, &kEndWord); }

  LinkCodec codec_;
};

TEST_P(LinkRunTest, LinksObjectsInAddressOrder) {
  const uint32_t size = GetParam();
  for (uint32_t count : {1U, 2U, 3U, 64U}) {
    std::vector<uint64_t> memory(count * size / 8);
    auto* start = reinterpret_cast<char*>(memory.data());
    const Chain chain = LinkRun({start, count, size}, codec_);
    ASSERT_EQ(chain.count, count);
    ObjectReference reference = chain.head;
    for (uint32_t i = 0; i < count; ++i) {
      ASSERT_EQ(ObjectAt(reference), start + i * size);
      reference = codec_.Next(ObjectAt(reference));
    }
    EXPECT_EQ(reference, codec_.end);
  }
}

TEST_P(LinkRunTest, WritesTheFirstWordOnly) {
  const uint32_t words = GetParam() / 8;
  constexpr uint32_t kCount = 10;
  std::vector<uint64_t> memory((kCount + 1) * words, 42);
  LinkRun({reinterpret_cast<char*>(memory.data()), kCount, GetParam()}, codec_);
  for (uint32_t i = 0; i < memory.size(); ++i) {
    if (i % words == 0 && i / words < kCount) continue;
    ASSERT_EQ(memory[i], 42u) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, LinkRunTest, ::testing::Values(8, 16, 48, 112, 4096));

}  // namespace
}  // namespace tcmalloc::testing
