// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Giving memory back to the system.

#include <gtest/gtest.h>

#include <vector>

#include "fakes/set_clock.h"
#include "page_heap/classic/page_heap.h"
#include "test_heap.h"

namespace tcmalloc::testing {
namespace {

using State = Span::State;

class PageHeapReleaseTest : public PageHeapFixture<TestHeap> {
 protected:
  // Leaves free spans of these lengths, apart from each other.
  void MakeFree(const std::vector<uintptr_t>& lengths) {
    std::vector<Span*> spans;
    for (uintptr_t length : lengths) {
      spans.push_back(New(length));
      New(1);
    }
    for (Span* span : spans) heap_->Delete(span);
  }
};

using Lengths = std::vector<uintptr_t>;

TEST_F(PageHeapReleaseTest, LongestFirstUntilEnough) {
  MakeFree({5, 60, 20, 40});
  EXPECT_EQ(heap_->ReleaseAtLeast(Length(61)), Length(100));
  EXPECT_EQ(ReleasedLengths(), (Lengths{60, 40}));
  EXPECT_EQ(heap_->ReleaseAtLeast(Length(1)), Length(20));
  const PageHeapStats stats = heap_->stats();
  EXPECT_EQ(stats.free, Length(5));
  EXPECT_EQ(stats.returned, Length(120));
  EXPECT_EQ(stats.releases, 3u);
  EXPECT_EQ(stats.released(), Length(120));
}

TEST_F(PageHeapReleaseTest, AllIfThereIsLess) {
  MakeFree({5, 7});
  EXPECT_EQ(heap_->ReleaseAtLeast(Length::Max()), Length(12));
  EXPECT_EQ(heap_->stats().free, Length(0));
  EXPECT_EQ(heap_->ReleaseAtLeast(Length::Max()), Length(0));
  EXPECT_EQ(heap_->ReleaseAtLeast(Length(0)), Length(0));
}

TEST_F(PageHeapReleaseTest, ReturnedNeighboursCoalesce) {
  std::vector<Span*> spans = {New(4), New(5), New(6), New(1)};
  for (size_t i : {0u, 2u, 1u}) {
    heap_->Delete(spans[i]);
    heap_->ReleaseAtLeast(Length(1));
  }
  EXPECT_EQ(heap_->stats().spans, 2u);
  EXPECT_EQ(heap_->stats().returned, Length(15));
}

// Free spans that are all too short for it.
TEST_F(PageHeapReleaseTest, ARequestThatNeedsOtherMemoryIsOffsetByFreeMemory) {
  const Length n = GrowthOffset::kLeast;
  const uintptr_t shorter = n.pages() > 1 ? n.pages() - 1 : 1;
  if (shorter == n.pages()) GTEST_SKIP() << "no span is shorter";
  MakeFree({shorter, shorter, shorter});
  heap_->set_release_rate(ReleasePacer::kDefaultRate);
  const Length before = heap_->committed();
  Span* span = New(n.pages());
  EXPECT_EQ(heap_->committed(), before);
  EXPECT_EQ(heap_->stats().released(), n);
  heap_->Delete(span);
  New(n.pages());
  EXPECT_EQ(heap_->stats().released(), n) << "the request was served by free memory";
}

TEST_F(PageHeapReleaseTest, ABlockThatGrowsIntoNewMemoryIsOffsetAndOneThatCannotIsNot) {
  const uintptr_t n = GrowthOffset::kLeast.pages();
  MakeFree({n, n});
  Span* walled = New(2 * n);
  Span* last = New(2 * n);
  heap_->set_release_rate(ReleasePacer::kDefaultRate);
  EXPECT_FALSE(heap_->TryExtend(walled, Length(3 * n)));
  EXPECT_EQ(heap_->stats().released(), Length(0)) << "nothing became resident";
  EXPECT_TRUE(heap_->TryExtend(last, Length(3 * n)));
  EXPECT_EQ(heap_->stats().released(), Length(n));
}

// A long block and a short one by turns: each is made of what went back for the other.
TEST_F(PageHeapReleaseTest, NothingIsOffsetOnceWhatWentBackIsTakenAgain) {
  const SetClock clock;
  const uintptr_t n = GrowthOffset::kLeast.pages();
  New(3 * GrowthOffset::kFewNeedless.pages());
  MakeFree({2 * n});
  heap_->ReleaseAtLeast(Length::Max());
  MakeFree({n});
  heap_->set_release_rate(ReleasePacer::kDefaultRate);
  Length exchanged;
  for (Length offset(1); offset > Length(0) && exchanged < Length(20 * n); exchanged += offset) {
    const Length before = heap_->stats().released();
    Span* span = New(2 * n);
    offset = heap_->stats().released() - before;
    heap_->Delete(span);
    heap_->ReleaseAtLeast(Length(2 * n));
    heap_->Delete(New(n));
  }
  EXPECT_GT(exchanged, GrowthOffset::kFewNeedless);
  EXPECT_LE(exchanged, GrowthOffset::kFewNeedless + Length(2 * n));
}

TEST_F(PageHeapReleaseTest, GrowthIsOffsetWhateverTheProgramGaveBackBefore) {
  const SetClock clock;
  const uintptr_t n = GrowthOffset::kLeast.pages();
  const uintptr_t many = 3 * GrowthOffset::kFewNeedless.pages();
  heap_->Delete(New(many));
  heap_->ReleaseAtLeast(Length::Max());
  New(many);
  heap_->set_release_rate(ReleasePacer::kDefaultRate);
  for (int i = 0; i < 2; ++i) {
    MakeFree({n});
    const Length before = heap_->stats().released();
    New(2 * n);
    EXPECT_EQ(heap_->stats().released(), before + Length(n));
  }
}

TEST_F(PageHeapReleaseTest, NothingIsOffsetAtRateZero) {
  const uintptr_t n = GrowthOffset::kLeast.pages();
  MakeFree({n, n});
  New(2 * n);
  EXPECT_EQ(heap_->stats().released(), Length(0));
}

TEST_F(PageHeapReleaseTest, TheHeapIsUsableDuringARelease) {
  MakeFree({50, 20});
  int calls = 0;
  heap_.system.on_release = [&](const FakeSystemMemory::Block& block) {
    if (++calls != 1) return;
    EXPECT_EQ(heap_->stats().in_transit, Length(50));
    heap_->CheckInvariants();
    // Neither served from what is on its way, nor merged with it.
    Span* span = heap_->New(Length(20));
    EXPECT_FALSE(heap_.system.begin() == span->start());
    EXPECT_NE(span->start(), block.start);
    heap_->Delete(heap_->New(Length(30)));
    heap_->CheckInvariants();
  };
  EXPECT_EQ(heap_->ReleaseAtLeast(Length(50)), Length(50));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(heap_->stats().in_transit, Length(0));
}

TEST_F(PageHeapReleaseTest, NeighboursOfAReleaseCoalesceAfterIt) {
  std::vector<Span*> row = {New(10), New(50), New(10), New(1)};
  heap_->Delete(row[0]);
  heap_->ReleaseAtLeast(Length(10));
  heap_->Delete(row[1]);
  heap_.system.on_release = [&](const FakeSystemMemory::Block&) { heap_->Delete(row[2]); };
  heap_->ReleaseAtLeast(Length(50));
  EXPECT_EQ(heap_->stats().returned, Length(60));
  EXPECT_EQ(heap_->stats().free, Length(10));
  EXPECT_EQ(heap_->stats().spans, 3u);
}

TEST_F(PageHeapReleaseTest, WhatBecomesFreeMeanwhileDoesNotProlongARelease) {
  std::vector<Span*> spans;
  for (int i = 0; i < 20; ++i) {
    spans.push_back(New(1));
    New(1);
  }
  const auto free_one = [&](const FakeSystemMemory::Block&) {
    if (spans.empty()) return;
    heap_->Delete(spans.back());
    spans.pop_back();
  };
  free_one({});
  heap_.system.on_release = free_one;
  EXPECT_EQ(heap_->ReleaseAtLeast(Length::Max()), Length(1));
}

TEST_F(PageHeapReleaseTest, RateDecidesHowMuchDeleteReleases) {
  for (double rate : {1.0, 10.0}) {
    TestHeap heap;
    heap->set_release_rate(rate);
    EXPECT_EQ(heap->release_rate(), rate);
    // Many free spans of one page, so that a release is of one page.
    std::vector<Span*> spans;
    for (int i = 0; i < 40000; ++i) spans.push_back(heap->New(Length(1)));
    uint64_t freed = 0;
    for (size_t i = 0; i < spans.size(); i += 2, ++freed) heap->Delete(spans[i]);
    const auto released = static_cast<double>(heap->stats().released().pages());
    EXPECT_NEAR(released, static_cast<double>(freed) * rate / 1000, 1);
    heap->CheckInvariants();
  }
}

TEST_F(PageHeapReleaseTest, RateZeroReleasesNothing) {
  for (int i = 0; i < 1000; ++i) heap_->Delete(New(1000));
  EXPECT_TRUE(heap_.system.released().empty());
}

TEST_F(PageHeapReleaseTest, TruncateCountsAsFreeing) {
  heap_->set_release_rate(1);
  Span* span = New(1001);
  heap_->Truncate(span, Length(1));
  EXPECT_EQ(ReleasedLengths().size(), 1u);
}

TEST_F(PageHeapReleaseTest, AggressiveDecommitReleasesAtOnce) {
  std::vector<Span*> row = {New(4), New(5), New(6), New(1)};
  heap_->set_aggressive_decommit(true);
  EXPECT_TRUE(heap_->aggressive_decommit());
  for (size_t i : {0u, 2u, 1u}) heap_->Delete(row[i]);
  EXPECT_EQ(heap_->stats().free, Length(0));
  EXPECT_EQ(heap_->stats().returned, Length(15));
  EXPECT_EQ(heap_->stats().spans, 2u);
  EXPECT_EQ(ReleasedLengths(), (Lengths{4, 6, 5}));
}

TEST_F(PageHeapReleaseTest, AggressiveDecommitTakesFreeNeighboursAlong) {
  std::vector<Span*> row = {New(4), New(5), New(1)};
  heap_->Delete(row[0]);
  heap_->set_aggressive_decommit(true);
  heap_->Delete(row[1]);
  EXPECT_EQ(ReleasedLengths(), (Lengths{9}));
}

constexpr uint64_t kHalfLife = 8'000'000'000;

class PageHeapDecayTest : public PageHeapReleaseTest {
 protected:
  PageHeapDecayTest() {
    heap_->set_release_half_life(kHalfLife);
    heap_->ReleaseUnused(now_, Length::Max());
  }

