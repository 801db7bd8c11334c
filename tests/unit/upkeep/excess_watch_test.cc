// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// When free memory counts as excess.

#include "upkeep/excess_watch.h"

#include <gtest/gtest.h>

#include "unit/mebibytes.h"

namespace tcmalloc::testing {
namespace {

// A heap of a hundred MiB that is used up and freed in each cycle.
class ExcessWatchTest : public ::testing::Test {
 protected:
  // Whether a cycle begins when `in_use` MiB are in use.
  bool Begins(size_t in_use) { return watch_.CycleBegins(MiB(kHeap - in_use), MiB(kHeap), freed_); }

  // Runs one cycle and begins the next one, when so many MiB are resident.
  bool Cycle(size_t resident) {
    EXPECT_FALSE(Begins(90));
    freed_ += MiB(90);
    EXPECT_FALSE(Begins(2));
    EXPECT_TRUE(Begins(3));
    return watch_.IsExcessive(resident * kMiB, MiB(kHeap - 3));
  }
  // So often that what was freed allows one release more.
  void Rest(size_t resident) {
    for (uint64_t i = 0; i < 2 * ExcessWatch::kFreedShare; ++i) EXPECT_FALSE(Cycle(resident));
  }

  static constexpr size_t kHeap = 100;

  ExcessWatch watch_;
  Length freed_;
};

TEST_F(ExcessWatchTest, ACycleBeginsWhenMuchWasFreedAndUseGrowsAgain) {
  freed_ += MiB(90);
  EXPECT_FALSE(Begins(50)) << "half of it is in use";
  EXPECT_FALSE(Begins(13)) << "an eighth";
  EXPECT_FALSE(Begins(12)) << "use does not grow";
  EXPECT_FALSE(Begins(10));
  EXPECT_FALSE(Begins(10)) << "it stands still";
  EXPECT_TRUE(Begins(11));
  EXPECT_FALSE(Begins(12)) << "it has begun";
  freed_ += MiB(90);
  EXPECT_FALSE(Begins(1));
  EXPECT_TRUE(Begins(30)) << "however late that is noticed";
}

TEST_F(ExcessWatchTest, NoCycleBeginsInTheMiddleOfOne) {
  EXPECT_FALSE(Cycle(10));
  EXPECT_FALSE(Begins(5)) << "it grows on";
  EXPECT_FALSE(Begins(90));
  freed_ += MiB(20);
  EXPECT_FALSE(Begins(70)) << "the end of it";
  EXPECT_FALSE(Begins(71));
  freed_ += MiB(70);
  EXPECT_FALSE(Begins(1));
  EXPECT_TRUE(Begins(2));
}

TEST_F(ExcessWatchTest, ASmallCycleIsNone) {
  freed_ += ExcessWatch::kLeastFreed - Length(1);
  EXPECT_FALSE(Begins(0));
  EXPECT_FALSE(Begins(1));
  freed_ += Length(1);
  EXPECT_FALSE(Begins(1));
  EXPECT_TRUE(Begins(2));
}

TEST_F(ExcessWatchTest, ASmallHeapIsLeftAlone) {
  const Length heap = ExcessWatch::kLeastHeap;
  freed_ = MiB(1000);
  EXPECT_FALSE(watch_.CycleBegins(heap - Length(1), heap - Length(1), freed_));
  EXPECT_FALSE(watch_.CycleBegins(heap - MiB(1), heap - Length(1), freed_));
  EXPECT_FALSE(watch_.CycleBegins(heap, heap, freed_));
  EXPECT_TRUE(watch_.CycleBegins(heap - ExcessWatch::kLeastGrowth, heap, freed_));
}

TEST_F(ExcessWatchTest, WhatEachCycleNeedsIsNoExcess) {
  Rest(95);
  Rest(95);
}

TEST_F(ExcessWatchTest, AQuarterMoreThanNeededIsExcess) {
  Rest(40);
  EXPECT_FALSE(Cycle(49));
  EXPECT_TRUE(Cycle(50));
}

TEST_F(ExcessWatchTest, AHeapThatHasShrunkDoesNotShowWhatACycleNeeds) {
  EXPECT_FALSE(Cycle(90));
  Rest(90);
  watch_.NoteShrinking();
  EXPECT_FALSE(Cycle(5)) << "it begins with nothing resident";
  EXPECT_FALSE(Cycle(90));
  EXPECT_FALSE(Cycle(90)) << "no more than before";
  EXPECT_TRUE(Cycle(140)) << "but this is";
}

TEST_F(ExcessWatchTest, FewBytesAreNoExcess) {
  Rest(4);
  EXPECT_FALSE(Cycle(7));
  EXPECT_TRUE(Cycle(8));
}

TEST_F(ExcessWatchTest, TheCycleAfterAReleaseShowsWhatIsNeeded) {
  Rest(40);
  EXPECT_TRUE(Cycle(60));
  Rest(55);
  EXPECT_TRUE(Cycle(70));
}

TEST_F(ExcessWatchTest, WhatIsNeededMayBecomeLess) {
  Rest(80);
  Rest(40);
  EXPECT_TRUE(Cycle(60));
}

TEST_F(ExcessWatchTest, WhatGoesBackStaysBelowAShareOfWhatIsFreed) {
  Rest(10);
  uint64_t released = 0;
  // No cycle is like the one before.
  for (uint64_t i = 0; i < 100 * ExcessWatch::kFreedShare; ++i) {
    released += Cycle(i % 2 == 0 ? 10 : 90);
    ASSERT_LE(released * (kHeap - 3) * ExcessWatch::kFreedShare, freed_.bytes() / kMiB);
  }
  EXPECT_GE(released, 50u);
}

}  // namespace
}  // namespace tcmalloc::testing
