// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Advice to the kernel about hugepages, and what the heap then believes.

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "page_heap/huge/huge_page_heap.h"
#include "unit/page_heap/test_heap.h"

namespace tcmalloc::testing {
namespace {

constexpr size_t kSmallHeap = HugePageAdvice::kSmallHeap;
constexpr size_t kSmallHeapUnasked = HugePageAdvice::kSmallHeapUnasked;

class HugePageHeapAdviceTest : public PageHeapFixture<HugeTestHeap> {
 protected:
  void Set(HugepageMode mode, uint64_t max_ptes_none = 511, bool may_stall = true) {
    heap_->set_hugepages({.mode = mode,
                          .may_stall = may_stall,
                          .max_ptes_none = max_ptes_none,
                          .hugepage_bytes = kHugePageSize});
  }

  // Fills shared hugepages by spans of small objects, and returns the spans.
  std::vector<Span*> Fill(size_t hugepages) {
    const uintptr_t n = std::min(kHuge / 2, HugePageTracker::kLongestOfObjects.pages());
    std::vector<Span*> spans;
    for (size_t i = 0; i < hugepages * kHuge / n; ++i) spans.push_back(New(n));
    return spans;
  }

  // A round of a thread in the background, of which nobody waits.
  void CollapseSome(uint64_t now) {
    heap_->ReleaseUnused(now, Length(0), ReleaseCause::kBackground);
  }