  Length Pass(uint64_t ns, Length most = Length::Max()) {
    now_ += ns;
    return heap_->ReleaseUnused(now_, most);
  }

  uint64_t now_ = 1;
};

TEST_F(PageHeapDecayTest, FreeMemoryGoesAsTimePasses) {
  MakeFree({1000, 3000});
  EXPECT_EQ(Pass(kHalfLife / 2), Length(0));
  Pass(kHalfLife / 2);
  for (int i = 0; i < 8; ++i) Pass(kHalfLife / 8);
  EXPECT_NEAR(static_cast<double>(heap_->stats().free.pages()), 2000, 250);
  Pass(20 * kHalfLife);
  EXPECT_EQ(heap_->stats().free, Length(0));
}

TEST_F(PageHeapDecayTest, NoMoreThanWhatIsAllowedAtOnce) {
  MakeFree({1000, 3000});
  EXPECT_EQ(Pass(20 * kHalfLife, Length(100)), Length(100));
  Length released(100);
  for (Length last(1); last > Length(0);) {
    last = Pass(0, Length(1000));
    EXPECT_LE(last, Length(1000));
    released += last;
  }
  EXPECT_EQ(released, Length(4000)) << "until nothing more goes, though less went at times";
}

TEST_F(PageHeapDecayTest, MemoryInUseNowAndThenStays) {
  MakeFree({1000});
  for (int i = 0; i < 20; ++i) {
    heap_->Delete(New(1000));
    EXPECT_EQ(Pass(kHalfLife / 2), Length(0));
  }
}

// Makes requests each of which is longer than what those before it left, with a page in use that
// keeps spans apart. What nothing needed at once, as far as the heap remembers, is not resident.
void ExpectCap(TestHeap& heap) {
  heap->set_release_rate(1);
  const uintptr_t least = GrowthCap::kSlack.pages() / 2;
  constexpr uintptr_t kRounds = 100;
  for (uintptr_t i = 0; i < kRounds; ++i) {
    heap->Truncate(heap->New(Length(least + i)), Length(1));
    const Length most_in_use(least + 2 * i + 1);
    EXPECT_LE(heap->stats().committed(),
              most_in_use + Length(most_in_use.pages() / 2) + GrowthCap::kSlack)
        << i;
  }
}

TEST_F(PageHeapReleaseTest, WhatNothingEverNeededAtOnceIsNotResident) {
  // What the system has not got is no need.
  EXPECT_EQ(TryNew(uintptr_t{1} << 30), nullptr);
  ExpectCap(heap_);
}

TEST_F(PageHeapDecayTest, AnOldPeakIsForgotten) {
  heap_->Delete(New(6 * GrowthCap::kSlack.pages()));
  for (int i = 0; i < 2; ++i) Pass(2 * GrowthCap::kHalfLives * kHalfLife);
  EXPECT_EQ(heap_->stats().free, Length(0));
  ExpectCap(heap_);
}

TEST_F(PageHeapDecayTest, WhatTheSystemRefusesStaysAndIsTriedAgain) {
  MakeFree({1000});
  bool refuse = true;
  heap_.system.fail_release = [&] { return refuse; };
  EXPECT_EQ(Pass(20 * kHalfLife), Length(0));
  EXPECT_EQ(heap_->stats().free, Length(1000));
  refuse = false;
  EXPECT_EQ(Pass(0), Length(1000));
}

}  // namespace
}  // namespace tcmalloc::testing
