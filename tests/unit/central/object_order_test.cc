// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "central/object_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace tcmalloc::testing {
namespace {

TEST(ObjectStartsTest, KnowsWhereObjectsBegin) {
  for (size_t c = 1; c < kSizeClassCount; ++c) {
    const auto size_class = static_cast<uint8_t>(c);
    const SizeClassInfo& info = kSizeClasses[c];
    const ObjectStarts starts(size_class);
    const size_t span_bytes = size_t{info.pages} << kPageShift;
    for (size_t offset = 0; offset < span_bytes; offset += 8) {
      ASSERT_EQ(starts.IsAt(offset), IsObjectStart(offset, size_class)) << info.size;
    }
    EXPECT_FALSE(starts.IsAt(span_bytes));
    EXPECT_FALSE(starts.IsAt(SIZE_MAX));
  }
}

class ObjectOrderTest : public ::testing::Test {
 protected:
  static constexpr size_t kSize = 16;
  static constexpr size_t kObjects = 300;

  ObjectOrderTest() { codec_.Initialize(12345, uintptr_t{1} << 40, &end_word_); }

  std::vector<size_t> Walk(ObjectReference head) {
    std::vector<size_t> indexes;
    for (; head != codec_.end; head = codec_.Next(ObjectAt(head))) {
      indexes.push_back(static_cast<size_t>(static_cast<char*>(ObjectAt(head)) - memory_) / kSize);
    }
    return indexes;
  }

  alignas(64) char memory_[kSize * kObjects] = {};
  alignas(8) uint64_t end_word_ = 0;
  LinkCodec codec_;
  ObjectOrder order_{kObjects};
};

TEST_F(ObjectOrderTest, LinksByAddressWhatWasAddedInAnyOrder) {
  std::vector<size_t> indexes(kObjects);
  for (size_t i = 0; i < kObjects; ++i) indexes[i] = i;
  std::shuffle(indexes.begin(), indexes.end(), std::mt19937(1));
  indexes.resize(kObjects / 2);
  for (const size_t index : indexes) EXPECT_TRUE(order_.Add(index));
  std::sort(indexes.begin(), indexes.end());
  EXPECT_EQ(Walk(order_.LinkAll(memory_, kSize, codec_.end, codec_)), indexes);
}

TEST_F(ObjectOrderTest, TheLastOneLinksToTheRest) {
  ObjectOrder rest{kObjects};
  rest.Add(3);
  order_.Add(299);
  order_.Add(64);
  const ObjectReference head = rest.LinkAll(memory_, kSize, codec_.end, codec_);
  EXPECT_EQ(Walk(order_.LinkAll(memory_, kSize, head, codec_)), (std::vector<size_t>{64, 299, 3}));
}

TEST_F(ObjectOrderTest, CopiesTheLowestAddressLast) {
  for (const size_t index : {299, 64, 3, 63}) order_.Add(index);
  void* addresses[5] = {};
  EXPECT_EQ(order_.CopyAll(memory_, kSize, addresses + 5), addresses + 1);
  EXPECT_EQ(addresses[0], nullptr);
  for (size_t i = 0; i < 4; ++i) {
    const size_t index = std::vector<size_t>{299, 64, 63, 3}[i];
    EXPECT_EQ(addresses[i + 1], memory_ + index * kSize);
  }
}

TEST_F(ObjectOrderTest, NoticesWhatIsAddedTwice) {
  EXPECT_TRUE(order_.Add(63));
  EXPECT_FALSE(order_.Add(63));
}

TEST_F(ObjectOrderTest, NothingAddedIsTheRest) {
  EXPECT_EQ(order_.LinkAll(memory_, kSize, codec_.end, codec_), codec_.end);
}

}  // namespace
}  // namespace tcmalloc::testing
