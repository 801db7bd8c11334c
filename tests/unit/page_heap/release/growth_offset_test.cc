// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/release/growth_offset.h"

#include <gtest/gtest.h>

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

TEST(GrowthOffset, ALongRequestIsOffsetAtOnceUpToABound) {
  GrowthOffset offset;
  const Length n = GrowthOffset::kLeast + Length(3);
  EXPECT_EQ(offset.PagesDue(n, kFree, kCommitted), n);
  EXPECT_EQ(offset.PagesDue(Length::Max(), kFree, kCommitted), GrowthOffset::kMost);
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

}  // namespace
}  // namespace tcmalloc
