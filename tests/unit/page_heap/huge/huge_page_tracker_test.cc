// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/huge/huge_page_tracker.h"

#include <gtest/gtest.h>

#include <random>

namespace tcmalloc {
namespace {

class HugePageTrackerTest : public ::testing::Test {
 protected:
  static constexpr size_t kPages = HugePageTracker::kPages;

  HugePageTrackerTest() { tracker_.Reset(/*returned=*/false, /*zeroed=*/false); }
  ~HugePageTrackerTest() override { tracker_.CheckInvariants(); }

  HugePageTracker tracker_;
};

TEST_F(HugePageTrackerTest, ResetMakesAllPagesFreeOrReturned) {
  EXPECT_EQ(tracker_.free(), Length(kPages));
  tracker_.Reset(/*returned=*/true, /*zeroed=*/true);
  EXPECT_EQ(tracker_.free(), Length(0));
  EXPECT_EQ(tracker_.returned(), Length(kPages));
  EXPECT_TRUE(tracker_.ReadsAsZero(0, kPages));
  EXPECT_EQ(tracker_.longest(), kPages);
}

TEST_F(HugePageTrackerTest, CountsPagesAndAllocations) {
  tracker_.Claim(0, 3, true);
  tracker_.Claim(5, 2, true);
  EXPECT_EQ(tracker_.used(), Length(5));
  EXPECT_EQ(tracker_.allocations(), 2u);
  EXPECT_EQ(tracker_.longest(), std::max(kPages - 7, size_t{2}));
  tracker_.Unclaim(0, 3, /*returned=*/false, /*zeroed=*/false);
  EXPECT_EQ(tracker_.used(), Length(2));
  EXPECT_EQ(tracker_.allocations(), 1u);
}

TEST_F(HugePageTrackerTest, MoreOfAnAllocationIsNoNewOne) {
  tracker_.Claim(0, 1, true);
  tracker_.Claim(1, 2, false);
  EXPECT_EQ(tracker_.allocations(), 1u);
  tracker_.SplitAllocation();
  EXPECT_EQ(tracker_.allocations(), 2u);
}

TEST_F(HugePageTrackerTest, BestFitTakesTheShortestRun) {
  // Runs of 3, 1 and the rest.
  tracker_.Claim(3, 1, true);
  tracker_.Claim(5, 1, true);
  EXPECT_EQ(tracker_.BestFit(1, 1), 4u);
  EXPECT_EQ(tracker_.BestFit(2, 1), kPages - 6 < 3 ? 6u : 0u);
  EXPECT_EQ(tracker_.BestFit(1, 2), 4u);
  EXPECT_EQ(tracker_.BestFit(kPages, 1), kPages);
}

TEST_F(HugePageTrackerTest, BestFitIsAligned) {
  tracker_.Claim(0, 1, true);
  EXPECT_EQ(tracker_.BestFit(2, 4), 4u);
  tracker_.Claim(4, kPages - 4, true);
  EXPECT_EQ(tracker_.BestFit(2, 2), 2u);
  EXPECT_EQ(tracker_.BestFit(2, 4), kPages);
}

TEST_F(HugePageTrackerTest, FollowsWhatIsReturnedAndReadsAsZero) {
  tracker_.Claim(0, 6, true);
  tracker_.Unclaim(0, 6, /*returned=*/true, /*zeroed=*/true);
  EXPECT_EQ(tracker_.returned(), Length(6));
  EXPECT_EQ(tracker_.CountReturned(4, 4), 2u);
  EXPECT_TRUE(tracker_.ReadsAsZero(0, 6));
  EXPECT_FALSE(tracker_.ReadsAsZero(0, 7));
  const auto claimed = tracker_.Claim(4, 4, true);
  EXPECT_EQ(claimed.returned, Length(2));
  EXPECT_FALSE(claimed.zeroed);
  EXPECT_TRUE(tracker_.Claim(0, 2, true).zeroed);
  // A page that was used is not known to be zero again.
  tracker_.Unclaim(0, 2, /*returned=*/false, /*zeroed=*/false);
  EXPECT_FALSE(tracker_.ReadsAsZero(0, 1));
}

TEST_F(HugePageTrackerTest, RunsEndWhereTheKindOfPageChanges) {
  tracker_.Claim(0, 4, true);
  tracker_.Unclaim(0, 4, /*returned=*/true, /*zeroed=*/false);
  tracker_.Claim(7, 1, true);
  EXPECT_EQ(tracker_.UnusedRun(0).length, 4u);
  EXPECT_EQ(tracker_.UnusedRun(4).length, 3u);
  EXPECT_EQ(tracker_.longest(), std::max(kPages - 8, size_t{7}));
  EXPECT_EQ(tracker_.LongestFree().first, kPages - 8 > 3 ? 8u : 4u);
}

TEST_F(HugePageTrackerTest, NoFreeRunWhereAllIsReturned) {
  tracker_.Reset(/*returned=*/true, /*zeroed=*/false);
  EXPECT_EQ(tracker_.LongestFree().length, 0u);
}

TEST_F(HugePageTrackerTest, AWholeBackedHugepageHasNothingReturned) {
  tracker_.Reset(/*returned=*/true, /*zeroed=*/true);
  tracker_.Claim(0, 2, true);
  EXPECT_EQ(tracker_.AssumeResident(), Length(kPages - 2));
  EXPECT_EQ(tracker_.free(), Length(kPages - 2));
  EXPECT_TRUE(tracker_.ReadsAsZero(2, kPages - 2)) << "nobody has written to it";
}

TEST_F(HugePageTrackerTest, ResetUsedIsOneAllocation) {
  tracker_.ResetUsed();
  EXPECT_EQ(tracker_.used(), Length(kPages));
  EXPECT_EQ(tracker_.allocations(), 1u);
  EXPECT_EQ(tracker_.longest(), 0u);
}

// With few allocations and with many, a place is found in different ways.
TEST_F(HugePageTrackerTest, BestFitAmongManyRuns) {
  std::mt19937_64 random(1);
  for (int step = 0; step < 5000; ++step) {
    const size_t page = random() % kPages;
    if (tracker_.IsUsed(page)) {
      tracker_.Unclaim(page, 1, random() % 2 == 0, false);
    } else if (random() % 3 != 0) {
      tracker_.Claim(page, 1, true);
    }
    const size_t n = 1 + random() % 8;
    size_t best = kPages;
    size_t best_length = kPages + 1;
    for (size_t begin = tracker_.NextUnused(0); begin < kPages;) {
      const size_t end = tracker_.NextUsed(begin);
      if (end - begin >= n && end - begin < best_length) {
        best = begin;
        best_length = end - begin;
      }
      begin = tracker_.NextUnused(end);
    }
    ASSERT_EQ(tracker_.BestFit(n, 1), best);
    tracker_.CheckInvariants();
  }
}

}  // namespace
}  // namespace tcmalloc
