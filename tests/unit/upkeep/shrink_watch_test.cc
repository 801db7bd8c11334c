// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// When a heap that becomes smaller gives back what is free.

#include "upkeep/shrink_watch.h"

#include <gtest/gtest.h>

#include "unit/mebibytes.h"

namespace tcmalloc::testing {
namespace {

constexpr uint64_t kOneSecond = 1'000'000'000;

// A heap of 256 MiB.
class ShrinkWatchTest : public ::testing::Test {
 protected:
  // Looks when so many MiB are not free, and so many are in use. Returns true if they were counted.
  bool Look(size_t used, size_t in_use) {
    const bool something = watch_.Look(now_, MiB(used), MiB(heap_));
    if (!watch_.is_count_due()) return false;
    EXPECT_TRUE(something);
    watch_.NoteCount(MiB(used), caches_);
    if (ShrinkWatch::IsNearlyEmpty(in_use * kMiB, MiB(heap_)))
      watch_.Begin(now_, heap_ * kMiB, stats_);
    return true;
  }
  bool Look(size_t used) { return Look(used, used); }

  void Fill() {
    EXPECT_FALSE(Look(256));
    EXPECT_FALSE(watch_.shrinking());
  }
  void Shrink() {
    Fill();
    EXPECT_TRUE(Look(30));
    EXPECT_TRUE(watch_.shrinking());
  }

  // So much went since the last look.
  void Release(size_t mib) {
    stats_.released_for[static_cast<size_t>(ReleaseCause::kAllocator)] += MiB(mib);
    watch_.NoteReleases(stats_);
  }
  // Nothing went, because the system refused.
  void Refuse() {
    ++stats_.release_failures;
    watch_.NoteReleases(stats_);
  }

