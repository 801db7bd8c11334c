// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/huge/advice.h"

#include <gtest/gtest.h>

namespace tcmalloc {
namespace {

using Contents = HugePageTracker::Contents;
using Advice = HugePageTracker::Advice;

constexpr size_t kSmall = HugePageAdvice::kSmallHeap - 1;
constexpr size_t kMiddle = HugePageAdvice::kSmallHeap;
constexpr size_t kLarge = HugePageAdvice::kSmallHeapUnasked;

HugePageAdvice In(HugepageMode mode) {
  HugePageAdvice advice;
  advice.Configure(
      {.mode = mode, .may_stall = true, .max_ptes_none = 511, .hugepage_bytes = kHugePageSize});
  return advice;
}

TEST(HugePageAdviceTest, NeverSaysNothing) {
  const HugePageAdvice advice = In(HugepageMode::kNever);
  for (Advice told : {Advice::kNone, Advice::kHuge, Advice::kSmall}) {
    for (size_t shared : {kSmall, kLarge}) {
      EXPECT_EQ(advice.ForShared(told, Contents::kObjects, shared, false), Advice::kNone);
    }
    EXPECT_FALSE(advice.BacksWhole(told));
    EXPECT_FALSE(advice.RefillsBroken(told));
  }
  EXPECT_FALSE(advice.MayCollapse(kLarge));
}

TEST(HugePageAdviceTest, MadviseAsksOnceTheHeapIsLarge) {
  const HugePageAdvice advice = In(HugepageMode::kMadvise);
  EXPECT_EQ(advice.ForShared(Advice::kNone, Contents::kObjects, kSmall, false), Advice::kNone);
  EXPECT_EQ(advice.ForShared(Advice::kNone, Contents::kObjects, kMiddle, false), Advice::kHuge);
  EXPECT_EQ(advice.ForShared(Advice::kSmall, Contents::kObjects, kMiddle, false), Advice::kHuge);
  EXPECT_EQ(advice.ForShared(Advice::kHuge, Contents::kObjects, kLarge, false), Advice::kNone);
  EXPECT_EQ(advice.ForShared(Advice::kNone, Contents::kObjects, kLarge, true), Advice::kNone);
  EXPECT_EQ(advice.ForShared(Advice::kHuge, Contents::kObjects, kLarge, true), Advice::kSmall);
  EXPECT_FALSE(advice.BacksWhole(Advice::kNone));
  EXPECT_TRUE(advice.BacksWhole(Advice::kHuge));
}

TEST(HugePageAdviceTest, LargeBlocksAreLeftToTheSetting) {
  const HugePageAdvice madvise = In(HugepageMode::kMadvise);
  EXPECT_EQ(madvise.ForShared(Advice::kNone, Contents::kBlocks, kLarge, false), Advice::kNone);
  EXPECT_EQ(madvise.ForShared(Advice::kHuge, Contents::kBlocks, kLarge, false), Advice::kSmall)
      << "it was asked for before";
  const HugePageAdvice always = In(HugepageMode::kAlways);
  EXPECT_EQ(always.ForShared(Advice::kNone, Contents::kBlocks, kLarge, false), Advice::kNone);
  EXPECT_EQ(always.ForShared(Advice::kNone, Contents::kBlocks, kSmall, false), Advice::kSmall);
}

TEST(HugePageAdviceTest, AlwaysKeepsASmallHeapSmall) {
  const HugePageAdvice advice = In(HugepageMode::kAlways);
  EXPECT_EQ(advice.ForShared(Advice::kNone, Contents::kObjects, kSmall, false), Advice::kSmall);
  EXPECT_EQ(advice.ForShared(Advice::kNone, Contents::kObjects, kMiddle, false), Advice::kSmall);
  EXPECT_EQ(advice.ForShared(Advice::kSmall, Contents::kObjects, kSmall, false), Advice::kNone);
  EXPECT_EQ(advice.ForShared(Advice::kNone, Contents::kObjects, kLarge, false), Advice::kNone);
  EXPECT_EQ(advice.ForShared(Advice::kSmall, Contents::kObjects, kLarge, false), Advice::kHuge);
  EXPECT_EQ(advice.ForShared(Advice::kNone, Contents::kObjects, kLarge, true), Advice::kSmall);
  EXPECT_TRUE(advice.BacksWhole(Advice::kNone));
  EXPECT_FALSE(advice.BacksWhole(Advice::kSmall));
}

TEST(HugePageAdviceTest, TheDaemonRefillsOnlyWhereItMay) {
  HugePageAdvice advice = In(HugepageMode::kAlways);
  EXPECT_TRUE(advice.RefillsBroken(Advice::kNone));
  EXPECT_FALSE(advice.RefillsBroken(Advice::kSmall));
  advice.Configure({.mode = HugepageMode::kAlways,
                    .may_stall = true,
                    .max_ptes_none = 0,
                    .hugepage_bytes = kHugePageSize});
  EXPECT_FALSE(advice.RefillsBroken(Advice::kNone));
}

TEST(HugePageAdviceTest, NoCollapseWhereNobodyShallWaitOrTheHeapIsSmall) {
  EXPECT_TRUE(In(HugepageMode::kMadvise).MayCollapse(kMiddle));
  EXPECT_FALSE(In(HugepageMode::kMadvise).MayCollapse(kSmall));
  EXPECT_TRUE(In(HugepageMode::kAlways).MayCollapse(kLarge));
  EXPECT_FALSE(In(HugepageMode::kAlways).MayCollapse(kMiddle));
  HugePageAdvice advice;
  advice.Configure({.mode = HugepageMode::kAlways,
                    .may_stall = false,
                    .max_ptes_none = 511,
                    .hugepage_bytes = kHugePageSize});
  EXPECT_FALSE(advice.MayCollapse(kLarge));
}

TEST(HugePageAdviceTest, HugepagesOfAnotherSizeAreNone) {
  HugePageAdvice advice;
  advice.Configure({.mode = HugepageMode::kAlways,
                    .may_stall = true,
                    .max_ptes_none = 511,
                    .hugepage_bytes = size_t{512} << 20});
  EXPECT_EQ(advice.setting().mode, HugepageMode::kNever);
  EXPECT_FALSE(advice.BacksWhole(Advice::kNone));
}

}  // namespace
}  // namespace tcmalloc
