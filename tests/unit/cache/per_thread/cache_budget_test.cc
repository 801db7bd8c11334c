// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/per_thread/cache_budget.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

namespace tcmalloc::testing {
namespace {

constexpr int64_t kFirst = CacheBudget::kFirstShare;
constexpr int64_t kStep = CacheBudget::kStep;

class CacheBudgetTest : public ::testing::Test {
 protected:
  ~CacheBudgetTest() override { budget_.CheckInvariants(); }

  // Room for the first shares of `shares` caches and for `steps` of growth.
  void SetTotal(int64_t shares, int64_t steps) {
    budget_.SetTotal(static_cast<size_t>(shares * kFirst + steps * kStep));
  }
  // As if another cache asked at the same time. The analysis knows one thread alone.
  bool GrowBesideAnother(BudgetShare& share) TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
    budget_.lock().Lock();
    const bool grown = budget_.Grow(share);
    budget_.lock().Unlock();
    return grown;
  }
  int64_t SumOfShares() const {
    int64_t sum = 0;
    for (const BudgetShare& share : shares_) {
      if (share.linked()) sum += share.limit();
    }
    return sum;
  }

  CacheBudget budget_;
  std::array<BudgetShare, 20> shares_;
};

TEST_F(CacheBudgetTest, AShareStartsSmall) {
  SetTotal(2, 0);
  budget_.Join(shares_[0]);
  EXPECT_EQ(shares_[0].limit(), kFirst);
  EXPECT_EQ(budget_.total(), static_cast<size_t>(2 * kFirst));
}

TEST_F(CacheBudgetTest, AShareGrowsByWhatIsUnclaimed) {
  SetTotal(1, 3);
  budget_.Join(shares_[0]);
  for (int step = 1; step <= 3; ++step) {
    EXPECT_TRUE(budget_.Grow(shares_[0]));
    EXPECT_EQ(shares_[0].limit(), kFirst + step * kStep);
  }
  EXPECT_FALSE(budget_.Grow(shares_[0]));
  EXPECT_EQ(shares_[0].limit(), kFirst + 3 * kStep);
}

TEST_F(CacheBudgetTest, AShareGrowsByTheft) {
  SetTotal(3, 4);
  for (int i = 0; i < 3; ++i) budget_.Join(shares_[static_cast<size_t>(i)]);
  while (shares_[0].limit() < kFirst + 4 * kStep) ASSERT_TRUE(budget_.Grow(shares_[0]));
  for (int step = 1; step <= 4; ++step) {
    ASSERT_TRUE(budget_.Grow(shares_[1]));
    EXPECT_EQ(shares_[1].limit(), kFirst + step * kStep);
    EXPECT_EQ(shares_[0].limit(), kFirst + (4 - step) * kStep);
    budget_.CheckInvariants();
  }
  EXPECT_EQ(shares_[2].limit(), kFirst);
}

TEST_F(CacheBudgetTest, WhatOthersTakeIsCounted) {
  constexpr int64_t kManySteps = CacheBudget::kManyBytesCut / kStep;
  SetTotal(2, 2 * kManySteps);
  budget_.Join(shares_[0]);
  budget_.Join(shares_[1]);
  for (int64_t step = 0; step < 2 * kManySteps; ++step) ASSERT_TRUE(budget_.Grow(shares_[0]));
  EXPECT_FALSE(budget_.HasManyCuts()) << "unclaimed bytes were nobody's";
  for (int64_t step = 1; step <= kManySteps; ++step) {
    EXPECT_FALSE(budget_.HasManyCuts());
    ASSERT_TRUE(budget_.Grow(shares_[1]));
  }
  EXPECT_TRUE(budget_.HasManyCuts());
  budget_.ForgetCuts();
  EXPECT_FALSE(budget_.HasManyCuts());
  budget_.SetTotal(static_cast<size_t>(2 * kFirst));
  EXPECT_TRUE(budget_.HasManyCuts()) << "a lower total cuts shares";
}

TEST_F(CacheBudgetTest, TheftLeavesTheFirstShare) {
  SetTotal(3, 0);
  for (int i = 0; i < 3; ++i) budget_.Join(shares_[static_cast<size_t>(i)]);
  EXPECT_FALSE(budget_.Grow(shares_[1]));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(shares_[static_cast<size_t>(i)].limit(), kFirst);
}

// A thread that has fallen idle keeps what it holds, so that a thief would hold as much besides.
TEST_F(CacheBudgetTest, TheftWaitsForACacheToComeDown) {
  SetTotal(2, 40);
  BudgetShare& idle = shares_[0];
  BudgetShare& thief = shares_[1];
  budget_.Join(idle);
  budget_.Join(thief);
  for (int step = 0; step < 40; ++step) ASSERT_TRUE(budget_.Grow(idle));
  idle.full_bytes = idle.limit();
  while (budget_.Grow(thief)) {
  }
  EXPECT_GT(idle.full_bytes, idle.limit() + CacheBudget::kMostBeyondShare);
  EXPECT_LE(idle.full_bytes, idle.limit() + CacheBudget::kMostBeyondShare + kStep);
  idle.full_bytes = idle.limit();
  EXPECT_TRUE(budget_.Grow(thief));
}

TEST_F(CacheBudgetTest, MoreCachesThanTheTotalHasSharesFor) {
  SetTotal(1, 0);
  for (BudgetShare& share : shares_) budget_.Join(share);
  budget_.CheckInvariants();
  for (BudgetShare& share : shares_) {
    EXPECT_EQ(share.limit(), kFirst);
    EXPECT_FALSE(budget_.Grow(share));
  }
}

TEST_F(CacheBudgetTest, SharesReturn) {
  SetTotal(2, 2);
  budget_.Join(shares_[0]);
  budget_.Join(shares_[1]);
  ASSERT_TRUE(budget_.Grow(shares_[0]));
  ASSERT_TRUE(budget_.Grow(shares_[0]));
  ASSERT_EQ(shares_[0].limit(), kFirst + 2 * kStep);
  budget_.Leave(shares_[0]);
  budget_.CheckInvariants();
  int64_t grown = 0;
  while (budget_.Grow(shares_[1])) grown += kStep;
  EXPECT_GE(grown, kFirst + 2 * kStep);
  EXPECT_LT(grown, kFirst + 3 * kStep);
}

TEST_F(CacheBudgetTest, TheTotalMayChange) {
  SetTotal(2, 0);
  budget_.Join(shares_[0]);
  budget_.Join(shares_[1]);
  EXPECT_FALSE(budget_.Grow(shares_[0]));
  SetTotal(2, 1);
  EXPECT_TRUE(budget_.Grow(shares_[0]));
  EXPECT_FALSE(budget_.Grow(shares_[0]));
  SetTotal(1, 0);
  budget_.CheckInvariants();
}

// A share that leaves may be the one that is robbed next.
TEST_F(CacheBudgetTest, RandomComingAndGoing) {
  SetTotal(10, 10);
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    BudgetShare& share = shares_[random() % shares_.size()];
    if (!share.linked()) {
      budget_.Join(share);
    } else if (random() % 8 == 0) {
      budget_.Leave(share);
    } else {
      const int64_t before = share.limit();
      const bool grown = budget_.Grow(share);
      ASSERT_EQ(share.limit(), before + (grown ? kStep : 0));
    }
    budget_.CheckInvariants();
  }
  for (BudgetShare& share : shares_) {
    if (share.linked()) budget_.Leave(share);
  }
}