  size_t Count(HugeAdvice advice) const {
    const auto advised = heap_.system.advised();
    return static_cast<size_t>(std::count_if(advised.begin(), advised.end(), [&](const auto& a) {
      EXPECT_EQ(a.block.bytes, kHugePageSize);
      return a.advice == advice;
    }));
  }
};

TEST_F(HugePageHeapAdviceTest, NeverTellsNothing) {
  Set(HugepageMode::kNever);
  Fill(20);
  heap_->ReleaseUnused(1, Length(0));
  EXPECT_TRUE(heap_.system.advised().empty());
}

TEST_F(HugePageHeapAdviceTest, ALargeHeapAsksForHugepages) {
  Set(HugepageMode::kMadvise);
  Fill(kSmallHeap - 1);
  EXPECT_TRUE(heap_.system.advised().empty());
  Fill(5);
  EXPECT_EQ(Count(HugeAdvice::kHugepage), 5u);
  EXPECT_EQ(heap_->huge_stats().asked_for, 5u);
  EXPECT_EQ(heap_->huge_stats().backed_used, Length(5 * kHuge));
}

TEST_F(HugePageHeapAdviceTest, WhatIsBackedWholeIsResident) {
  Set(HugepageMode::kMadvise);
  Fill(kSmallHeap);
  New(1);
  EXPECT_EQ(heap_->stats().free, Length(kHuge - 1));
  EXPECT_EQ(heap_->huge_stats().backed_unused, Length(kHuge - 1));
  EXPECT_TRUE(New(1)->zeroed);
}

TEST_F(HugePageHeapAdviceTest, ARefusalIsBelieved) {
  Set(HugepageMode::kMadvise);
  Fill(kSmallHeap);
  heap_.system.fail_advise = [](HugeAdvice) {
    errno = ENOMEM;
    return true;
  };
  errno = EDOM;
  New(1);
  EXPECT_EQ(errno, EDOM);
  EXPECT_EQ(heap_->stats().free, Length(0));
  EXPECT_EQ(heap_->huge_stats().advice_failures, 1u);
}

TEST_F(HugePageHeapAdviceTest, AlwaysOnKeepsASmallHeapSmall) {
  Set(HugepageMode::kAlways);
  New(1);
  EXPECT_EQ(Count(HugeAdvice::kNoHugepage), 1u);
  EXPECT_EQ(heap_->stats().committed(), Length(1));
  EXPECT_EQ(heap_->huge_stats().small_paged, 1u);
  New(kHuge - 1);
  Fill(kSmallHeapUnasked + 3);
  EXPECT_EQ(heap_.system.advised().size(), kSmallHeapUnasked - 1)
      << "later ones are left to the setting";
}

TEST_F(HugePageHeapAdviceTest, LongSpansAreLeftToTheSetting) {
  for (HugepageMode mode : {HugepageMode::kMadvise, HugepageMode::kAlways}) {
    Set(mode);
    for (uintptr_t n : {kHuge, 10 * kHuge, 10 * kHuge - 1}) New(n);
  }
  EXPECT_TRUE(heap_.system.advised().empty());
}

TEST_F(HugePageHeapAdviceTest, LargeBlocksThatShareAHugepageAreLeftToTheSetting) {
  Set(HugepageMode::kMadvise);
  Fill(kSmallHeap);
  const uintptr_t n = HugePageTracker::kLongestOfObjects.pages() + 1;
  while (heap_->huge_stats().shared < kSmallHeap + 3) New(n);
  heap_->ReleaseUnused(1, Length(0));
  for (const auto& advised : heap_.system.advised()) {
    EXPECT_LT(advised.block.start, heap_.system.begin() + kSmallHeap * kHugePageSize);
  }
  EXPECT_EQ(heap_->stats().free, Length(0));
}

TEST_F(HugePageHeapAdviceTest, AnAlmostEmptyTailIsNotBackedWhole) {
  Set(HugepageMode::kAlways);
  New(kHuge + 1);
  ASSERT_EQ(Count(HugeAdvice::kNoHugepage), 1u);
  EXPECT_EQ(heap_.system.advised()[0].block.start, heap_.system.begin() + kHugePageSize);
  EXPECT_EQ(heap_->stats().free, Length(0));
}

TEST_F(HugePageHeapAdviceTest, AggressiveDecommitWantsNoHugepages) {
  heap_->set_aggressive_decommit(true);
  Set(HugepageMode::kMadvise);
  Fill(kSmallHeap + 3);
  EXPECT_TRUE(heap_.system.advised().empty());
}

TEST_F(HugePageHeapAdviceTest, NoHugepageBeyondTheLimit) {
  Set(HugepageMode::kMadvise);
  Fill(kSmallHeap - 1);
  heap_->set_limit(heap_->stats().committed() + Length(kHuge - 1));
  New(1);
  EXPECT_TRUE(heap_.system.advised().empty());
  EXPECT_LE(heap_->stats().committed(), heap_->limit());
}

TEST_F(HugePageHeapAdviceTest, TheDaemonMayNotRefillWhatIsBroken) {
  Set(HugepageMode::kMadvise);
  Fill(kSmallHeap);
  Span* span = New(1);
  heap_->ReleaseAtLeast(Length::Max());
  EXPECT_EQ(Count(HugeAdvice::kNoHugepage), 1u);
  EXPECT_EQ(heap_->huge_stats().broken, 1u);
  EXPECT_EQ(heap_->huge_stats().backed_unused, Length(0));
  heap_->Delete(span);
}

TEST_F(HugePageHeapAdviceTest, ADaemonThatDoesNotRefillIsLeftAlone) {
  Set(HugepageMode::kMadvise, /*max_ptes_none=*/0);
  Fill(kSmallHeap);
  New(1);
  heap_->ReleaseAtLeast(Length::Max());
  EXPECT_EQ(Count(HugeAdvice::kNoHugepage), 0u);
}

TEST_F(HugePageHeapAdviceTest, FullHugepagesAreCollapsedOnceTheHeapIsLarge) {
  Set(HugepageMode::kMadvise);
  Fill(kSmallHeap - 1);
  CollapseSome(1);
  EXPECT_EQ(Count(HugeAdvice::kCollapse), 0u);
  New(1);
  heap_->ReleaseUnused(2, Length(0), ReleaseCause::kAllocator);
  EXPECT_EQ(Count(HugeAdvice::kCollapse), 0u) << "a thread that allocates shall not wait";
  CollapseSome(2);
  CollapseSome(3);
  EXPECT_EQ(Count(HugeAdvice::kCollapse), kSmallHeap - 1);
  EXPECT_EQ(heap_->huge_stats().collapses, kSmallHeap - 1);
  EXPECT_EQ(heap_->huge_stats().backed_used, Length((kSmallHeap - 1) * kHuge + 1));
}

TEST_F(HugePageHeapAdviceTest, ACollapseMakesTheRestResident) {
  Set(HugepageMode::kAlways);
  New(1);
  New(kHuge - 2);
  Fill(kSmallHeapUnasked);
  EXPECT_EQ(heap_->stats().free, Length(0));
  for (uint64_t i = 1; i < kSmallHeapUnasked; ++i) CollapseSome(i);
  EXPECT_EQ(heap_->stats().free, Length(1));
  EXPECT_EQ(heap_->huge_stats().small_paged, 0u);
}

TEST_F(HugePageHeapAdviceTest, AFailedCollapseIsNotTriedAgain) {
  Set(HugepageMode::kMadvise);
  Fill(kSmallHeap - 1);
  New(1);
  heap_.system.fail_advise = [](HugeAdvice advice) { return advice == HugeAdvice::kCollapse; };
  errno = EDOM;
  CollapseSome(1);
  CollapseSome(2);
  EXPECT_EQ(errno, EDOM);
  EXPECT_EQ(heap_->huge_stats().collapse_failures, kSmallHeap - 1);
  EXPECT_EQ(heap_->huge_stats().backed_used, Length(1));
}

TEST_F(HugePageHeapAdviceTest, NoCollapseWhereNobodyShallWait) {
  Set(HugepageMode::kMadvise, 511, /*may_stall=*/false);
  Fill(kSmallHeap);
  CollapseSome(1);
  EXPECT_EQ(Count(HugeAdvice::kCollapse), 0u);
}

TEST_F(HugePageHeapAdviceTest, AHugepageMayEmptyDuringACollapse) {
  Set(HugepageMode::kMadvise);
  std::vector<Span*> spans = Fill(kSmallHeap - 1);
  Span* last = New(1);
  heap_.system.on_advise = [&](HugeAdvice) {
    for (Span* span : spans) heap_->Delete(span);
    spans.clear();
    heap_->CheckInvariants();
  };
  CollapseSome(1);
  heap_->Delete(last);
  EXPECT_EQ(heap_->stats().in_use(), Length(0));
}

}  // namespace
}  // namespace tcmalloc::testing
