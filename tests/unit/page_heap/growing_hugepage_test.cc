// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What a growing heap asks of the kernel.

#include "page_heap/classic/growing_hugepage.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <utility>
#include <vector>

#include "page_heap/classic/page_heap.h"
#include "test_heap.h"

namespace tcmalloc::testing {
namespace {

using Growing = GrowingHugepage<FakeSystemMemory>;

constexpr uintptr_t kLongest = Growing::kLongestSpan.pages();

class GrowingHugepageTest : public PageHeapFixture<TestHeap> {
 protected:
  using Advice = std::vector<std::pair<uintptr_t, HugeAdvice>>;
  static constexpr uint64_t kHalfLife = 1'000'000'000;

  GrowingHugepageTest() {
    heap_.system.hugepages = {.mode = HugepageMode::kMadvise, .hugepage_bytes = kHugePageSize};
    heap_->set_growth(Length(64 * kHuge), Length(64 * kHuge));
    heap_->set_release_half_life(kHalfLife);
  }

  // Makes the heap large by short spans behind a long one, of which the last one ends where a
  // hugepage does.
  void MakeLarge() { MakeLarge(heap_); }
  void MakeLarge(TestHeap& heap) {
    const uintptr_t shorts = Growing::kLeastShort.pages();
    large_ = heap->New(Length(Growing::kLeastHeap.pages() - shorts));
    for (uintptr_t i = 0; i < shorts; ++i) EXPECT_NE(heap->New(Length(1)), nullptr);
    EXPECT_TRUE(heap.system.advised().empty());
  }

  // Hugepages, counted from the beginning of the heap, and what was said of each.
  Advice advice() const {
    Advice advice;
    for (const auto& [block, said] : heap_.system.advised()) {
      EXPECT_EQ(block.bytes, kHugePageSize);
      const auto offset = static_cast<uintptr_t>(block.start - heap_.system.begin());
      EXPECT_EQ(offset % kHugePageSize, 0u);
      advice.emplace_back(offset / kHugePageSize, said);
    }
    return advice;
  }

  // As a heap does.
  void Take(Growing* growing, PageRange taken, PageRange unused) {
    if (!growing->Begins(taken, unused)) return;
    if (growing->is_begun()) growing->End(heap_.system);
    growing->Begin(heap_.system, taken, false);
  }

