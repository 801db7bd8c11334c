// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// When a class counts as one that drains.

#include "cache/per_thread/drain_watch.h"

#include <gtest/gtest.h>

namespace tcmalloc::testing {
namespace {

constexpr uint32_t kBatch = 64;

class DrainWatchTest : public ::testing::Test {
 protected:
  // Overflows until a trial should begin.
  int OverflowsUntilTrial() {
    for (int n = 1;; ++n) {
      const bool is_next = watch_.IsTrialNext();
      const bool begins = watch_.NoteOverflow();
      EXPECT_EQ(is_next, begins);
      if (begins) return n;
    }
  }
  void Free(uint32_t n) {
    while (n-- > 0) watch_.NoteFree();
  }
  // A trial in which nothing is allocated.
  void FailTrial() {
    watch_.Begin();
    Free(DrainWatch::kTrialFrees);
    EXPECT_FALSE(watch_.Drains());
    watch_.End();
  }

  DrainWatch watch_;
};

TEST_F(DrainWatchTest, SomeOverflowsBringATrial) {
  EXPECT_FALSE(watch_.active());
  EXPECT_EQ(OverflowsUntilTrial(), DrainWatch::kFirstTrial);
  watch_.Begin();
  EXPECT_TRUE(watch_.active());
}

TEST_F(DrainWatchTest, AnEmptyListInBetweenMeansNone) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(watch_.NoteOverflow());
    EXPECT_FALSE(watch_.NoteOverflow());
    watch_.NoteRefill();
  }
}

TEST_F(DrainWatchTest, ATrialIsShort) {
  watch_.Begin();
  Free(1);
  EXPECT_EQ(watch_.ObjectsBeforeNextCheck(kBatch), DrainWatch::kTrialFrees);
  EXPECT_EQ(watch_.ObjectsBeforeNextCheck(4), 4u) << "no more than a batch";
  Free(DrainWatch::kTrialFrees);
  EXPECT_EQ(watch_.ObjectsBeforeNextCheck(kBatch), kBatch);
}

TEST_F(DrainWatchTest, FreesAloneMakeTrialsRarer) {
  int last = 0;
  for (int expected = DrainWatch::kFirstTrial; expected <= DrainWatch::kLastTrial; expected *= 2) {
    last = OverflowsUntilTrial();
    EXPECT_EQ(last, expected);
    FailTrial();
  }
  EXPECT_EQ(OverflowsUntilTrial(), last);
}

TEST_F(DrainWatchTest, GrowthMakesThemFrequentAgain) {
  for (int i = 0; i < 3; ++i) FailTrial();
  watch_.NoteRefill();
  EXPECT_GT(OverflowsUntilTrial(), DrainWatch::kFirstTrial);
  watch_.NoteGrowth();
  EXPECT_EQ(OverflowsUntilTrial(), DrainWatch::kFirstTrial);
}

TEST_F(DrainWatchTest, AClassDrainsByTheShareOfAllocations) {
  watch_.Begin();
  Free(kBatch);
  EXPECT_FALSE(watch_.Drains()) << "nothing is allocated";
  watch_.NoteAllocations(1);
  EXPECT_TRUE(watch_.Drains());
  watch_.NoteAllocations(kBatch / 2 - 1);
  EXPECT_TRUE(watch_.Drains());
  watch_.NoteAllocations(1);
  EXPECT_FALSE(watch_.Drains());
}

TEST_F(DrainWatchTest, AFewAllocationsAmongFreesAlone) {
  watch_.Begin();
  watch_.NoteAllocations(1);
  Free(10 * DrainWatch::kMostFreesPerAllocation);
  EXPECT_TRUE(watch_.Drains()) << "each keeps a span that would drain";
}

TEST_F(DrainWatchTest, FewAllocationsAmongTemporariesAreNothingToDrainFor) {
  constexpr uint32_t kTemporaries = 2 * DrainWatch::kManyTemporaries;
  EXPECT_EQ(OverflowsUntilTrial(), DrainWatch::kFirstTrial);
  watch_.Begin();
  watch_.NoteAllocations(1);
  Free(DrainWatch::kMostFreesPerAllocation);
  for (uint32_t i = 0; i <= kTemporaries; ++i) watch_.NoteTemporary();
  EXPECT_TRUE(watch_.Drains());
  Free(1);
  EXPECT_FALSE(watch_.Drains());
  watch_.End();
  EXPECT_EQ(OverflowsUntilTrial(), 2 * DrainWatch::kFirstTrial) << "as if there were none";
}

