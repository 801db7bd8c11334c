// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "upkeep/growth_steps.h"

#include <gtest/gtest.h>

namespace tcmalloc::testing {
namespace {

constexpr Length kLarge = Length::FromBytesCeil(size_t{1} << 30);
constexpr Length kOne(1);

TEST(GrowthStepsTest, TheFirstStepsAreShort) {
  GrowthSteps steps;
  EXPECT_FALSE(steps.IsDue(Length(0)));
  EXPECT_FALSE(steps.IsDue(GrowthSteps::kLeastStep));
  EXPECT_TRUE(steps.IsDue(GrowthSteps::kLeastStep + kOne));
  EXPECT_TRUE(steps.Take(GrowthSteps::kLeastStep + kOne));
  EXPECT_FALSE(steps.Take(GrowthSteps::kLeastStep + kOne)) << "another thread may have taken it";
  EXPECT_FALSE(steps.IsDue(GrowthSteps::kLeastStep + GrowthSteps::kLeastStep + kOne));
  EXPECT_TRUE(steps.IsDue(GrowthSteps::kLeastStep + GrowthSteps::kLeastStep + kOne + kOne));
}

TEST(GrowthStepsTest, AreAShareOfALargeHeap) {
  GrowthSteps steps;
  ASSERT_TRUE(steps.Take(kLarge));
  const Length step(kLarge.pages() / GrowthSteps::kStepShare);
  EXPECT_FALSE(steps.IsDue(kLarge + step));
  EXPECT_TRUE(steps.IsDue(kLarge + step + kOne));
}

TEST(GrowthStepsTest, NoneWhileTheHeapIsSmallerThanItWas) {
  GrowthSteps steps;
  ASSERT_TRUE(steps.Take(kLarge));
  EXPECT_FALSE(steps.IsDue(kOne));
  EXPECT_FALSE(steps.IsDue(kLarge));
}

}  // namespace
}  // namespace tcmalloc::testing
