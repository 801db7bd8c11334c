// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Where spans are put, in-place growth, coalescing and the flag for zeroed memory.

#include "page_heap/huge/huge_page_heap.h"

#include <gtest/gtest.h>

#include <vector>

#include "unit/page_heap/test_heap.h"

namespace tcmalloc::testing {
namespace {

using State = Span::State;

using HugePageHeapTest = PageHeapFixture<HugeTestHeap>;

TEST_F(HugePageHeapTest, GrowsByWholeHugepagesAndFillsThem) {
  for (uintptr_t i = 0; i < kHuge; ++i) New(1);
  ASSERT_EQ(heap_.system.allocated().size(), 1u);
  EXPECT_EQ(heap_.system.allocated()[0].bytes, kHugePageSize);
  New(1);
  EXPECT_EQ(heap_.system.allocated().size(), 2u);
  EXPECT_EQ(heap_->stats().growths, 2u);
}

TEST_F(HugePageHeapTest, GrowsByAnEighthWithinBounds) {
  heap_->set_growth(kPagesPerHugePage, kPagesPerHugePage * 3);
  const auto step = [&] { return heap_.system.allocated().back().bytes / kHugePageSize; };
  New(16 * kHuge);
  New(kHuge);
  EXPECT_EQ(step(), 2u);
  New(20 * kHuge);
  New(2 * kHuge);
  EXPECT_EQ(step(), 3u);
}

TEST_F(HugePageHeapTest, FreshMemoryCountsAsReturned) {
  New(3);
  const PageHeapStats stats = heap_->stats();
  EXPECT_EQ(stats.system, kPagesPerHugePage);
  EXPECT_EQ(stats.in_use(), Length(3));
  EXPECT_EQ(stats.returned, kPagesPerHugePage - Length(3));
  EXPECT_EQ(stats.committed(), Length(3));
}

TEST_F(HugePageHeapTest, AShortSpanTakesTheShortestRun) {
  std::vector<Span*> row;
  for (uintptr_t n : {2u, 1u, 1u, 1u}) row.push_back(New(n));
  const PageId one = row[2]->first;
  heap_->Delete(row[0]);
  heap_->Delete(row[2]);
  EXPECT_EQ(New(1)->first, one);
}

TEST_F(HugePageHeapTest, NoLongRunIsBrokenForAShortSpan) {
  // Hugepages with holes of one page, of three, and none.
  std::vector<Span*> all;
  for (uintptr_t i = 0; i < 3 * kHuge; ++i) all.push_back(New(1));
  for (uintptr_t i : {uintptr_t{1}, kHuge + 2, kHuge + 3, kHuge + 4}) heap_->Delete(all[i]);
  Span* span = New(1);
  EXPECT_EQ(HugePage::Containing(span->first), HugePage::Containing(all[0]->first));
  EXPECT_EQ(New(3)->first, all[kHuge + 1]->end());
}

TEST_F(HugePageHeapTest, AnEmptyHugepageServesLongSpans) {
  std::vector<Span*> spans;
  for (uintptr_t i = 0; i < 2 * kHuge; ++i) spans.push_back(New(1));
  for (Span* span : spans) heap_->Delete(span);
  EXPECT_EQ(heap_->huge_stats().shared, 1u) << "for the next short span";
  New(2 * kHuge);
  EXPECT_EQ(heap_->huge_stats().shared, 0u);
  EXPECT_EQ(heap_.system.allocated().size(), 2u) << "has not grown";
}

TEST_F(HugePageHeapTest, LongSpansBeginAtHugepagesAndShareTheirTails) {
  Span* span = New(2 * kHuge - 2);
  EXPECT_TRUE(IsHugeAligned(span->first));
  EXPECT_EQ(New(2)->first, span->end());
  const PageId first = span->first;
  heap_->Delete(span);
  EXPECT_EQ(New(kHuge)->first, first);
}

TEST_F(HugePageHeapTest, TheSameLongSpanNeedsTheSameMemory) {
  heap_->set_growth(kPagesPerHugePage * 100);
  for (int i = 0; i < 50; ++i) heap_->Delete(New(4 * kHuge - 2));
  EXPECT_LE(heap_->stats().free, Length(4 * kHuge));
}

TEST_F(HugePageHeapTest, OddLongSpansMoveIntoARegion) {
  // Each of the first few leaves nearly a hugepage over, which nobody uses.
  const uintptr_t odd = kHuge + 1;
  std::vector<Span*> spans;
  while (heap_->huge_stats().regions == 0) {
    spans.push_back(New(odd));
    ASSERT_LT(spans.size(), 20u);
  }
  EXPECT_GE(spans.size(), 8u);
  Span* neighbour = New(odd);
  EXPECT_EQ(neighbour->first, spans.back()->end());
  spans.push_back(neighbour);
  heap_->CheckInvariants();
  heap_->Truncate(neighbour, Length(odd - 3));
  EXPECT_TRUE(heap_->TryExtend(neighbour, Length(2 * kHuge + 3)));
  heap_->CheckInvariants();
  for (Span* span : spans) heap_->Delete(span);
  EXPECT_EQ(heap_->huge_stats().regions, 0u);
  heap_->ReleaseAtLeast(Length::Max());
  EXPECT_EQ(heap_->stats().spans, 1u);
}

TEST_F(HugePageHeapTest, ExtendsAsFarAsNobodyUses) {
  Span* span = New(2);
  Span* next = New(1);
  EXPECT_FALSE(heap_->TryExtend(span, Length(3)));
  heap_->Delete(next);
  EXPECT_TRUE(heap_->TryExtend(span, Length(kHuge)));
  EXPECT_EQ(heap_->huge_stats().shared, 0u) << "wholly inside one span";
  RefuseGrowth();
  EXPECT_FALSE(heap_->TryExtend(span, Length(kHuge + 1))) << "beyond the heap";
  EXPECT_TRUE(heap_->TryExtend(span, Length(3)));
  EXPECT_EQ(span->length, Length(kHuge));
}

TEST_F(HugePageHeapTest, ExtendsOverHugepagesOfEveryKind) {
  heap_->set_growth(kPagesPerHugePage * 6, kPagesPerHugePage * 6);
  Span* span = New(2);
  for (uintptr_t n : {3 * kHuge + 1, 3 * kHuge + 5, 5 * kHuge + 3, 6 * kHuge}) {
    ASSERT_TRUE(heap_->TryExtend(span, Length(n)));
    EXPECT_EQ(heap_.map->FindInUse(span->start() + span->bytes() - 1), span);
    heap_->CheckInvariants();
  }
  EXPECT_FALSE(span->zeroed);
  heap_->Delete(span);
  EXPECT_EQ(heap_->stats().free, heap_->stats().system);
  EXPECT_EQ(heap_->stats().spans, 1u);
}

TEST_F(HugePageHeapTest, TruncateGivesTheTailBack) {
  Span* span = New(4 * kHuge);
  for (uintptr_t n : {3 * kHuge + 2, 3 * kHuge, 2 * kHuge + 1, uintptr_t{1}}) {
    heap_->Truncate(span, Length(n));
    EXPECT_EQ(span->length, Length(n));
    EXPECT_EQ(heap_->stats().free, Length(4 * kHuge - n));
    heap_->CheckInvariants();
  }
  heap_->Truncate(span, Length(1));
  EXPECT_EQ(span->length, Length(1));
}

TEST_F(HugePageHeapTest, MemoryThatTheSystemDoesNotClearIsDirty) {
  heap_.system.zeroed = false;
  EXPECT_FALSE(New(2)->zeroed);
  EXPECT_FALSE(New(kHuge)->zeroed);
}

TEST_F(HugePageHeapTest, ForEachSpanVisitsWhatIsThere) {
  Span* a = New(2);
  New(1);
  Span* c = New(3);
  heap_->Delete(a);
  const std::vector<Span> spans = heap_.SpansByAddress();
  ASSERT_EQ(spans.size(), 4u);
  EXPECT_EQ(spans[0].state, State::kFree);
  EXPECT_EQ(spans[0].length, Length(2));
  EXPECT_EQ(spans[1].state, State::kLarge);
  EXPECT_EQ(spans[2].first, c->first);
  EXPECT_EQ(spans[3].state, State::kReturned);
  EXPECT_EQ(spans[3].length, Length(kHuge - 6));
  EXPECT_TRUE(spans[3].zeroed);
}

}  // namespace
}  // namespace tcmalloc::testing
