// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "upkeep/peak.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "unit/mebibytes.h"

namespace tcmalloc::testing {
namespace {

PeakStats Moment(uint64_t committed, uint64_t in_use) {
  return {.committed = MiB(committed), .in_use = in_use, .physical = committed};
}

TEST(Peak, IsTheMomentWhenTheMostWasCommitted) {
  Peak peak;
  EXPECT_EQ(peak.Note(Moment(10, 7)).in_use, 7u);
  EXPECT_EQ(peak.Note(Moment(9, 8)).in_use, 7u);
  const PeakStats higher = peak.Note(Moment(12, 2));
  EXPECT_EQ(higher.committed, MiB(12));
  EXPECT_EQ(higher.in_use, 2u);
  EXPECT_EQ(higher.physical, 12u);
}

TEST(Peak, WithinAStepItIsTheMomentWhenTheMostWasInUse) {
  Peak peak;
  peak.Note(Moment(10, 7));
  EXPECT_EQ(peak.Note(Moment(10, 9)).in_use, 9u);
  EXPECT_EQ(peak.Note(Moment(10, 8)).in_use, 9u);
  EXPECT_EQ(peak.Note(Moment(11, 8)).committed, MiB(10)) << "blocks were freed since the peak";
  EXPECT_EQ(peak.Note(Moment(11, 10)).committed, MiB(11));
}

TEST(Peak, SomebodyLooksAfterAStep) {
  Peak peak;
  EXPECT_FALSE(peak.IsDue(Peak::kLeastStep));
  EXPECT_TRUE(peak.IsDue(Peak::kLeastStep + Length(1)));
  for (const uint64_t committed : {uint64_t{10}, uint64_t{1000}}) {
    peak.Note(Moment(committed, 1));
    const Length step = Peak::StepAfterPeak(MiB(committed));
    EXPECT_LE(step.bytes(), std::max(kMiB, committed * kMiB / 32));
    EXPECT_FALSE(peak.IsDue(MiB(committed) + step));
    EXPECT_TRUE(peak.IsDue(MiB(committed) + step + Length(1)));
    peak.Note(Moment(committed / 2, 1));
    EXPECT_FALSE(peak.IsDue(MiB(committed) + step)) << "a heap that shrank is not looked at";
  }
}

TEST(Peak, IsCountedWhenNobodyElseCounts) {
  Peak peak;
  int counts = 0;
  const auto count = [&] {
    ++counts;
    return Moment(5, 3);
  };
  peak.Update(count);
  EXPECT_EQ(peak.Note({}).in_use, 3u);
  {
    SpinLock& lock = peak.lock();
    SpinLockHolder holder(lock);
    // Would wait for ever if it waited.
    peak.Update(count);
  }
  EXPECT_EQ(counts, 1);
}

}  // namespace
}  // namespace tcmalloc::testing
