// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/release/growth_bound.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace tcmalloc {
namespace {

constexpr Length kInUse = Length::FromBytesCeil(size_t{2} << 30);
constexpr Length kMost = kInUse + Length(kInUse.pages() / GrowthBound::kSlackShare);
constexpr Length kNone;

TEST(GrowthBound, NothingIsDueBelowIt) {
  GrowthBound bound;
  EXPECT_EQ(bound.PagesDue(kMost, kInUse, kNone), kNone);
  EXPECT_EQ(bound.PagesDue(kMost + Length(3), kInUse, kNone), Length(3));
}

TEST(GrowthBound, ThePeakOfUseCounts) {
  GrowthBound bound;
  EXPECT_EQ(bound.PagesDue(kInUse, kInUse, kNone), kNone);
  EXPECT_EQ(bound.PagesDue(kMost, Length(1), kNone), kNone);
  EXPECT_EQ(bound.PagesDue(kMost + Length(1), Length(1), kNone), Length(1));
}

TEST(GrowthBound, ASmallHeapMayHoldMore) {
  GrowthBound bound;
  EXPECT_EQ(bound.PagesDue(Length(1) + GrowthBound::kLeastSlack, Length(1), kNone), kNone);
}

TEST(GrowthBound, ExchangesAShareOfTheHeapAndOfWhatWasFreed) {
  GrowthBound bound;
  const Length committed = kMost * 2;
  bound.NoteReleased(Length(committed.pages() / GrowthBound::kExchangeShare));
  EXPECT_EQ(bound.PagesDue(committed, kInUse, kNone), kNone);
  EXPECT_EQ(bound.PagesDue(committed, kInUse, Length(GrowthBound::kFreedShare)), committed - kMost);
  bound.NoteReleased(Length(1));
  EXPECT_EQ(bound.PagesDue(committed, kInUse, Length(GrowthBound::kFreedShare)), kNone);
}

}  // namespace
}  // namespace tcmalloc