  static constexpr uintptr_t kFirst = Growing::kLeastHeap.pages() / kHuge;
  Span* large_ = nullptr;
};

TEST_F(GrowingHugepageTest, EachIsAskedForWhenItBeginsAndThenLeftAlone) {
  MakeLarge();
  New(1);
  EXPECT_EQ(advice(), (Advice{{kFirst, HugeAdvice::kHugepage}}));
  for (uintptr_t i = 1; i < kHuge; ++i) New(1);
  EXPECT_EQ(advice().size(), 1u);
  New(1);
  EXPECT_EQ(advice(), (Advice{{kFirst, HugeAdvice::kHugepage},
                              {kFirst, HugeAdvice::kNoHugepage},
                              {kFirst + 1, HugeAdvice::kHugepage}}));
}

TEST_F(GrowingHugepageTest, ASpanThatCrossesIntoOneBeginsIt) {
  MakeLarge();
  New(1);
  for (uintptr_t used = 1; used <= kHuge; used += kLongest) New(kLongest);
  EXPECT_EQ(advice().back(), std::pair(kFirst + 1, HugeAdvice::kHugepage));
}

// The kernel keeps the tables of small pages that went back in parts.
TEST_F(GrowingHugepageTest, OneThatMayHaveBeenUsedIsGivenBackAsAWholeFirst) {
  MakeLarge();
  New(1);
  EXPECT_TRUE(heap_.system.released().empty()) << "nothing went back yet";
  heap_->Delete(New(1));
  EXPECT_EQ(heap_->ReleaseAtLeast(Length(1)), Length(kHuge - 1));
  const size_t before = heap_.system.released().size();
  for (uintptr_t i = 0; i < kHuge; ++i) New(1);
  EXPECT_EQ(advice().back(), std::pair(kFirst + 1, HugeAdvice::kHugepage));
  ASSERT_EQ(heap_.system.released().size(), before + 1);
  const FakeSystemMemory::Block block = heap_.system.released().back();
  EXPECT_EQ(block.start, heap_.system.begin() + (kFirst + 1) * kHugePageSize);
  EXPECT_EQ(block.bytes, kHugePageSize);
}

TEST_F(GrowingHugepageTest, ASmallHeapAsksForNone) {
  for (uintptr_t i = 0; i < Growing::kLeastHeap.pages() - kHuge; ++i) New(1);
  EXPECT_TRUE(advice().empty());
}

TEST_F(GrowingHugepageTest, LongSpansAskForNone) {
  MakeLarge();
  New(kLongest + 1);
  EXPECT_TRUE(advice().empty());
}

TEST_F(GrowingHugepageTest, ResidentPagesAskForNone) {
  MakeLarge();
  heap_->Delete(large_);
  New(1);
  EXPECT_TRUE(advice().empty());
}

TEST_F(GrowingHugepageTest, OneOfWhichAPartIsInUseIsNotAskedFor) {
  Growing growing;
  const PageId first = PageId::Containing(heap_.system.begin());
  const Length one(1);
  Take(&growing, {first + one, one}, {first + one, kPagesPerHugePage});
  EXPECT_TRUE(advice().empty());
  Take(&growing, {first + one, one}, {first, kPagesPerHugePage - one});
  EXPECT_TRUE(advice().empty());
  Take(&growing, {first + one, one}, {first, kPagesPerHugePage});
  EXPECT_EQ(advice(), (Advice{{0, HugeAdvice::kHugepage}}));
}

TEST_F(GrowingHugepageTest, AfterALongSpanTheHeapGrowsByManyShortOnesFirst) {
  MakeLarge();
  New(kHuge);
  for (uintptr_t i = 1; i < Growing::kLeastShort.pages(); ++i) New(1);
  EXPECT_TRUE(advice().empty());
  for (int i = 0; i < 2; ++i) New(1);
  EXPECT_EQ(advice().size(), 1u);
}

TEST_F(GrowingHugepageTest, ALongSpanUsesUpManyTimesItsLengthOfShortOnes) {
  const auto suits = [](const Growing& growing) {
    return growing.Suits(Length(1), Growing::kLeastHeap);
  };
  const PageId first = PageId::Containing(heap_.system.begin());
  Growing growing;
  const auto grow = [&](Length length, Length grown) { growing.NoteGrown({first, length}, grown); };
  grow(Length(1), Growing::kMostShort - Length(1));
  EXPECT_TRUE(suits(growing));
  const Length used_up(kHuge / Growing::kShortForLong);
  grow(used_up, used_up);
  EXPECT_FALSE(suits(growing));
  grow(Length(1), Length(1));
  EXPECT_TRUE(suits(growing));
  grow(Length(kHuge), Length(1));
  EXPECT_FALSE(suits(growing)) << "a part of a long span";
  grow(Length(1), kPagesPerHugePage * 100);
  grow(used_up + Length(1), used_up + Length(1));
  EXPECT_FALSE(suits(growing)) << "what was longer ago does not count";
}

TEST_F(GrowingHugepageTest, ALongBlockThatGrowsWhereItIsUsesUpShortOnesToo) {
  MakeLarge();
  Span* growing = New(kHuge / 32);
  ASSERT_TRUE(heap_->TryExtend(growing, Length(kHuge / 16)));
  for (uintptr_t i = kHuge / 16; i <= kHuge; ++i) New(1);
  EXPECT_TRUE(advice().empty());
}

// Hugepages of which touching takes as long as the test says.
class DearHugepageTest : public GrowingHugepageTest {
 protected:
  DearHugepageTest() {
    MakeLarge();
    heap_.system.on_touch = [this](void* page) {
      touched_.push_back(static_cast<char*>(page));
      heap_.system.now += cost_;
    };
  }

