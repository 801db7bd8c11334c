// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hardened/guard_budget.h"

#include <gtest/gtest.h>

namespace tcmalloc::testing {
namespace {

constexpr int64_t kStart = 1'000'000'000;

TEST(GuardBudgetTest, GrantsFirstRequests) {
  GuardBudget budget;
  EXPECT_TRUE(budget.Take(GuardBudget::kFirst, kStart));
  EXPECT_FALSE(budget.Take(1, kStart));
}

TEST(GuardBudgetTest, RefusesWhatCostsMoreThanEverCanBeSaved) {
  GuardBudget budget;
  EXPECT_FALSE(budget.Take(GuardBudget::kMost + 1, kStart));
  EXPECT_FALSE(budget.Take(GuardBudget::kMost + 1, kStart * 1000));
  EXPECT_TRUE(budget.Take(GuardBudget::kMost, kStart * 1000));
}

TEST(GuardBudgetTest, SpendsNoMoreThanItsShareOfTime) {
  GuardBudget budget;
  constexpr int64_t kStep = 10'000;
  constexpr int64_t kSteps = 100'000;
  constexpr int64_t kCost = GuardBudget::CostOf(4, 64);
  int64_t spent = 0;
  for (int64_t i = 0; i < kSteps; ++i) {
    if (budget.Take(kCost, kStart + i * kStep)) spent += kCost;
  }
  EXPECT_LE(spent, GuardBudget::kFirst + kSteps * kStep / GuardBudget::kShare);
  EXPECT_GE(spent, kSteps * kStep / GuardBudget::kShare - kCost);
}

TEST(GuardBudgetTest, ClockThatGoesBackGivesNothing) {
  GuardBudget budget;
  EXPECT_TRUE(budget.Take(GuardBudget::kFirst, kStart));
  EXPECT_FALSE(budget.Take(1, kStart - 1'000'000));
  EXPECT_FALSE(budget.Take(1, 0));
}

}  // namespace
}  // namespace tcmalloc::testing
