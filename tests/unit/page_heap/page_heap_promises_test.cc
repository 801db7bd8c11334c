// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Promises of both page heaps.

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "test_heap.h"

namespace tcmalloc::testing {
namespace {

using State = Span::State;
using Lengths = std::vector<uintptr_t>;

template <typename Heap>
class PageHeapPromises : public PageHeapFixture<Heap> {
 protected:
  // Frees the first n pages of a row that is a hugepage long.
  void MakeFree(uintptr_t n) {
    Span* span = this->New(n);
    this->New(kHuge - n);
    this->heap_->Delete(span);
  }
};
using Heaps = ::testing::Types<TestHeap, HugeTestHeap>;
TYPED_TEST_SUITE(PageHeapPromises, Heaps);

TYPED_TEST(PageHeapPromises, ANewSpanIsInUseAndInTheMap) {
  Span* span = this->New(5);
  EXPECT_EQ(span->length, Length(5));
  EXPECT_EQ(span->state, State::kLarge);
  EXPECT_EQ(span->start(), this->heap_.system.begin());
  EXPECT_EQ(this->heap_.map->Get(span->first), span);
  EXPECT_EQ(this->heap_.map->Get(span->end() - Length(1)), span);
  EXPECT_EQ(this->heap_.map->FindInUse(span->start()), span);
  Fill(span, 'x');
  char* start = span->start();
  this->heap_->Delete(span);
  EXPECT_EQ(this->heap_.map->FindInUse(start), nullptr);
}

TYPED_TEST(PageHeapPromises, SpansForSmallObjectsComeBackAsLargeOnes) {
  for (uintptr_t n : {uintptr_t{4}, kHuge}) {
    Span* span = this->New(n);
    span->state = State::kSmall;
    span->size_class = 7;
    this->heap_->Delete(span);
    Span* again = this->New(n);
    EXPECT_EQ(again->state, State::kLarge);
    EXPECT_EQ(again->size_class, 0);
  }
}

TYPED_TEST(PageHeapPromises, DeletingTwiceCrashes) {
  Span* span = this->New(5);
  this->heap_->Delete(span);
  EXPECT_DEATH(this->heap_->Delete(span), "check failed: span->in_use");
}

TYPED_TEST(PageHeapPromises, RecordsAreRecycled) {
  for (int i = 0; i < 10; ++i) this->heap_->Delete(this->New(3));
  const size_t used = this->heap_.arena.stats().used_bytes;
  for (int i = 0; i < 1000; ++i) {
    Span* a = this->New(3);
    Span* b = this->New(5);
    this->heap_->Delete(a);
    this->heap_->Delete(b);
  }
  EXPECT_LE(this->heap_.arena.stats().used_bytes, used + 4 * sizeof(Span));
}

TYPED_TEST(PageHeapPromises, AlignedSpansAreAligned) {
  this->heap_->set_growth(Length(64));
  for (uintptr_t alignment = 1; alignment <= 4 * kHuge; alignment *= 2) {
    for (uintptr_t n : {uintptr_t{1}, uintptr_t{3}, kHuge - 1, kHuge, 2 * kHuge + 1}) {
      this->New(1);
      Span* span = this->heap_->NewAligned(Length(n), Length(alignment));
      ASSERT_NE(span, nullptr);
      EXPECT_EQ(span->length, Length(n));
      EXPECT_EQ(span->first.index() % alignment, 0u);
      EXPECT_EQ(this->heap_.map->FindInUse(span->start()), span);
      this->heap_->CheckInvariants();
    }
  }
}

TYPED_TEST(PageHeapPromises, ExtendingToLessAndTruncatingToMoreChangeNothing) {
  Span* span = this->New(10);
  EXPECT_TRUE(this->heap_->TryExtend(span, Length(10)));
  EXPECT_TRUE(this->heap_->TryExtend(span, Length(3)));
  EXPECT_EQ(span->length, Length(10));
  this->heap_->Truncate(span, Length(10));
  this->heap_->Truncate(span, Length(12));
  EXPECT_EQ(span->length, Length(10));
}

TYPED_TEST(PageHeapPromises, TheLastBlockExtendsIntoNewMemory) {
  for (uintptr_t n : {kHuge - 1, kHuge, 3 * kHuge + 1}) {
    Span* span = this->New(n);
    EXPECT_TRUE(this->heap_->TryExtend(span, Length(n + 5 * kHuge))) << n;
    EXPECT_EQ(span->length, Length(n + 5 * kHuge));
    EXPECT_EQ(this->heap_.map->FindInUse((span->end() - Length(1)).start()), span);
    this->heap_->CheckInvariants();
  }
}

TYPED_TEST(PageHeapPromises, NewMemoryElsewhereExtendsNothing) {
  this->heap_.system.gap = kHugePageSize;
  Span* span = this->New(kHuge);
  EXPECT_FALSE(this->heap_->TryExtend(span, Length(2 * kHuge)));
  EXPECT_EQ(span->length, Length(kHuge));
  this->RefuseGrowth();
  EXPECT_NE(this->TryNew(kHuge), nullptr) << "what the system gave is not lost";
}

TYPED_TEST(PageHeapPromises, ABlockBeforeTheLastDoesNotMakeTheHeapGrow) {
  Span* span = this->New(kHuge);
  this->New(kHuge);
  const size_t blocks = this->heap_.system.allocated().size();
  EXPECT_FALSE(this->heap_->TryExtend(span, Length(2 * kHuge)));
  EXPECT_EQ(this->heap_.system.allocated().size(), blocks);
}

TYPED_TEST(PageHeapPromises, TheLimitKeepsTheLastBlockFromGrowing) {
  Span* span = this->New(kHuge);
  this->heap_->set_limit(Length(2 * kHuge));
  EXPECT_FALSE(this->heap_->TryExtend(span, Length(3 * kHuge)));
  EXPECT_EQ(this->heap_.system.allocated().size(), 1u) << "nor may the heap grow for it";
  EXPECT_TRUE(this->heap_->TryExtend(span, Length(2 * kHuge)));
}

TYPED_TEST(PageHeapPromises, ABlockThatGrowsByMuchPrefersResidentMemoryElsewhere) {
  Span* unused = this->New(6 * kHuge);
  this->New(kHuge);
  Span* span = this->New(2 * kHuge);
  this->heap_->Delete(unused);
  const size_t blocks = this->heap_.system.allocated().size();
  EXPECT_FALSE(this->heap_->TryExtend(span, Length(4 * kHuge)));
  EXPECT_EQ(this->heap_.system.allocated().size(), blocks);
  EXPECT_TRUE(this->heap_->TryExtend(span, Length(2 * kHuge + kHuge / 2))) << "many small steps";
  EXPECT_TRUE(this->heap_->TryExtend(span, Length(7 * kHuge))) << "no other place is long enough";
}

TYPED_TEST(PageHeapPromises, UnusedPagesThatTheLimitForbidsAreNotExtendedEither) {
  Span* span = this->New(kHuge);
  this->heap_->Delete(this->New(kHuge));
  this->heap_->ReleaseAtLeast(Length::Max());
  this->heap_->set_limit(Length(2 * kHuge));
  const size_t blocks = this->heap_.system.allocated().size();
  EXPECT_FALSE(this->heap_->TryExtend(span, Length(3 * kHuge)));
  EXPECT_EQ(this->heap_.system.allocated().size(), blocks);
}

TYPED_TEST(PageHeapPromises, ABlockBehindWhichTheSystemPutsNothingAsksOnce) {
  this->heap_.system.downwards = true;
  Span* span = this->New(kHuge);
  for (uintptr_t n : {2, 2, 3, 4}) EXPECT_FALSE(this->heap_->TryExtend(span, Length(n * kHuge)));
  EXPECT_EQ(this->heap_.system.allocated().size(), 2u);
}

TYPED_TEST(PageHeapPromises, FreshMemoryIsKnownToBeZero) {
  for (uintptr_t n : {uintptr_t{2}, kHuge, 2 * kHuge + 3, uintptr_t{3}}) {
    Span* span = this->New(n);
    EXPECT_TRUE(span->zeroed) << n;
    EXPECT_TRUE(ReadsAsZero(span));
    Fill(span, 'x');
  }
}

TYPED_TEST(PageHeapPromises, ReusedMemoryIsNotKnownToBeZero) {
  for (uintptr_t n : {uintptr_t{2}, 2 * kHuge}) {
    Span* span = this->New(n);
    Fill(span, 'x');
    this->heap_->Delete(span);
    EXPECT_FALSE(this->New(n)->zeroed) << n;
  }
}

TYPED_TEST(PageHeapPromises, ReturnedMemoryIsZeroAgain) {
  for (uintptr_t n : {uintptr_t{2}, 2 * kHuge, 2 * kHuge + 2}) {
    Span* span = this->New(n);
    Fill(span, 'x');
    this->heap_->Delete(span);
    this->heap_->ReleaseAtLeast(Length::Max());
    span = this->New(n);
    EXPECT_TRUE(span->zeroed) << n;
    EXPECT_TRUE(ReadsAsZero(span));
    Fill(span, 'x');
  }
}

TYPED_TEST(PageHeapPromises, SuccessKeepsErrno) {
  errno = EDOM;
  this->heap_->Delete(this->New(10));
  EXPECT_EQ(errno, EDOM);
}

TYPED_TEST(PageHeapPromises, CheckInvariantsNoticesABrokenMap) {
  Span* span = this->New(3);
  this->New(1);
  this->heap_.map->Set(span->end() - Length(1), nullptr);
  EXPECT_DEATH(this->heap_->CheckInvariants(), "check failed");
  this->heap_.map->SetEnds(span);
}

TYPED_TEST(PageHeapPromises, CheckInvariantsNoticesAWrongState) {
  Span* span = this->New(kHuge);
  this->heap_->Delete(span);
  for (State state : {State::kUnused, State::kLarge, State::kReturned, State::kInTransit}) {
    span->state = state;
    EXPECT_DEATH(this->heap_->CheckInvariants(), "check failed");
  }
  span->state = State::kFree;
}

TYPED_TEST(PageHeapPromises, NullWhenTheSystemRefuses) {
  this->RefuseGrowth();
  EXPECT_EQ(this->TryNew(1), nullptr);
  EXPECT_EQ(this->TryNew(3 * kHuge), nullptr);
  EXPECT_EQ(this->heap_->NewAligned(Length(1), Length(16)), nullptr);
  EXPECT_EQ(this->heap_->stats().growth_failures, 3u);
  this->heap_.system.fail_allocate = nullptr;
  EXPECT_NE(this->TryNew(1), nullptr);
}

TYPED_TEST(PageHeapPromises, NullForImpossibleRequests) {
  for (Length n : {Length::Max(), Length(uintptr_t{1} << 50), Length((uintptr_t{1} << 35) + 1)}) {
    EXPECT_EQ(this->heap_->New(n), nullptr);
    EXPECT_EQ(this->heap_->NewAligned(n, Length(2)), nullptr);
  }
  EXPECT_EQ(this->heap_->NewAligned(Length(1), Length(uintptr_t{1} << 50)), nullptr);
  EXPECT_EQ(this->heap_->stats().system, Length(0));
}

TYPED_TEST(PageHeapPromises, AsksForLessWhereALargeStepIsRefused) {
  this->heap_->set_growth(Length(10 * kHuge));
  int calls = 0;
  this->heap_.system.fail_allocate = [&] {
    errno = ENOMEM;
    return ++calls == 1;
  };
  errno = EDOM;
  EXPECT_NE(this->TryNew(kHuge), nullptr);
  EXPECT_EQ(this->heap_.system.allocated().back().bytes, kHugePageSize);
  EXPECT_EQ(errno, EDOM);
}

// All of the address space is used up in small pieces, then everything is freed in a random order
// with releases in between: the largest block must come back.
TYPED_TEST(PageHeapPromises, LargestBlockComesBackAfterEverythingWasFreed) {
  TypeParam heap(size_t{64} << 20);
  const Length all = Length::FromBytesCeil(size_t{64} << 20);
  for (int round = 0; round < 3; ++round) {
    std::vector<Span*> spans;
    while (Span* span = heap->New(Length(1 + spans.size() % 7))) spans.push_back(span);
    while (Span* span = heap->New(Length(1))) spans.push_back(span);
    EXPECT_EQ(heap->stats().in_use(), all);
    for (size_t i = 0; i < spans.size(); ++i) {
      std::swap(spans[i], spans[i + (i * 7919) % (spans.size() - i)]);
      heap->Delete(spans[i]);
      if (i % 5 == 0) heap->ReleaseAtLeast(Length(1));
    }
    Span* largest = heap->New(all);
    ASSERT_NE(largest, nullptr);
    heap->Delete(largest);
    heap->CheckInvariants();
  }
}

TYPED_TEST(PageHeapPromises, ABlockWithoutMetadataGoesBackToTheSystem) {
  this->heap_.metadata.exhausted = true;
  EXPECT_EQ(this->TryNew(1), nullptr);
  ASSERT_GE(this->heap_.system.allocated().size(), 1u);
  EXPECT_EQ(this->heap_.system.unmapped(), this->heap_.system.allocated());
  EXPECT_EQ(this->heap_->stats().system, Length(0));
  this->heap_.metadata.exhausted = false;
  EXPECT_NE(this->TryNew(1), nullptr);
}

TYPED_TEST(PageHeapPromises, TheLimitHolds) {
  this->heap_->set_limit(Length(10));
  EXPECT_EQ(this->heap_->limit(), Length(10));
  EXPECT_NE(this->TryNew(6), nullptr);
  EXPECT_EQ(this->TryNew(5), nullptr);
  EXPECT_NE(this->TryNew(4), nullptr);
  EXPECT_EQ(this->TryNew(1), nullptr);
  EXPECT_EQ(this->heap_.system.allocated().size(), this->heap_->stats().growths);
  this->heap_->set_limit(Length(0));
  EXPECT_NE(this->TryNew(1), nullptr);
}

TYPED_TEST(PageHeapPromises, TheLimitBindsExtensionsToo) {
  this->heap_->set_growth(Length(kHuge));
  Span* span = this->New(3);
  this->heap_->set_limit(Length(5));
  EXPECT_FALSE(this->heap_->TryExtend(span, Length(6)));
  EXPECT_TRUE(this->heap_->TryExtend(span, Length(5)));
}

TYPED_TEST(PageHeapPromises, WhatCannotBeReleasedCountsAgainstTheLimit) {
  this->heap_->Delete(this->New(2 * kHuge));
  this->heap_->set_limit(Length(3 * kHuge));
  this->heap_.system.fail_release = [] { return true; };
  EXPECT_EQ(this->TryNew(3 * kHuge), nullptr);
  EXPECT_NE(this->TryNew(2 * kHuge), nullptr);
}

TYPED_TEST(PageHeapPromises, ReleasesAreCountedByTheirCause) {
  Length expected[kReleaseCauseCount];
  const auto count = [&](ReleaseCause cause, Length n) {
    EXPECT_GT(n, Length(0));
    expected[static_cast<size_t>(cause)] += n;
    for (size_t i = 0; i < kReleaseCauseCount; ++i) {
      EXPECT_EQ(this->heap_->stats().released_for[i], expected[i]) << i;
    }
  };
  const auto free_two = [&] { this->heap_->Delete(this->New(2 * kHuge)); };
  free_two();
  count(ReleaseCause::kProgram, this->heap_->ReleaseAtLeast(Length(1)));
  for (const ReleaseCause cause :
       {ReleaseCause::kBackground, ReleaseCause::kSoftLimit, ReleaseCause::kHardLimit}) {
    free_two();
    count(cause, this->heap_->ReleaseAtLeast(Length(1), cause));
  }
  free_two();
  this->heap_->set_limit(Length(3 * kHuge));
  Span* span = this->New(3 * kHuge);
  count(ReleaseCause::kHardLimit, Length(2 * kHuge));
  this->heap_->set_aggressive_decommit(true);
  this->heap_->Delete(span);
  count(ReleaseCause::kAllocator, Length(3 * kHuge));

  const Lengths released = this->ReleasedLengths();
  const uintptr_t sum = std::accumulate(released.begin(), released.end(), uintptr_t{0});
  EXPECT_EQ(this->heap_->stats().released(), Length(sum));
}

TYPED_TEST(PageHeapPromises, ReleasesByTimeAreCountedByTheirCause) {
  constexpr uint64_t kHalfLife = 8000;
  this->heap_->set_release_half_life(kHalfLife);
  this->heap_->Delete(this->New(8 * kHuge));
  uint64_t now = 1;
  for (const ReleaseCause cause : {ReleaseCause::kBackground, ReleaseCause::kAllocator}) {
    Length released;
    for (int i = 0; i < 3 * ReleaseDecay::kSteps; ++i) {
      now += kHalfLife / ReleaseDecay::kSteps;
      released += this->heap_->ReleaseUnused(now, Length::Max(), cause);
    }
    EXPECT_GT(released, Length(0));
    EXPECT_EQ(this->heap_->stats().released(cause), released);
  }
}

// A request that does not fit, whatever is released, is a hit alone.
TYPED_TEST(PageHeapPromises, ReleasesThatMakeRoomAreCounted) {
  this->heap_->Delete(this->New(2 * kHuge));
  this->heap_->set_limit(Length(3 * kHuge));
  EXPECT_EQ(this->TryNew(4 * kHuge), nullptr);
  EXPECT_EQ(this->heap_->stats().limit_shrinks, 0u);
  EXPECT_EQ(this->heap_->stats().limit_hits, 1u);
  this->heap_->set_limit(Length(0));
  this->heap_->Delete(this->New(2 * kHuge));
  this->heap_->set_limit(Length(3 * kHuge));
  EXPECT_NE(this->TryNew(3 * kHuge), nullptr);
  EXPECT_EQ(this->heap_->stats().limit_shrinks, 1u);
  EXPECT_EQ(this->heap_->stats().limit_hits, 2u);
}

// A request that fails only because another thread is giving memory back must wait for it.
TYPED_TEST(PageHeapPromises, MemoryOnItsWayIsWaitedFor) {
  this->heap_->Delete(this->New(kHuge));
  this->RefuseGrowth();
  std::atomic<bool> releasing{false};
  std::atomic<bool> asked{false};
  this->heap_.system.on_release = [&](const FakeSystemMemory::Block&) {
    releasing = true;
    while (!asked) std::this_thread::yield();
  };
  std::thread releaser([&] { this->heap_->ReleaseAtLeast(Length(1)); });
  while (!releasing) std::this_thread::yield();
  this->heap_.system.fail_allocate = [&] {
    asked = true;
    return true;
  };
  EXPECT_NE(this->TryNew(kHuge), nullptr);
  releaser.join();
}

TYPED_TEST(PageHeapPromises, UntouchedMemoryIsNotReleased) {
  this->heap_->set_growth(Length(kHuge));
  this->New(1);
  EXPECT_EQ(this->heap_->ReleaseAtLeast(Length::Max()), Length(0));
  EXPECT_TRUE(this->heap_.system.released().empty());
}

TYPED_TEST(PageHeapPromises, VeryLongRunsGoInPieces) {
  const Length piece = Length::FromBytesCeil(size_t{16} << 20);
  const Length length(20 * kHuge);
  this->heap_->Delete(this->New(length.pages()));
  EXPECT_EQ(this->heap_->ReleaseAtLeast(Length(1)), piece);
  // The end goes first, for requests are served from the beginning.
  const std::vector<Span> spans = this->heap_.SpansByAddress();
  EXPECT_EQ(spans[0].state, State::kFree);
  EXPECT_EQ(spans[0].length, length - piece);
  EXPECT_EQ(spans[1].state, State::kReturned);
  this->heap_->CheckInvariants();
  EXPECT_EQ(this->heap_->ReleaseAtLeast(Length::Max()), length - piece);
  EXPECT_EQ(this->heap_.SpansByAddress()[0].length, length);
}

TYPED_TEST(PageHeapPromises, SeveralRunsGoByOneCall) {
  for (uintptr_t n : {2u, 3u, 4u}) this->MakeFree(n);
  bool first = true;
  this->heap_.system.on_release = [&](const FakeSystemMemory::Block&) {
    if (first) {
      EXPECT_EQ(this->heap_->stats().in_transit, Length(9));
    }
    first = false;
  };
  EXPECT_EQ(this->heap_->ReleaseAtLeast(Length::Max()), Length(9));
  EXPECT_EQ(this->ReleasedLengths(), (Lengths{4, 3, 2}));
  EXPECT_EQ(this->heap_->stats().releases, 3u);
}

TYPED_TEST(PageHeapPromises, RefusedMemoryStaysFree) {
  for (uintptr_t n : {2u, 3u, 4u}) this->MakeFree(n);
  int calls = 0;
  this->heap_.system.fail_release = [&] {
    errno = ENOMEM;
    return ++calls != 2;
  };
  errno = EDOM;
  EXPECT_EQ(this->heap_->ReleaseAtLeast(Length::Max()), Length(3)) << "the second one";
  EXPECT_EQ(calls, 3) << "it is not tried again";
  EXPECT_EQ(errno, EDOM);
  const PageHeapStats stats = this->heap_->stats();
  EXPECT_EQ(stats.free, Length(6));
  EXPECT_EQ(stats.releases, 1u);
  EXPECT_EQ(stats.release_failures, 2u);
  EXPECT_EQ(stats.in_transit, Length(0));
  this->heap_->CheckInvariants();
  EXPECT_FALSE(this->New(4)->zeroed);
}

TYPED_TEST(PageHeapPromises, AnAggressiveReleaseThatFailsKeepsErrno) {
  Span* span = this->New(2);
  this->heap_->set_aggressive_decommit(true);
  this->heap_.system.fail_release = [] {
    errno = ENOMEM;
    return true;
  };
  errno = EDOM;
  this->heap_->Delete(span);
  EXPECT_EQ(errno, EDOM);
  EXPECT_EQ(this->heap_->stats().free, Length(2));
}

}  // namespace
}  // namespace tcmalloc::testing
