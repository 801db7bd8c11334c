// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hardened/canary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

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

TEST_F(CanaryTest, EachByteOfAShortCanaryIsSeen) {
  for (const size_t capacity : {16, 32, 48, 512}) {
    for (size_t slack = 1; slack <= Canary::kShortSlack; ++slack) {
      block_[capacity] = 'n';
      const size_t size = capacity - slack;
      canary_.WriteFreshShort(block_, size, capacity);
      ASSERT_EQ(canary_.Check(block_, size, capacity), nullptr);
      ASSERT_TRUE(canary_.IsIntactShort(block_ + capacity - 16, slack));
      ASSERT_EQ(block_[capacity], 'n');
      for (size_t i = 0; i < capacity; ++i) {
        const auto byte = static_cast<unsigned char>(block_[i]);
        ASSERT_TRUE(i >= std::min(size, kFreshBytes) || byte == kFreshFill);
        block_[i] ^= 1;
        ASSERT_EQ(canary_.IsIntactShort(block_ + capacity - 16, slack), i < size);
        block_[i] ^= 1;
      }
    }
  }
}

TEST_F(CanaryTest, EachByteOfABlockIsFilledAndSeenButForTheCanary) {
  constexpr unsigned char kNeighbour = 'n';
  char* block = block_ + 16;
  for (size_t bytes = 16; bytes <= kMostFilled; bytes += 16) {
    std::memset(block_, kNeighbour, kBytes);
    block[bytes - 1] = static_cast<char>(canary_.ByteAt(block + bytes - 1));
    const Filling filling = FillingFor(block, bytes, false);
    FillWhole(block, bytes, filling);
    ASSERT_TRUE(IsFilledWhole(block, bytes, filling));
    ASSERT_TRUE(canary_.IsIntactBefore(block + bytes));
    ASSERT_EQ(block[-1], kNeighbour);
    ASSERT_EQ(block[bytes], kNeighbour);
    for (size_t i = 0; i < bytes; ++i) {
      ASSERT_TRUE(i == bytes - 1 || static_cast<unsigned char>(block[i]) == kFreedFill);
      block[i] ^= 1;
      ASSERT_FALSE(IsFilledWhole(block, bytes, filling)) << i << " of " << bytes;
      block[i] ^= 1;
    }
  }
}

// The fast paths see what the others do.
TEST_F(CanaryTest, PairsCoverABlock) {
  char* block = block_ + 16;
  for (size_t bytes = 16; bytes <= kMostFilled; bytes += 16) {
    std::memset(block_, 'n', kBytes);
    block[bytes - 1] = static_cast<char>(canary_.ByteAt(block + bytes - 1));
    const Filling filling = FillingFor(block, bytes, false);
    const BlockPairs pairs(bytes, filling);
    const bool is_long = bytes > kMostInFour;
    const auto is_filled = [&] {
      return is_long ? ArePairsFilled<true>(block, pairs, filling)
                     : ArePairsFilled<false>(block, pairs, filling);
    };
    is_long ? FillPairs<true>(block, pairs, filling) : FillPairs<false>(block, pairs, filling);
    ASSERT_TRUE(IsFilledWhole(block, bytes, filling));
    ASSERT_TRUE(is_filled());
    ASSERT_EQ(block[-1], 'n');
    ASSERT_EQ(block[bytes], 'n');
    for (size_t i = 0; i < bytes; ++i) {
      block[i] ^= 1;
      ASSERT_FALSE(is_filled()) << i << " of " << bytes;
      block[i] ^= 1;
    }
    BeginFresh(block, pairs);
    canary_.WriteFreshEnd(pairs.LastOf(block), bytes - 1);
    for (size_t i = 0; i < kFreshBytes; ++i) {
      ASSERT_TRUE(i == bytes - 1 || static_cast<unsigned char>(block[i]) == kFreshFill);
    }
    ASSERT_EQ(canary_.Check(block, bytes - 1, bytes), nullptr);
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

TEST_F(CanaryTest, ZeroesLeaveNothingBehindTheSize) {
  for (const size_t bytes : {size_t{112}, kMostFilled, kBytes}) {
    std::memset(block_, 'x', kBytes);
    FillFreed(block_, bytes * 5 / 8, bytes, /*zeroes=*/true);
    EXPECT_EQ(FindWrittenByte(block_, block_ + bytes - 1, 0), block_ + bytes - 1);
    EXPECT_EQ(block_[bytes - 1], 'x');
  }
}

}  // namespace
}  // namespace tcmalloc
