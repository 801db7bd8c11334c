// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hardened/canary.h"

#include <gtest/gtest.h>

namespace tcmalloc {
namespace {

constexpr size_t kBytes = 1152;

class CanaryTest : public ::testing::Test {
 protected:
  const Canary canary_{0x1234'5678'9abc'0000};
  alignas(16) char block_[kBytes] = {};
};

TEST_F(CanaryTest, NoByteIsZero) {
  for (const char& place : block_) EXPECT_NE(canary_.ByteAt(&place), 0);
}

TEST_F(CanaryTest, EachByteNearTheEndIsSeen) {
  for (const size_t capacity : {16, 112, 128, 1152}) {
    for (size_t size = capacity - std::min<size_t>(capacity, 70); size < capacity; ++size) {
      canary_.Write(block_, size, capacity);
      ASSERT_EQ(canary_.Check(block_, size, capacity), nullptr);
      for (size_t i = size; i < std::min(size + Canary::kMostBytes, capacity); ++i) {
        block_[i] ^= 1;
        ASSERT_EQ(canary_.Check(block_, size, capacity), block_ + i);
        block_[i] ^= 1;
      }
      block_[capacity - 1] = 0;
      ASSERT_EQ(canary_.Check(block_, size, capacity), block_ + capacity - 1);
    }
  }
}

TEST_F(CanaryTest, WritesToAFilledBlockAreSeen) {
  for (const bool zeroes : {false, true}) {
    FillFreed(block_, 100, 112, zeroes);
    ASSERT_EQ(FindWrittenFreed(block_, 100, 112, zeroes), nullptr);
    for (size_t i = 0; i < 111; ++i) {
      block_[i] ^= 1;
      ASSERT_EQ(FindWrittenFreed(block_, 100, 112, zeroes), block_ + i);
      block_[i] ^= 1;
    }
  }
}

TEST_F(CanaryTest, BothEndsOfALargeBlockAreSeen) {
  FillFreed(block_, 1030, kBytes, false);
  ASSERT_EQ(FindWrittenFreed(block_, 1030, kBytes, false), nullptr);
  block_[0] = 0;
  EXPECT_EQ(FindWrittenFreed(block_, 1030, kBytes, false), block_);
  FillFreed(block_, 1030, kBytes, false);
  block_[1029] = 0;
  EXPECT_EQ(FindWrittenFreed(block_, 1030, kBytes, false), block_ + 1029);
}

}  // namespace
}  // namespace tcmalloc