  ShrinkWatch watch_;
  PageHeapStats stats_;
  size_t heap_ = 256;
  size_t caches_ = 1;
  uint64_t now_ = kOneSecond;
};

TEST_F(ShrinkWatchTest, AHeapShrinksWhenAnEighthIsInUse) {
  Fill();
  EXPECT_TRUE(Look(34));
  EXPECT_FALSE(watch_.shrinking());
  EXPECT_TRUE(Look(32));
  EXPECT_TRUE(watch_.shrinking());
}

TEST_F(ShrinkWatchTest, ObjectsInCachesAreNotInUse) {
  Fill();
  EXPECT_TRUE(Look(240, 100));
  EXPECT_FALSE(watch_.shrinking());
  EXPECT_TRUE(Look(230, 20)) << "few objects keep many pages in use";
  EXPECT_TRUE(watch_.shrinking());
}

TEST_F(ShrinkWatchTest, EachCountAwaitsAFall) {
  Fill();
  EXPECT_FALSE(Look(249));
  EXPECT_TRUE(Look(248)) << "a thirty-second less";
  EXPECT_FALSE(Look(248));
  EXPECT_FALSE(Look(241));
  EXPECT_TRUE(Look(240));
  EXPECT_EQ(watch_.mark(), MiB(240) - Length(MiB(240).pages() / ShrinkWatch::kFallShare));
}

TEST_F(ShrinkWatchTest, UseThatGoesUpAndDownIsNotCountedAgainAndAgain) {
  Fill();
  EXPECT_TRUE(Look(200));
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(Look(210));
    EXPECT_FALSE(Look(200));
  }
  EXPECT_FALSE(Look(256));
  EXPECT_TRUE(Look(190));
  EXPECT_FALSE(Look(255)) << "a quarter of the heap more";
  EXPECT_TRUE(Look(200)) << "counts began anew";
}

TEST_F(ShrinkWatchTest, ASmallHeapIsNotWatched) {
  heap_ = 95;
  EXPECT_FALSE(Look(95));
  EXPECT_FALSE(Look(1));
  EXPECT_EQ(watch_.mark(), Length(0));
}

TEST_F(ShrinkWatchTest, NorIsOneOfWhichLittleIsResident) {
  Fill();
  EXPECT_FALSE(Look(256));
  watch_.NoteCount(MiB(10), caches_);
  watch_.Begin(now_, 95 * kMiB, stats_);
  EXPECT_FALSE(watch_.shrinking());
}

TEST_F(ShrinkWatchTest, ItEndsWhenUseGrows) {
  Shrink();
  Release(1);
  Look(20);
  Look(21);
  EXPECT_TRUE(watch_.shrinking()) << "a mebibyte is no growth";
  EXPECT_TRUE(watch_.Look(now_, MiB(22), MiB(heap_))) << "there is something to undo";
  EXPECT_FALSE(watch_.shrinking());
  EXPECT_FALSE(watch_.is_count_due());
  EXPECT_FALSE(watch_.Look(now_, MiB(22), MiB(heap_)));
}

TEST_F(ShrinkWatchTest, ItEndsWhenUseFallsNoMore) {
  Shrink();
  for (int i = 0; i < ShrinkWatch::kMostLooks; ++i) Look(20);
  EXPECT_TRUE(watch_.shrinking());
  for (int i = 0; i < ShrinkWatch::kMostLooks; ++i) Look(19);
  EXPECT_TRUE(watch_.shrinking()) << "it had fallen";
  Look(19);
  Look(19);
  EXPECT_FALSE(watch_.shrinking());
}

constexpr uint64_t TimeFor(size_t mib) {
  return mib * kMiB / ShrinkWatch::kFaultBytes * ShrinkWatch::kFaultNanoseconds *
         ShrinkWatch::kTimeShare;
}

TEST_F(ShrinkWatchTest, TheNextTimeIsPaidForByTimeThatPasses) {
  Shrink();
  for (int i = 0; i < 10; ++i) Release(20);
  Look(256);
  EXPECT_FALSE(watch_.shrinking());
  EXPECT_FALSE(Look(10));
  EXPECT_EQ(watch_.mark(), Length(0)) << "looks for it are of no use";
  now_ += TimeFor(200) - 1;
  EXPECT_FALSE(Look(256));
  EXPECT_FALSE(Look(10));
  ++now_;
  EXPECT_TRUE(Look(10));
  EXPECT_TRUE(watch_.shrinking());
}

TEST_F(ShrinkWatchTest, WhatDidNotGoIsNotPaidFor) {
  Shrink();
  Look(256);
  EXPECT_FALSE(watch_.shrinking());
  EXPECT_TRUE(Look(30)) << "at once";
  EXPECT_TRUE(watch_.shrinking());
}

TEST_F(ShrinkWatchTest, ItEndsWhereTheSystemTakesNothing) {
  Shrink();
  stats_.free = MiB(100);
  for (int i = 1; i < ShrinkWatch::kMostRefusals; ++i) Refuse();
  Release(1);
  for (int i = 0; i < ShrinkWatch::kMostRefusals; ++i) {
    Look(20);
    EXPECT_TRUE(watch_.shrinking());
    watch_.NoteReleases(stats_);  // nothing was due
    Refuse();
  }
  EXPECT_TRUE(watch_.Look(now_, MiB(20), MiB(heap_))) << "there is something to undo";
  EXPECT_FALSE(watch_.shrinking());
  now_ += TimeFor(101) - 1;
  Look(256);
  EXPECT_FALSE(Look(10)) << "as if it had gone";
  ++now_;
  EXPECT_TRUE(Look(10));
}

TEST_F(ShrinkWatchTest, CountsOfManyCachesAreFew) {
  const auto counts_of = [this](size_t caches) {
    watch_ = {};
    caches_ = caches;
    Fill();
    int counts = 0;
    for (size_t used = 256; used > 0; --used) counts += Look(used, 100) ? 1 : 0;
    return counts;
  };
  EXPECT_GT(counts_of(1), 60);
  EXPECT_EQ(counts_of(32), counts_of(1));
  EXPECT_LE(counts_of(2000), 20);
  EXPECT_EQ(counts_of(20000), counts_of(2000)) << "a quarter less is always worth a count";
}

TEST_F(ShrinkWatchTest, FreeMemoryGoesByTheMebibyte) {
  EXPECT_EQ(ShrinkWatch::PagesDue(MiB(1) - Length(1)), Length(0));
  EXPECT_EQ(ShrinkWatch::PagesDue(MiB(1)), MiB(1));
  EXPECT_EQ(ShrinkWatch::PagesDue(MiB(99)), MiB(99));
}

TEST_F(ShrinkWatchTest, EveryTurnTakesManyLooks) {
  int turns = 0;
  for (uint32_t i = 0; i < 10 * ShrinkWatch::kLooksPerTurn; ++i) turns += watch_.TakeTurn() ? 1 : 0;
  EXPECT_EQ(turns, 10);
}

}  // namespace
}  // namespace tcmalloc::testing
