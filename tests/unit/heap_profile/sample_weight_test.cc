// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/sample_weight.h"

#include <gtest/gtest.h>

#include <cmath>

#include "heap_profile/whole_blocks.h"

namespace tcmalloc {
namespace {

TEST(SampleWeightTest, ProbabilityIsThatOfTheMathLibrary) {
  for (double x = 1e-9; x < 1000; x *= 1.1) {
    const double expected = -std::expm1(-x);
    ASSERT_NEAR(ProbabilityOfPoint(x) / expected, 1, 1e-11) << x;
  }
}

TEST(SampleWeightTest, SmallBlocksStandForAPeriodAndLargeOnesForThemselves) {
  EXPECT_NEAR(SampleWeight(100, 512 << 10) * 100, 512 << 10, 100);
  EXPECT_NEAR(SampleWeight(1 << 30, 512 << 10), 1, 1e-12);
}

TEST(WholeBlocksTest, TheSumIsRight) {
  WholeBlocks blocks;
  int64_t sum = 0;
  for (int i = 0; i < 1000; ++i) sum += blocks.Round(1.582);
  EXPECT_EQ(sum, 1582);
}

}  // namespace
}  // namespace tcmalloc