TEST_F(DrainWatchTest, TemporariesAreFreedSoon) {
  watch_.Begin();
  watch_.NoteAllocated();
  Free(DrainWatch::kSoon - 1);
  EXPECT_TRUE(watch_.IsSoon());
  Free(1);
  EXPECT_FALSE(watch_.IsSoon());
  Free(300);
  EXPECT_FALSE(watch_.IsSoon());
  watch_.NoteAllocated();
  EXPECT_TRUE(watch_.IsSoon());
}

TEST_F(DrainWatchTest, TemporariesOfLongAgoAreForgotten) {
  watch_.Begin();
  watch_.NoteAllocations(4);
  Free(4 * kBatch);
  for (uint32_t i = 0; i < 6 * DrainWatch::kManyTemporaries; ++i) watch_.NoteTemporary();
  for (int i = 0; i < 4; ++i) watch_.NoteBatch();
  watch_.NoteAllocations(1);
  Free(2 * DrainWatch::kMostFreesPerAllocation);
  EXPECT_TRUE(watch_.Drains());
}

TEST_F(DrainWatchTest, ATrialEndsWhereNearlyAllObjectsAreTemporary) {
  watch_.Begin();
  Free(3);
  for (uint32_t i = 0; i < DrainWatch::kTrialFrees + 3; ++i) {
    ASSERT_FALSE(watch_.NoteTemporary()) << i;
  }
  EXPECT_TRUE(watch_.NoteTemporary());
  watch_.End();
  watch_.Begin();
  EXPECT_FALSE(watch_.NoteTemporary());
}

TEST_F(DrainWatchTest, AllocationsMayComeFirst) {
  watch_.Begin();
  EXPECT_TRUE(watch_.MayDrain());
  watch_.NoteAllocations(DrainWatch::kSlack / 2);
  EXPECT_TRUE(watch_.MayDrain());
  watch_.NoteAllocations(1);
  EXPECT_FALSE(watch_.MayDrain());
  Free(2);
  EXPECT_TRUE(watch_.MayDrain());
}

TEST_F(DrainWatchTest, WhatWasLongAgoIsForgotten) {
  watch_.Begin();
  watch_.NoteAllocations(20);
  Free(kBatch);
  int batches = 0;
  for (; watch_.Drains(); ++batches) {
    watch_.NoteBatch();
    Free(kBatch);
  }
  EXPECT_GE(batches, 3);
  EXPECT_LE(batches, 5) << "nobody has allocated for a while";
}

// As many batches as left while the class drained may leave afterwards.
TEST_F(DrainWatchTest, ASettlingClassHasAsManyBatchesAsDrained) {
  watch_.Begin();
  EXPECT_FALSE(watch_.MayKeepDraining());
  constexpr int kBatches = 3;
  for (int i = 0; i < kBatches; ++i) {
    Free(kBatch);
    watch_.NoteAllocations(kBatch / 4);
    ASSERT_TRUE(watch_.Drains());
    watch_.NoteBatch();
  }
  for (int left = kBatches; left > 0; --left) {
    // Enough that those before do not make it drain.
    Free(kBatch);
    watch_.NoteAllocations(kBatch);
    ASSERT_FALSE(watch_.Drains());
    EXPECT_TRUE(watch_.MayKeepDraining()) << left;
    watch_.NoteBatch();
  }
  Free(kBatch);
  watch_.NoteAllocations(kBatch);
  EXPECT_FALSE(watch_.MayKeepDraining()) << "all is spent";
}

TEST_F(DrainWatchTest, AClassThatGrowsDoesNotSettle) {
  watch_.Begin();
  Free(kBatch);
  watch_.NoteAllocations(1);
  watch_.NoteBatch();
  EXPECT_FALSE(watch_.MayKeepDraining()) << "nothing is allocated";
  Free(kBatch);
  watch_.NoteAllocations(3 * kBatch);
  EXPECT_TRUE(watch_.MayKeepDraining());
  watch_.NoteAllocations(1);
  EXPECT_FALSE(watch_.MayKeepDraining());
}

TEST_F(DrainWatchTest, WhatWasDrainedBeforeATrialGivesNoCredit) {
  watch_.Begin();
  Free(kBatch);
  watch_.NoteAllocations(kBatch / 4);
  watch_.NoteBatch();
  watch_.End();
  watch_.Begin();
  Free(kBatch);
  watch_.NoteAllocations(kBatch);
  EXPECT_FALSE(watch_.MayKeepDraining());
}

}  // namespace
}  // namespace tcmalloc::testing