TEST_F(CacheBudgetTest, GrowthStaysWithinTheTotal) {
  SetTotal(20, 35);
  for (BudgetShare& share : shares_) budget_.Join(share);
  std::mt19937_64 random(1);
  for (int i = 0; i < 10'000; ++i) {
    budget_.Grow(shares_[random() % shares_.size()]);
    // One step may be begun while less than one is unclaimed.
    ASSERT_LT(SumOfShares(), static_cast<int64_t>(budget_.total()) + kStep);
  }
}

TEST_F(CacheBudgetTest, ACacheThatMeetsAnotherOnePausesItsThefts) {
  SetTotal(2, 2);
  budget_.Join(shares_[0]);
  budget_.Join(shares_[1]);
  while (shares_[0].limit() < kFirst + 2 * kStep) ASSERT_TRUE(budget_.Grow(shares_[0]));
  EXPECT_FALSE(GrowBesideAnother(shares_[1])) << "does not wait";
  int refused = 0;
  while (!budget_.Grow(shares_[1])) ++refused;
  EXPECT_GT(refused, 0);
  EXPECT_LE(refused, 100) << "the pause ends";
  EXPECT_TRUE(budget_.Grow(shares_[1])) << "there is no other pause";
}

TEST_F(CacheBudgetTest, APauseDoesNotKeepACacheFromUnclaimedBytes) {
  SetTotal(2, 1);
  budget_.Join(shares_[0]);
  budget_.Join(shares_[1]);
  ASSERT_TRUE(budget_.Grow(shares_[0]));
  EXPECT_FALSE(GrowBesideAnother(shares_[1]));
  SetTotal(2, 2);
  EXPECT_TRUE(budget_.Grow(shares_[1]));
}

