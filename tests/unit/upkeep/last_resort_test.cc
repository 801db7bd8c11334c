// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "upkeep/last_resort.h"

#include <gtest/gtest.h>

namespace tcmalloc {
namespace {

using Request = LastResort::Request;

// 100 pages, of which 70 are in use.
PageHeapStats Heap() {
  PageHeapStats stats;
  stats.system = Length(100);
  stats.free = Length(10);
  stats.returned = Length(20);
  return stats;
}

Request Pages(uintptr_t n, uintptr_t limit = 0) {
  return {.pages = Length(n), .limit = Length(limit), .heap = Heap()};
}
Request Object() { return Pages(0); }

TEST(LastResort, WhereTheSystemRefusedTheHeapMustDo) {
  EXPECT_TRUE(LastResort::IsPossible(Pages(30), Length(0)));
  EXPECT_FALSE(LastResort::IsPossible(Pages(31), Length(0)));
  EXPECT_TRUE(LastResort::IsPossible(Pages(35), Length(5)));
  EXPECT_FALSE(LastResort::IsPossible(Pages(36), Length(5)));
}

TEST(LastResort, CachesGiveNoMoreThanIsInUse) {
  EXPECT_TRUE(LastResort::IsPossible(Pages(100), Length::Max()));
  EXPECT_FALSE(LastResort::IsPossible(Pages(101), Length::Max()));
}

TEST(LastResort, UnderALimitThatForbidsItCachesMustMakeRoom) {
  // 80 pages are committed, and the 10 free ones can go.
  EXPECT_TRUE(LastResort::IsPossible(Pages(20, 85), Length(5)));
  EXPECT_FALSE(LastResort::IsPossible(Pages(21, 85), Length(5)));
  EXPECT_FALSE(LastResort::IsPossible(Pages(1000, 85), Length::Max()));
}

TEST(LastResort, UnderALimitThatAllowsItTheSystemRefused) {
  EXPECT_FALSE(LastResort::IsPossible(Pages(200, 1000), Length(70)));
  EXPECT_TRUE(LastResort::IsPossible(Pages(40, 1000), Length(10)));
}

TEST(LastResort, AnObjectNeedsAnyOther) {
  const LastResort last_resort;
  EXPECT_TRUE(last_resort.MayHelp(Object(), {.objects = 1, .pages = Length(1)}, 0));
  EXPECT_FALSE(last_resort.MayHelp(Object(), {}, 0));
}

TEST(LastResort, EmptyCachesServeNobody) {
  const LastResort last_resort;
  EXPECT_FALSE(last_resort.MayHelp(Pages(1), {}, 0));
}

TEST(LastResort, WhatAShedLeftCountsAfterAPause) {
  LastResort last_resort;
  const CachedMemory left{.objects = 7, .pages = Length(7)};
  constexpr int64_t kEnd = 1000;
  last_resort.NoteShed(left, 0, kEnd);
  EXPECT_FALSE(last_resort.MayHelp(Object(), left, kEnd));
  EXPECT_TRUE(last_resort.MayHelp(Object(), {.objects = 8, .pages = Length(8)}, kEnd));
  EXPECT_FALSE(last_resort.MayHelp(Object(), left, kEnd + LastResort::kLeastPause - 1));
  EXPECT_TRUE(last_resort.MayHelp(Object(), left, kEnd + LastResort::kLeastPause));
}

TEST(LastResort, ThePauseGrowsWithTheCost) {
  LastResort last_resort;
  const CachedMemory left{.objects = 1, .pages = Length(1)};
  const int64_t took = LastResort::kLeastPause;
  last_resort.NoteShed(left, 0, took);
  const int64_t end = took + took * LastResort::kCostShare;
  EXPECT_FALSE(last_resort.MayHelp(Object(), left, end - 1));
  EXPECT_TRUE(last_resort.MayHelp(Object(), left, end));
  last_resort.NoteShed(left, 0, LastResort::kMostPause);
  EXPECT_TRUE(last_resort.MayHelp(Object(), left, 2 * LastResort::kMostPause));
}

}  // namespace
}  // namespace tcmalloc
