// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What the heap does when the system refuses, metadata runs out, or a limit is reached.

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "page_heap/huge/huge_page_heap.h"
#include "unit/page_heap/test_heap.h"

namespace tcmalloc::testing {
namespace {

constexpr uintptr_t kHuge = kPagesPerHugePage.pages();

class HugePageHeapPressureTest : public ::testing::Test {
 protected:
  ~HugePageHeapPressureTest() override { heap_->CheckInvariants(); }

  Span* New(uintptr_t pages) { return heap_->New(Length(pages)); }
  void RefuseGrowth() {
    heap_.system.fail_allocate = [] { return true; };
  }
  // Takes everything that the arena and the pools have, so that no record can be had.
  void ExhaustMetadata() {
    heap_.metadata.exhausted = true;
    while (heap_.arena.Allocate(8, 8) != nullptr) continue;
  }

  HugeTestHeap heap_;
};

TEST_F(HugePageHeapPressureTest, NullWhenTheSystemRefuses) {
  RefuseGrowth();
  EXPECT_EQ(New(1), nullptr);
  EXPECT_EQ(New(3 * kHuge), nullptr);
  EXPECT_EQ(heap_->NewAligned(Length(1), Length(16)), nullptr);
  EXPECT_EQ(heap_->stats().growth_failures, 3u);
  heap_.system.fail_allocate = nullptr;
  EXPECT_NE(New(1), nullptr);
}

TEST_F(HugePageHeapPressureTest, NullForImpossibleRequests) {
  for (Length n : {Length::Max(), Length(uintptr_t{1} << 50), Length((uintptr_t{1} << 35) + 1)}) {
    EXPECT_EQ(heap_->New(n), nullptr);
    EXPECT_EQ(heap_->NewAligned(n, Length(2)), nullptr);
  }
  EXPECT_EQ(heap_->NewAligned(Length(1), Length(uintptr_t{1} << 50)), nullptr);
  EXPECT_EQ(heap_->stats().system, Length(0));
}

TEST_F(HugePageHeapPressureTest, AsksForLessWhereALargeStepIsRefused) {
  heap_->set_growth(Length(10 * kHuge));
  int calls = 0;
  heap_.system.fail_allocate = [&] {
    errno = ENOMEM;
    return ++calls == 1;
  };
  errno = EDOM;
  EXPECT_NE(New(10), nullptr);
  EXPECT_EQ(heap_.system.allocated().back().bytes, kHugePageSize);
  EXPECT_EQ(errno, EDOM);
}

TEST_F(HugePageHeapPressureTest, AnyRunWillDoAsALastResort) {
  // The end of one hugepage, a whole one, and the beginning of a third.
  heap_->set_growth(kPagesPerHugePage * 3);
  std::vector<Span*> row;
  for (uintptr_t i = 0; i < 6; ++i) row.push_back(New(kHuge / 2));
  for (size_t i : {1u, 2u, 3u, 4u}) heap_->Delete(row[i]);
  RefuseGrowth();
  Span* span = New(2 * kHuge);
  ASSERT_NE(span, nullptr);
  EXPECT_EQ(span->first, row[0]->end());
  heap_->CheckInvariants();
  EXPECT_EQ(New(1), nullptr);
  heap_->Delete(span);
  EXPECT_EQ(heap_->stats().free, Length(2 * kHuge));
}

TEST_F(HugePageHeapPressureTest, LargestBlockComesBackAfterEverythingWasFreed) {
  HugeTestHeap heap(size_t{64} << 20);
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

TEST_F(HugePageHeapPressureTest, WithoutMetadataNothingIsLost) {
  heap_->set_growth(kPagesPerHugePage * 50);
  std::vector<Span*> spans = {New(1), New(2 * kHuge)};
  ExhaustMetadata();
  while (Span* span = New(1)) spans.push_back(span);
  const PageHeapStats before = heap_->stats();
  EXPECT_EQ(New(1), nullptr);
  EXPECT_EQ(New(2 * kHuge + 1), nullptr);
  EXPECT_EQ(heap_->NewAligned(Length(1), Length(64)), nullptr);
  EXPECT_FALSE(heap_->TryExtend(spans[1], Length(2 * kHuge + 1)));
  heap_->Truncate(spans[1], Length(2 * kHuge - 1));
  EXPECT_EQ(spans[1]->length, Length(2 * kHuge));
  EXPECT_EQ(heap_->ReleaseAtLeast(Length(1)), Length(0));
  heap_->CheckInvariants();
  EXPECT_EQ(heap_->stats().in_use(), before.in_use());
  EXPECT_EQ(heap_->stats().system, before.system);
  for (Span* span : spans) heap_->Delete(span);
  EXPECT_EQ(heap_->stats().in_use(), Length(0));
  heap_->CheckInvariants();
}

TEST_F(HugePageHeapPressureTest, ABlockWithoutMetadataGoesBackToTheSystem) {
  heap_.metadata.exhausted = true;
  EXPECT_EQ(New(1), nullptr);
  ASSERT_GE(heap_.system.allocated().size(), 1u);
  EXPECT_EQ(heap_.system.unmapped(), heap_.system.allocated());
  EXPECT_EQ(heap_->stats().system, Length(0));
  heap_.metadata.exhausted = false;
  EXPECT_NE(New(1), nullptr);
}

TEST_F(HugePageHeapPressureTest, TheLimitHolds) {
  heap_->set_limit(Length(10));
  EXPECT_NE(New(6), nullptr);
  EXPECT_EQ(New(5), nullptr);
  EXPECT_NE(New(4), nullptr);
  EXPECT_EQ(New(1), nullptr);
  EXPECT_EQ(heap_.system.allocated().size(), heap_->stats().growths);
  heap_->set_limit(Length(0));
  EXPECT_NE(New(1), nullptr);
}

TEST_F(HugePageHeapPressureTest, FreeMemoryIsReleasedToStayWithinTheLimit) {
  Span* a = New(2 * kHuge);
  Span* b = New(2);
  New(1);
  heap_->set_limit(Length(2 * kHuge + 4));
  heap_->Delete(a);
  heap_->Delete(b);
  // Resident memory is used without looking at the limit; more needs room.
  EXPECT_NE(New(2), nullptr);
  EXPECT_TRUE(heap_.system.released().empty());
  EXPECT_NE(New(3 * kHuge / 2), nullptr);
  EXPECT_LE(heap_->stats().committed(), heap_->limit());
}

TEST_F(HugePageHeapPressureTest, TheLimitBindsExtensionsToo) {
  Span* span = New(3);
  heap_->set_limit(Length(5));
  EXPECT_FALSE(heap_->TryExtend(span, Length(6)));
  EXPECT_TRUE(heap_->TryExtend(span, Length(5)));
}

TEST_F(HugePageHeapPressureTest, WhatCannotBeReleasedCountsAgainstTheLimit) {
  heap_->Delete(New(2 * kHuge));
  heap_->set_limit(Length(3 * kHuge));
  heap_.system.fail_release = [] { return true; };
  EXPECT_EQ(New(3 * kHuge), nullptr);
  EXPECT_NE(New(2 * kHuge), nullptr);
}

// A request that fails only because another thread is giving memory back must wait for it.
TEST_F(HugePageHeapPressureTest, MemoryOnItsWayIsWaitedFor) {
  heap_->Delete(New(kHuge));
  RefuseGrowth();
  std::atomic<bool> releasing{false};
  std::atomic<bool> asked{false};
  heap_.system.on_release = [&](const FakeSystemMemory::Block&) {
    releasing = true;
    while (!asked) std::this_thread::yield();
  };
  std::thread releaser([&] { heap_->ReleaseAtLeast(Length(1)); });
  while (!releasing) std::this_thread::yield();
  heap_.system.fail_allocate = [&] {
    asked = true;
    return true;
  };
  EXPECT_NE(New(kHuge), nullptr);
  releaser.join();
}

}  // namespace
}  // namespace tcmalloc::testing