TEST_F(CacheBudgetTest, KeepOnlyReclaimsAllOtherShares) {
  SetTotal(3, 2);
  for (size_t i = 0; i < 3; ++i) budget_.Join(shares_[i]);
  EXPECT_TRUE(budget_.Grow(shares_[0]));
  EXPECT_TRUE(budget_.Grow(shares_[1]));
  budget_.KeepOnly(&shares_[1]);
  budget_.CheckInvariants();
  EXPECT_EQ(shares_[1].limit(), kFirst + kStep);
  // The shares of the others are unclaimed now, and they are not robbed.
  const int64_t left = 2 * kFirst + kStep;
  for (int64_t got = 0; got < left; got += kStep) EXPECT_TRUE(budget_.Grow(shares_[1]));
  EXPECT_FALSE(budget_.Grow(shares_[1]));
  budget_.Leave(shares_[1]);
}

TEST_F(CacheBudgetTest, AShareThatIsSetAsideIsNotRobbed) {
  SetTotal(64, 0);
  budget_.Join(shares_[0]);
  budget_.Join(shares_[1]);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(budget_.Grow(shares_[0]));
  ASSERT_TRUE(budget_.SetAside(shares_[0], 2 * kFirst));
  budget_.CheckInvariants();
  EXPECT_EQ(shares_[0].limit(), 2 * kFirst) << "it gives back what it does not need";
  while (budget_.Grow(shares_[1])) {
  }
  EXPECT_EQ(shares_[0].limit(), 2 * kFirst);
  EXPECT_EQ(shares_[1].limit(), 62 * kFirst);
  budget_.TakeUp(shares_[0]);
  budget_.CheckInvariants();
  EXPECT_TRUE(budget_.Grow(shares_[1]));
  budget_.Leave(shares_[0]);
  budget_.Leave(shares_[1]);
}

TEST_F(CacheBudgetTest, OnlyAPartMayBeSetAside) {
  SetTotal(32, 0);
  for (size_t i = 0; i < 3; ++i) budget_.Join(shares_[i]);
  EXPECT_FALSE(budget_.SetAside(shares_[0], 2 * kFirst)) << "it has no right to so much";
  EXPECT_TRUE(budget_.SetAside(shares_[0], 0));
  EXPECT_TRUE(budget_.SetAside(shares_[1], kFirst));
  EXPECT_FALSE(budget_.SetAside(shares_[2], 0));
  EXPECT_FALSE(budget_.SetAside(shares_[3], 0)) << "it has not joined";
  budget_.KeepOnly(&shares_[2]);
  budget_.CheckInvariants();
  EXPECT_TRUE(budget_.SetAside(shares_[2], 0));
  budget_.TakeUp(shares_[2]);
  budget_.Leave(shares_[2]);
}

TEST_F(CacheBudgetTest, LongListsHoldAQuarterOfTheTotal) {
  SetTotal(2, 8);
  const auto most = static_cast<int64_t>(budget_.total() / 4);
  budget_.NoteLongLists(shares_[0], most / 2);
  EXPECT_TRUE(budget_.HasRoomForLongLists(most / 2));
  EXPECT_FALSE(budget_.HasRoomForLongLists(most / 2 + 1));
  budget_.NoteLongLists(shares_[1], most / 2);
  EXPECT_FALSE(budget_.HasRoomForLongLists(1));
  budget_.NoteLongLists(shares_[0], -most / 2);
  EXPECT_TRUE(budget_.HasRoomForLongLists(most / 2));
}

TEST_F(CacheBudgetTest, TheLongListsOfThreadsThatAreGoneAreForgotten) {
  SetTotal(2, 8);
  const auto most = static_cast<int64_t>(budget_.total() / 4);
  for (BudgetShare* share : {&shares_[0], &shares_[1]}) {
    budget_.Join(*share);
    budget_.NoteLongLists(*share, most / 2);
  }
  budget_.KeepOnly(&shares_[0]);
  EXPECT_TRUE(budget_.HasRoomForLongLists(most / 2));
  EXPECT_FALSE(budget_.HasRoomForLongLists(most / 2 + 1));
  budget_.KeepOnly(nullptr);
  EXPECT_TRUE(budget_.HasRoomForLongLists(most));
}

TEST_F(CacheBudgetTest, KeepOnlyMayKeepNone) {
  SetTotal(2, 0);
  budget_.Join(shares_[0]);
  budget_.KeepOnly(&shares_[1]);  // which has not joined
  budget_.CheckInvariants();
  EXPECT_FALSE(shares_[1].linked());
  budget_.Join(shares_[1]);
  budget_.KeepOnly(nullptr);
  budget_.CheckInvariants();
}

TEST_F(CacheBudgetTest, Threads) {
  SetTotal(4, 20);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 4; ++i) {
    threads.emplace_back([this, i] {
      for (int round = 0; round < 200; ++round) {
        budget_.Join(shares_[i]);
        for (int step = 0; step < 50; ++step) {
          budget_.Grow(shares_[i]);
          ASSERT_GE(shares_[i].limit(), kFirst);
        }
        budget_.CheckInvariants();
        budget_.Leave(shares_[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tcmalloc::testing
