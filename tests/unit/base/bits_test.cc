// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "base/bits.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

namespace tcmalloc {
namespace {

TEST(BitsTest, PowersOfTwo) {
  EXPECT_FALSE(IsPowerOfTwo(0));
  for (int i = 0; i < 64; ++i) {
    const uint64_t power = uint64_t{1} << i;
    EXPECT_TRUE(IsPowerOfTwo(power));
    if (i >= 2) {
      EXPECT_FALSE(IsPowerOfTwo(power - 1));
      EXPECT_FALSE(IsPowerOfTwo(power + 1));
    }
  }
}

TEST(BitsTest, Logarithms) {
  EXPECT_EQ(Log2Ceil(1), 0);
  for (int i = 1; i < 64; ++i) {
    const uint64_t power = uint64_t{1} << i;
    EXPECT_EQ(Log2Floor(power), i);
    EXPECT_EQ(Log2Floor(power - 1), i - 1);
    EXPECT_EQ(Log2Ceil(power), i);
    EXPECT_EQ(Log2Ceil(power - 1), i == 1 ? 0 : i);
    if (i < 63) {
      EXPECT_EQ(Log2Ceil(power + 1), i + 1);
    }
  }
  EXPECT_EQ(Log2Floor(UINT64_MAX), 63);
  EXPECT_EQ(Log2Ceil(UINT64_MAX), 64);
}

TEST(BitsTest, Alignment) {
  EXPECT_EQ(AlignUp(0, 16), 0u);
  EXPECT_EQ(AlignUp(1, 16), 16u);
  EXPECT_EQ(AlignUp(16, 16), 16u);
  EXPECT_EQ(AlignDown(15, 16), 0u);
  EXPECT_EQ(AlignDown(31, 16), 16u);
  std::mt19937_64 random(1);
  for (int i = 0; i < 10'000; ++i) {
    const uintptr_t n = random() >> (2 + random() % 60);
    const size_t alignment = size_t{1} << (random() % 62);
    const uintptr_t down = AlignDown(n, alignment);
    const uintptr_t up = AlignUp(n, alignment);
    ASSERT_TRUE(IsAligned(down, alignment));
    ASSERT_TRUE(IsAligned(up, alignment));
    ASSERT_LE(down, n);
    ASSERT_LT(n - down, alignment);
    ASSERT_EQ(up - down, IsAligned(n, alignment) ? 0 : alignment);
  }
}

TEST(BitsTest, CheckedAlignUpStopsAtTheEnd) {
  size_t result = 7;
  EXPECT_TRUE(CheckedAlignUp(SIZE_MAX - 4095, 4096, &result));
  EXPECT_EQ(result, SIZE_MAX - 4095);
  EXPECT_TRUE(CheckedAlignUp(0, size_t{1} << 63, &result));
  EXPECT_EQ(result, 0u);
  EXPECT_TRUE(CheckedAlignUp(SIZE_MAX, 1, &result));
  EXPECT_EQ(result, SIZE_MAX);
  result = 7;
  EXPECT_FALSE(CheckedAlignUp(SIZE_MAX - 4094, 4096, &result));
  EXPECT_FALSE(CheckedAlignUp(SIZE_MAX, 2, &result));
  EXPECT_EQ(result, 7u);
}

TEST(BitsTest, CheckedMultiplyStopsAtTheEnd) {
  size_t result = 0;
  EXPECT_TRUE(CheckedMultiply(SIZE_MAX, 1, &result));
  EXPECT_EQ(result, SIZE_MAX);
  EXPECT_TRUE(CheckedMultiply(0, SIZE_MAX, &result));
  EXPECT_EQ(result, 0u);
  EXPECT_TRUE(CheckedMultiply(size_t{1} << 31, size_t{1} << 32, &result));
  EXPECT_EQ(result, size_t{1} << 63);
  EXPECT_FALSE(CheckedMultiply(size_t{1} << 32, size_t{1} << 32, &result));
  EXPECT_FALSE(CheckedMultiply(SIZE_MAX / 2 + 1, 2, &result));
}

}  // namespace
}  // namespace tcmalloc
