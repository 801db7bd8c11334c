// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The heap when the system refuses, metadata runs out, or a limit is reached.

#include <gtest/gtest.h>

#include <vector>

#include "page_heap/classic/page_heap.h"
#include "test_heap.h"

namespace tcmalloc::testing {
namespace {

using PageHeapPressureTest = PageHeapFixture<TestHeap>;

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
  EXPECT_EQ(TryNew(6), nullptr);
  EXPECT_NE(TryNew(5), nullptr);
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
  EXPECT_EQ(TryNew(11), nullptr);
}

TEST_F(PageHeapPressureTest, WithoutMetadataNothingIsLost) {
  // The first span takes what the arena has, record by record.
  Span* big = New(10000);
  ASSERT_NE(big, nullptr);
  heap_->Delete(big);
  heap_.metadata.exhausted = true;
  std::vector<Span*> spans;
  while (Span* span = TryNew(1)) spans.push_back(span);
  ASSERT_LT(spans.size(), 10000u);
  EXPECT_EQ(heap_->NewAligned(Length(1), Length(64)), nullptr);
  heap_->CheckInvariants();
  EXPECT_EQ(heap_->stats().system, Length(10000)) << "growing needs records too";
  // An allocation that needs no new record still works.
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
  while (Span* span = TryNew(1)) spans.push_back(span);
  // Merges with what is free behind it, which leaves one record; head and tail need two.
  heap_->Delete(spans.back());
  spans.pop_back();
  const uintptr_t first = spans.back()->end().index();
  const Length misaligning(2 * (first & -first));
  EXPECT_EQ(heap_->NewAligned(Length(1), misaligning), nullptr);
  heap_->CheckInvariants();
  EXPECT_NE(TryNew(1), nullptr);
}

TEST_F(PageHeapPressureTest, TheLimitIsOnResidentMemoryOnly) {
  heap_->set_growth(Length(1000));
  heap_->set_limit(Length(100));
  EXPECT_NE(TryNew(100), nullptr);
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
  EXPECT_NE(TryNew(60), nullptr);
  EXPECT_EQ(heap_.system.released().size(), 1u);
  EXPECT_EQ(heap_->stats().committed(), Length(92));
  // With what is released already, too.
  EXPECT_NE(TryNew(38), nullptr);
  EXPECT_EQ(heap_->stats().committed(), Length(100));
}

}  // namespace
}  // namespace tcmalloc::testing
