// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/release/growth_offset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

namespace tcmalloc {
namespace {

constexpr Length kNothing(0);
constexpr Length kCommitted(1 << 20);
constexpr Length kFree(kCommitted.pages() / 4);

TEST(GrowthOffset, GathersRequestsUntilTheyAreWorthASystemCall) {
  GrowthOffset offset;
  for (uintptr_t i = 1; i < GrowthOffset::kLeast.pages(); ++i) {
    EXPECT_EQ(offset.PagesDue(Length(1), kFree, kCommitted), kNothing);
  }
  EXPECT_EQ(offset.PagesDue(Length(1), kFree, kCommitted), GrowthOffset::kLeast);
  if (GrowthOffset::kLeast > Length(1)) {
    EXPECT_EQ(offset.PagesDue(Length(1), kFree, kCommitted), kNothing);
  }
}

TEST(GrowthOffset, ALongRequestIsOffsetAtOnce) {
  GrowthOffset offset;
  const Length n = GrowthOffset::kLeast + Length(3);
  EXPECT_EQ(offset.PagesDue(n, kFree, kCommitted), n);
  const Length longer = GrowthOffset::kMost + Length(5);
  EXPECT_EQ(offset.PagesDue(longer, kFree, kCommitted), longer);
  EXPECT_EQ(offset.PagesDue(Length::Max(), kFree, kCommitted), Length::Max());
}

TEST(GrowthOffset, LittleFreeMemoryStays) {
  GrowthOffset offset;
  const Length little(kCommitted.pages() / GrowthOffset::kFewestFree - 1);
  EXPECT_EQ(offset.PagesDue(GrowthOffset::kLeast, little, kCommitted), kNothing);
  EXPECT_EQ(offset.PagesDue(GrowthOffset::kLeast, kNothing, kNothing), kNothing);
}

TEST(GrowthOffset, WhatWasRequestedWhileLittleWasFreeIsForgotten) {
  GrowthOffset offset;
  const Length almost = GrowthOffset::kLeast - Length(1);
  if (almost == kNothing) GTEST_SKIP() << "one page is worth a system call";
  EXPECT_EQ(offset.PagesDue(almost, kFree, kCommitted), kNothing);
  EXPECT_EQ(offset.PagesDue(Length(1), Length(1), kCommitted), kNothing);
  EXPECT_EQ(offset.PagesDue(Length(1), kFree, kCommitted), kNothing);
}

TEST(GrowthOffset, ExchangesAShareOfTheHeapAtMost) {
  GrowthOffset offset;
  Length exchanged;
  for (Length due(1); due > kNothing; exchanged += due) {
    due = offset.PagesDue(GrowthOffset::kLeast, kFree, kCommitted);
    offset.NoteReleased(due);
  }
  const Length share(kCommitted.pages() / GrowthOffset::kExchangeShare);
  EXPECT_LE(share, exchanged);
  EXPECT_LE(exchanged, share + GrowthOffset::kLeast);
  const Length larger(2 * kCommitted.pages());
  EXPECT_GT(offset.PagesDue(GrowthOffset::kLeast, kFree, larger), kNothing);
}

constexpr Length kFew = GrowthOffset::kFewNeedless;
constexpr uint64_t kStart = 1'000'000'000;
// Pays for one page.
constexpr uint64_t kTimeForPage =
    std::max<uint64_t>(Length(1).bytes() / GrowthOffset::kFaultBytes, 1) *
    GrowthOffset::kFaultNanoseconds * GrowthOffset::kTimeShare;

TEST(GrowthOffset, PaysUntilWhatItGaveBackIsTakenAgain) {
  const GrowthOffset offset;
  EXPECT_TRUE(offset.MayPay(kNothing, kNothing));
  EXPECT_TRUE(offset.MayPay(kFew, kNothing));
  EXPECT_FALSE(offset.MayPay(kFew + Length(1), kNothing));
}

TEST(GrowthOffset, PaysForAShareOfALargeHeap) {
  const GrowthOffset offset;
  const Length large(2 * kFew.pages() * GrowthOffset::kNeedlessShare);
  EXPECT_TRUE(offset.MayPay(kFew + kFew, large));
  EXPECT_FALSE(offset.MayPay(kFew + kFew + Length(1), large));
}

TEST(GrowthOffset, PaysAgainAfterAsMuchTime) {
  GrowthOffset offset;
  offset.NoteTime(kStart);
  EXPECT_FALSE(offset.MayPay(kFew + Length(1), kNothing)) << "what was before does not count";
  offset.NoteTime(kStart + 3 * kTimeForPage);
  EXPECT_TRUE(offset.MayPay(kFew + Length(3), kNothing));
  EXPECT_FALSE(offset.MayPay(kFew + Length(4), kNothing));
  offset.NoteTime(kStart / 2);
  EXPECT_TRUE(offset.MayPay(kFew + Length(3), kNothing)) << "a clock that goes back";
}

}  // namespace
}  // namespace tcmalloc