  // Grows by hugepages. Returns how many of them were asked for.
  size_t Grow(uintptr_t hugepages) {
    const size_t before = touched_.size();
    for (uintptr_t i = 0; i < hugepages * kHuge; ++i) New(1);
    return touched_.size() - before;
  }

  static constexpr int64_t kDear = Growing::kMostNanoseconds + 1;

  int64_t cost_ = 0;
  std::vector<char*> touched_;
};

TEST_F(DearHugepageTest, EachIsTouchedOnceInTheSpanThatBeginsIt) {
  const Span* span = New(kLongest);
  EXPECT_EQ(touched_, std::vector<char*>{span->end().start() - kPageSize});
  EXPECT_EQ(Grow(1), 1u);
}

TEST_F(DearHugepageTest, TheLockIsFreeMeanwhile) {
  heap_.system.on_touch = [this](void*) { heap_->Delete(heap_->New(Length(1))); };
  New(1);
  EXPECT_EQ(advice().size(), 1u);
}

TEST_F(DearHugepageTest, ThoseAtHandAreAskedForOneAfterTheOther) {
  cost_ = Growing::kMostNanoseconds;
  EXPECT_EQ(Grow(4), 4u);
}

TEST_F(DearHugepageTest, TimeThatPassesPaysForADearOne) {
  cost_ = kDear;
  EXPECT_EQ(Grow(4), 1u);
  heap_.system.now += Growing::kTimeShare * kDear - 1;
  EXPECT_EQ(Grow(1), 0u);
  heap_.system.now += 1;
  EXPECT_EQ(Grow(4), 1u);
}

TEST_F(DearHugepageTest, AfterOneAtHandOthersFollowAtOnce) {
  cost_ = kDear;
  EXPECT_EQ(Grow(1), 1u);
  heap_.system.now += Growing::kTimeShare * kDear;
  cost_ = 0;
  EXPECT_EQ(Grow(4), 4u);
}

TEST_F(DearHugepageTest, ARefusedOneIsNotTouched) {
  heap_.system.fail_advise = [](HugeAdvice) { return true; };
  EXPECT_EQ(Grow(2), 0u);
}

// The heap, which is large, ends with `rest` pages of a hugepage that nobody has touched, and will
// grow by `step`.
class HugepageCutShortTest : public GrowingHugepageTest {
 protected:
  void MakeLargeWithRest(uintptr_t rest, uintptr_t step) {
    heap_->set_growth(Growing::kLeastHeap + Length(rest), Growing::kLeastHeap + Length(rest));
    MakeLarge();
    EXPECT_EQ(heap_->stats().system, Growing::kLeastHeap + Length(rest));
    heap_->set_growth(Length(step), Length(step));
  }
};

TEST_F(HugepageCutShortTest, TheHeapGrowsBeforeItsLastHugepageBegins) {
  MakeLargeWithRest(kHuge / 2, 1);
  New(1);
  EXPECT_EQ(heap_->stats().system, Growing::kLeastHeap + Length(kHuge / 2 + kHuge));
  EXPECT_EQ(advice(), (Advice{{kFirst, HugeAdvice::kHugepage}}));
}

TEST_F(HugepageCutShortTest, ItGrowsByAsMuchAsAlways) {
  MakeLargeWithRest(kHuge / 2, 3 * kHuge);
  New(1);
  EXPECT_EQ(heap_->stats().system, Growing::kLeastHeap + Length(kHuge / 2 + 3 * kHuge));
}

TEST_F(HugepageCutShortTest, AWholeOneNeedsNoGrowth) {
  MakeLargeWithRest(kHuge, 1);
  New(1);
  EXPECT_EQ(heap_->stats().system, Growing::kLeastHeap + Length(kHuge));
  EXPECT_EQ(advice(), (Advice{{kFirst, HugeAdvice::kHugepage}}));
}

TEST_F(HugepageCutShortTest, OneThatOthersBeganNeedsNoGrowth) {
  MakeLargeWithRest(kHuge / 2, 1);
  heap_->set_release_half_life(0);
  New(1);
  heap_->set_release_half_life(kHalfLife);
  New(1);
  EXPECT_EQ(heap_->stats().system, Growing::kLeastHeap + Length(kHuge / 2));
}

TEST_F(HugepageCutShortTest, WhatASpanCutsShortNeedsNoGrowth) {
  MakeLarge();
  Span* hole = New(kHuge / 2);
  New(kHuge / 2);
  for (uintptr_t i = 0; i < Growing::kMostShort.pages(); ++i) New(1);
  const PageId first = hole->first;
  heap_->Delete(hole);
  heap_->ReleaseAtLeast(Length(1));
  const Length system = heap_->stats().system;
  EXPECT_EQ(New(1)->first, first);
  EXPECT_EQ(heap_->stats().system, system);
}

TEST_F(HugepageCutShortTest, WhereAddressesAreFewTheHeapGrowsWhenItMust) {
  for (bool FakeSystemMemory::* few : {&FakeSystemMemory::limited, &FakeSystemMemory::finite}) {
    heap_.system.*few = true;
    if (large_ == nullptr) MakeLargeWithRest(kHuge / 2, 1);
    New(1);
    EXPECT_EQ(heap_->stats().system, Growing::kLeastHeap + Length(kHuge / 2));
    heap_.system.*few = false;
  }
  EXPECT_TRUE(advice().empty());
}

TEST_F(HugepageCutShortTest, WhereHugepagesAreNotWantedTheHeapGrowsWhenItMust) {
  heap_.system.hugepages.mode = HugepageMode::kAlways;
  MakeLargeWithRest(kHuge / 2, 1);
  New(1);
  EXPECT_EQ(heap_->stats().system, Growing::kLeastHeap + Length(kHuge / 2));
}

TEST_F(HugepageCutShortTest, MemoryElsewhereIsAskedForOnce) {
  heap_.system.gap = kHugePageSize;
  MakeLargeWithRest(kHuge / 2, 1);
  Span* span = New(1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(heap_->stats().system, Growing::kLeastHeap + Length(kHuge / 2 + kHuge));
    heap_->Delete(span);
    heap_->ReleaseAtLeast(Length(1));
    span = New(1);
  }
}

// Where the end of the heap is longer after growth, another span is the shortest one, which has no
// room for what is aligned.
TEST_F(HugepageCutShortTest, AnAlignedSpanMakesNoHeapGrow) {
  MakeLargeWithRest(kHuge / 2, 1);
  ASSERT_NE(heap_->NewAligned(Length(1), Length(kHuge)), nullptr);
  EXPECT_EQ(heap_->stats().system, Growing::kLeastHeap + Length(kHuge / 2));
}

// The span that lacks the end has another record then.
TEST_F(HugepageCutShortTest, MemoryThatTheSystemPutsBeforeASpanMergesWithIt) {
  MakeLargeWithRest(0, kHuge);
  heap_.system.downwards = true;
  heap_.system.Allocate(kPageSize, kPageSize);
  Span* span = New(2);
  EXPECT_EQ(heap_->stats().system, Growing::kLeastHeap + Length(2 * kHuge));
  Fill(span, 'x');
  heap_->CheckInvariants();
  heap_->Delete(span);
}

TEST_F(HugepageCutShortTest, ARefusalLeavesEverythingAsItWas) {
  MakeLargeWithRest(kHuge / 2, 1);
  RefuseGrowth();
  New(1);
  EXPECT_EQ(heap_->stats().system, Growing::kLeastHeap + Length(kHuge / 2));
  EXPECT_TRUE(advice().empty());
}

TEST_F(GrowingHugepageTest, AHeapWithALimitAsksForNone) {
  heap_->set_limit(Length(128 * kHuge));
  MakeLarge();
  New(1);
  EXPECT_TRUE(advice().empty());
}

TEST_F(GrowingHugepageTest, ALimitThatIsSetLaterCountsAllOfIt) {
  MakeLarge();
  New(1);
  const Length limit = heap_->stats().committed() + Length(kHuge);
  heap_->set_limit(limit);
  New(kHuge);
  EXPECT_EQ(advice().back(), std::pair(kFirst, HugeAdvice::kNoHugepage));
  EXPECT_EQ(ReleasedLengths(), std::vector<uintptr_t>{kHuge - 1});
  EXPECT_LE(heap_->stats().committed(), limit);
}

TEST_F(GrowingHugepageTest, AHeapThatGivesAllFreeMemoryBackAtOnceAsksForNone) {
  heap_->set_aggressive_decommit(true);
  MakeLarge();
  New(1);
  EXPECT_TRUE(advice().empty());
}

TEST_F(GrowingHugepageTest, AHeapThatGivesNothingBackByTimeAsksForNone) {
  heap_->set_release_half_life(0);
  MakeLarge();
  New(1);
  EXPECT_TRUE(advice().empty());
}

TEST_F(GrowingHugepageTest, NobodyAsksWhereTheKernelDecidesAlone) {
  for (const HugepageMode mode : {HugepageMode::kNever, HugepageMode::kAlways}) {
    TestHeap heap;
    heap.system.hugepages = {.mode = mode, .hugepage_bytes = kHugePageSize};
    heap->set_growth(Length(64 * kHuge), Length(64 * kHuge));
    heap->set_release_half_life(kHalfLife);
    MakeLarge(heap);
    ASSERT_NE(heap->New(Length(1)), nullptr);
    EXPECT_TRUE(heap.system.advised().empty());
  }
}

TEST_F(GrowingHugepageTest, HugepagesOfAnotherSizeAreNotAskedFor) {
  heap_.system.hugepages.hugepage_bytes = 2 * kHugePageSize;
  MakeLarge();
  New(1);
  EXPECT_TRUE(advice().empty());
}

TEST_F(GrowingHugepageTest, ItsRestIsFreeAndGoesWithARelease) {
  MakeLarge();
  New(1);
  New(1);
  const Span* last = New(kLongest);
  const Length committed = heap_->stats().committed();
  EXPECT_EQ(heap_->ReleaseAtLeast(Length(1)), Length(kHuge - 2 - kLongest));
  EXPECT_LE(heap_->committed(), committed) << "for a limit that was computed before";
  EXPECT_EQ(heap_.system.released().front().start, last->end().start());
  EXPECT_EQ(heap_->stats().committed(), committed);
  EXPECT_EQ(heap_->stats().free, Length(0));
  EXPECT_EQ(advice().back(), std::pair(kFirst, HugeAdvice::kNoHugepage));
  EXPECT_EQ(heap_->ReleaseAtLeast(Length(1)), Length(0)) << "once";
}

TEST_F(GrowingHugepageTest, ALongSpanLeavesItsRestToShortOnes) {
  MakeLarge();
  const Span* first = New(1);
  const Span* large = New(kHuge);
  EXPECT_EQ(large->first, first->first + kPagesPerHugePage);
  EXPECT_EQ(heap_->stats().free, Length(kHuge - 1));
  EXPECT_EQ(advice().back(), std::pair(kFirst, HugeAdvice::kNoHugepage));
  EXPECT_EQ(New(1)->first, first->end());
}

TEST_F(GrowingHugepageTest, ItsRestIsFreeOnceAnotherBegins) {
  MakeLarge();
  Span* hole = New(kHuge);
  for (uintptr_t i = 0; i < 4 * kHuge + 1; ++i) New(1);
  EXPECT_EQ(advice().back(), std::pair(kFirst + 5, HugeAdvice::kHugepage));
  heap_->set_aggressive_decommit(true);
  heap_->Delete(hole);
  heap_->set_aggressive_decommit(false);
  New(1);
  EXPECT_EQ(advice().back(), std::pair(kFirst, HugeAdvice::kHugepage));
  EXPECT_EQ(heap_->stats().free, Length(kHuge - 1));
}

TEST_F(GrowingHugepageTest, PagesThatOthersTookOfItsRestStay) {
  MakeLarge();
  for (uintptr_t i = 0; i < kHuge; ++i) Fill(New(1), 'x');
  EXPECT_EQ(heap_->ReleaseAtLeast(Length(1)), Length(0));
  EXPECT_TRUE(heap_.system.released().empty());
}

TEST_F(GrowingHugepageTest, WhatIsBehindALongSpanInItsRestGoesWithARelease) {
  MakeLarge();
  New(1);
  New(kHuge / 4);
  New(1);
  EXPECT_EQ(heap_->ReleaseAtLeast(Length(1)), Length(kHuge - kHuge / 4 - 2));
}

TEST_F(GrowingHugepageTest, WhatIsBehindALongerSpanInItsRestGoesWithARelease) {
  MakeLarge();
  New(1);
  Span* growing = New(kHuge / 8);
  ASSERT_TRUE(heap_->TryExtend(growing, Length(kHuge / 4)));
  EXPECT_EQ(heap_->ReleaseAtLeast(Length(1)), Length(kHuge - kHuge / 4 - 1));
}

TEST_F(GrowingHugepageTest, ItsRestGoesWithAReleaseWhereASpanBeforeItWentAtOnce) {
  MakeLarge();
  New(1);
  Span* last = New(1);
  heap_->set_aggressive_decommit(true);
  heap_->Delete(last);
  heap_->set_aggressive_decommit(false);
  EXPECT_EQ(heap_->ReleaseAtLeast(Length(1)), Length(kHuge - 2));
  EXPECT_EQ(heap_->stats().free, Length(0));
}

TEST_F(GrowingHugepageTest, AnAlignedSpanEndsItAndBeginsNone) {
  MakeLarge();
  New(1);
  Span* aligned = heap_->NewAligned(Length(1), Length(kHuge));
  ASSERT_NE(aligned, nullptr);
  EXPECT_EQ(heap_->stats().free, Length(kHuge - 1));
  EXPECT_EQ(advice(), (Advice{{kFirst, HugeAdvice::kHugepage}, {kFirst, HugeAdvice::kNoHugepage}}));
}

TEST_F(GrowingHugepageTest, AReleaseByTimeEndsItToo) {
  MakeLarge();
  New(1);
  heap_->ReleaseUnused(1, Length::Max());
  EXPECT_EQ(heap_->stats().free + heap_->stats().returned, Length((64 - kFirst) * kHuge - 1));
  EXPECT_EQ(advice().back(), std::pair(kFirst, HugeAdvice::kNoHugepage));
}

TEST_F(GrowingHugepageTest, NothingOfARefusedOneBecomesFree) {
  heap_.system.fail_advise = [](HugeAdvice) { return true; };
  MakeLarge();
  New(1);
  EXPECT_EQ(heap_->ReleaseAtLeast(Length(1)), Length(0));
  EXPECT_TRUE(heap_.system.released().empty());
}

TEST_F(GrowingHugepageTest, ThoseThatDivideMappingsAreFew) {
  Growing growing;
  const PageId begin = PageId::Containing(heap_.system.begin());
  const auto take = [&](uintptr_t hugepage) {
    const PageId first = begin + kPagesPerHugePage * hugepage;
    Take(&growing, {first, Length(1)}, {first, kPagesPerHugePage});
  };
  for (uintptr_t i = 0; i < 2 * Growing::kMostApart; ++i) take(2 * i);
  EXPECT_EQ(heap_.system.advised().size(), 2 * Growing::kMostApart - 1);
  // Whatever follows the last one does not divide any.
  take(2 * Growing::kMostApart - 1);
  EXPECT_EQ(heap_.system.advised().size(), 2 * Growing::kMostApart + 1);
  growing.End(heap_.system);
  take(2 * Growing::kMostApart);
  EXPECT_EQ(heap_.system.advised().size(), 2 * Growing::kMostApart + 3);
}

TEST_F(GrowingHugepageTest, ARefusalChangesNothingAndErrnoStays) {
  heap_.system.fail_advise = [](HugeAdvice) {
    errno = EINVAL;
    return true;
  };
  MakeLarge();
  errno = 0;
  for (uintptr_t i = 0; i < 3 * kHuge; ++i) New(1);
  EXPECT_EQ(errno, 0);
}

}  // namespace
}  // namespace tcmalloc::testing
