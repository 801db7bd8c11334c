// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What the heap does when the system refuses, metadata runs out, or a limit is reached.

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "page_heap/classic/page_heap.h"
#include "test_heap.h"

namespace tcmalloc::testing {
namespace {

class PageHeapPressureTest : public ::testing::Test {
 protected:
  ~PageHeapPressureTest() override { heap_->CheckInvariants(); }

  Span* New(uintptr_t pages) { return heap_->New(Length(pages)); }

  void RefuseGrowth() {
    heap_.system.fail_allocate = [] { return true; };
  }

  TestHeap heap_;
};

TEST_F(PageHeapPressureTest, NullWhenTheSystemRefuses) {
  RefuseGrowth();
  EXPECT_EQ(New(1), nullptr);
  EXPECT_EQ(heap_->NewAligned(Length(1), Length(16)), nullptr);
  EXPECT_EQ(heap_->stats().growth_failures, 2u);
  heap_.system.fail_allocate = nullptr;
  EXPECT_NE(New(1), nullptr);
}

TEST_F(PageHeapPressureTest, NullForImpossibleRequests) {
  for (Length n : {Length::Max(), Length(uintptr_t{1} << 50), Length((uintptr_t{1} << 35) + 1)}) {
    EXPECT_EQ(heap_->New(n), nullptr);
    EXPECT_EQ(heap_->NewAligned(n, Length(2)), nullptr);
  }
  EXPECT_EQ(heap_->NewAligned(Length(1), Length(uintptr_t{1} << 50)), nullptr);
  EXPECT_EQ(heap_->stats().system, Length(0));
}

TEST_F(PageHeapPressureTest, AsksForLessWhereALargeStepIsRefused) {
  heap_->set_growth(Length(1000));
  int calls = 0;
  heap_.system.fail_allocate = [&] {
    errno = ENOMEM;
    return ++calls == 1;
  };
  errno = EDOM;
  EXPECT_NE(New(10), nullptr);
  EXPECT_EQ(heap_.system.allocated().back().bytes, Length(10).bytes());
  EXPECT_EQ(errno, EDOM);
}

TEST_F(PageHeapPressureTest, MergesFreeAndReturnedRunsAsALastResort) {
  std::vector<Span*> row = {New(10), New(20), New(30), New(40), New(1)};
  const PageId first = row[0]->first;
  for (size_t i : {0u, 2u}) {
    heap_->Delete(row[i]);
    heap_->ReleaseAtLeast(Length(1));
  }
  heap_->Delete(row[1]);
  heap_->Delete(row[3]);
  ASSERT_EQ(heap_->stats().free, Length(60));
  RefuseGrowth();
  Span* span = New(95);
  ASSERT_NE(span, nullptr);
  EXPECT_EQ(span->first, first);
  EXPECT_FALSE(span->zeroed);
  EXPECT_EQ(heap_->stats().free, Length(5));
  heap_->CheckInvariants();
  EXPECT_EQ(New(6), nullptr);
  EXPECT_NE(New(5), nullptr);
}

TEST_F(PageHeapPressureTest, MergesRunsForAlignedRequests) {
  std::vector<Span*> row = {New(20), New(20), New(20), New(1)};
  heap_->Delete(row[1]);
  heap_->ReleaseAtLeast(Length(1));
  heap_->Delete(row[0]);
  heap_->Delete(row[2]);
  RefuseGrowth();
  Span* span = heap_->NewAligned(Length(24), Length(16));
  ASSERT_NE(span, nullptr);
  EXPECT_EQ(span->first.index() % 16, 0u);
}

TEST_F(PageHeapPressureTest, RunsAcrossGapsAreNotMerged) {
  heap_.system.gap = kPageSize;
  std::vector<Span*> spans = {New(10), New(10)};
  heap_->Delete(spans[0]);
  heap_->ReleaseAtLeast(Length(1));
  heap_->Delete(spans[1]);
  RefuseGrowth();
  EXPECT_EQ(New(11), nullptr);
}

// All of the address space is used up in small pieces, then everything is freed in a random order
// with releases in between: the largest block must come back.
TEST_F(PageHeapPressureTest, LargestBlockComesBackAfterEverythingWasFreed) {
  TestHeap heap(size_t{64} << 20);
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

TEST_F(PageHeapPressureTest, WithoutMetadataNothingIsLost) {
  // The first span takes what the arena has, record by record.
  Span* big = New(10000);
  ASSERT_NE(big, nullptr);
  heap_->Delete(big);
  heap_.metadata.exhausted = true;
  std::vector<Span*> spans;
  while (Span* span = New(1)) spans.push_back(span);
  ASSERT_LT(spans.size(), 10000u);
  EXPECT_EQ(heap_->NewAligned(Length(1), Length(64)), nullptr);
  heap_->CheckInvariants();
  EXPECT_EQ(heap_->stats().system, Length(10000)) << "growing needs records too";
  // What needs no new record still works.
  Span* rest = heap_->New(Length(10000 - spans.size()));
  ASSERT_NE(rest, nullptr);
  heap_->Truncate(rest, Length(1));
  EXPECT_EQ(rest->length, Length(10000 - spans.size()));
  heap_->Delete(rest);
  for (Span* span : spans) heap_->Delete(span);
  EXPECT_EQ(heap_->stats().free, Length(10000));
  EXPECT_EQ(heap_->stats().spans, 1u);
}

TEST_F(PageHeapPressureTest, MetadataThatRunsOutBetweenTwoCutsLosesNothing) {
  Span* big = New(10000);
  ASSERT_NE(big, nullptr);
  heap_->Delete(big);
  heap_.metadata.exhausted = true;
  std::vector<Span*> spans;
  while (Span* span = New(1)) spans.push_back(span);
  // Merges with what is free behind it, which leaves one record; head and tail need two.
  heap_->Delete(spans.back());
  spans.pop_back();
  const uintptr_t first = spans.back()->end().index();
  const Length misaligning(2 * (first & -first));
  EXPECT_EQ(heap_->NewAligned(Length(1), misaligning), nullptr);
  heap_->CheckInvariants();
  EXPECT_NE(New(1), nullptr);
}

TEST_F(PageHeapPressureTest, ABlockWithoutMetadataGoesBackToTheSystem) {
  heap_.metadata.exhausted = true;
  EXPECT_EQ(New(1), nullptr);
  ASSERT_EQ(heap_.system.allocated().size(), 1u);
  EXPECT_EQ(heap_.system.unmapped(), heap_.system.allocated());
  EXPECT_EQ(heap_->stats().system, Length(0));
  heap_.metadata.exhausted = false;
  EXPECT_NE(New(1), nullptr);
}

TEST_F(PageHeapPressureTest, TheLimitHolds) {
  heap_->set_limit(Length(100));
  EXPECT_EQ(heap_->limit(), Length(100));
  EXPECT_NE(New(60), nullptr);
  EXPECT_EQ(New(41), nullptr);
  EXPECT_NE(New(40), nullptr);
  EXPECT_EQ(New(1), nullptr);
  heap_->set_limit(Length(0));
  EXPECT_NE(New(1), nullptr);
}

TEST_F(PageHeapPressureTest, TheLimitIsOnResidentMemoryOnly) {
  heap_->set_growth(Length(1000));
  heap_->set_limit(Length(100));
  EXPECT_NE(New(100), nullptr);
  EXPECT_EQ(heap_->stats().system, Length(1000));
}

TEST_F(PageHeapPressureTest, FreeMemoryIsReleasedToStayWithinTheLimit) {
  Span* a = New(50);
  New(1);
  Span* b = New(30);
  New(1);
  heap_->set_limit(Length(100));
  heap_->Delete(a);
  heap_->Delete(b);
  EXPECT_NE(New(60), nullptr);
  EXPECT_EQ(heap_.system.released().size(), 1u);
  EXPECT_EQ(heap_->stats().committed(), Length(92));
  // With what is released already, too.
  EXPECT_NE(New(38), nullptr);
  EXPECT_EQ(heap_->stats().committed(), Length(100));
}

TEST_F(PageHeapPressureTest, TheLimitBindsExtensionsToo) {
  std::vector<Span*> row = {New(10), New(50)};
  heap_->Delete(row[1]);
  heap_->ReleaseAtLeast(Length(50));
  heap_->set_limit(Length(30));
  EXPECT_FALSE(heap_->TryExtend(row[0], Length(31)));
  EXPECT_TRUE(heap_->TryExtend(row[0], Length(30)));
}

TEST_F(PageHeapPressureTest, WhatCannotBeReleasedCountsAgainstTheLimit) {
  Span* a = New(50);
  New(1);
  heap_->Delete(a);
  heap_->set_limit(Length(100));
  heap_.system.fail_release = [] { return true; };
  EXPECT_EQ(New(60), nullptr);
  EXPECT_NE(New(45), nullptr);
}

// A request that fails only because another thread is giving memory back must wait for it.
TEST_F(PageHeapPressureTest, MemoryOnItsWayIsWaitedFor) {
  Span* span = New(50);
  ASSERT_NE(span, nullptr);
  heap_->Delete(span);
  RefuseGrowth();
  std::atomic<bool> releasing{false};
  std::atomic<bool> asked{false};
  heap_.system.on_release = [&](const FakeSystemMemory::Block&) {
    releasing = true;
    while (!asked) std::this_thread::yield();
  };
  std::thread releaser([&] { heap_->ReleaseAtLeast(Length(50)); });
  while (!releasing) std::this_thread::yield();
  heap_.system.fail_allocate = [&] {
    asked = true;
    return true;
  };
  EXPECT_NE(New(50), nullptr);
  releaser.join();
}

}  // namespace
}  // namespace tcmalloc::testing
