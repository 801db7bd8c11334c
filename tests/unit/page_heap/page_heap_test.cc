// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Allocation, best fit, coalescing, in-place growth and the flag for zeroed memory.

#include "page_heap/classic/page_heap.h"

#include <gtest/gtest.h>

#include <vector>

#include "test_heap.h"

namespace tcmalloc::testing {
namespace {

using State = Span::State;

class PageHeapTest : public PageHeapFixture<TestHeap> {
 protected:
  // Spans of these lengths side by side, in use.
  std::vector<Span*> NewRow(const std::vector<uintptr_t>& lengths) {
    std::vector<Span*> row;
    for (uintptr_t length : lengths) {
      row.push_back(New(length));
      if (row.size() > 1) {
        EXPECT_EQ(row.back()->first, row[row.size() - 2]->end());
      }
    }
    return row;
  }
};

TEST_F(PageHeapTest, GrowsInStepsAndServesFromThem) {
  heap_->set_growth(Length(100));
  for (int i = 0; i < 10; ++i) New(10);
  EXPECT_EQ(heap_.system.allocated().size(), 1u);
  New(1);
  EXPECT_EQ(heap_.system.allocated().size(), 2u);
  EXPECT_EQ(heap_->stats().growths, 2u);
  EXPECT_EQ(heap_->stats().system, Length(200));
}

TEST_F(PageHeapTest, GrowsByAnEighthWithinBounds) {
  heap_->set_growth(Length(10), Length(20));
  const auto step = [&] { return heap_.system.allocated().back().bytes >> kPageShift; };
  New(40);
  New(1);
  EXPECT_EQ(step(), 10u);
  New(78);
  New(10);
  EXPECT_EQ(step(), 16u);
  New(1000);
  EXPECT_EQ(step(), 1000u);
  New(16);
  EXPECT_EQ(step(), 20u);
}

TEST_F(PageHeapTest, FreshMemoryCountsAsReturned) {
  heap_->set_growth(Length(100));
  New(30);
  const PageHeapStats stats = heap_->stats();
  EXPECT_EQ(stats.system, Length(100));
  EXPECT_EQ(stats.in_use(), Length(30));
  EXPECT_EQ(stats.returned, Length(70));
  EXPECT_EQ(stats.committed(), Length(30));
  EXPECT_EQ(stats.free, Length(0));
}

TEST_F(PageHeapTest, BestFit) {
  std::vector<Span*> row = NewRow({10, 1, 200, 1, 20, 1, 150, 1});
  for (size_t i : {0u, 2u, 4u, 6u}) heap_->Delete(row[i]);
  const PageId at10 = row[1]->first - Length(10);
  const PageId at200 = row[1]->end();
  const PageId at20 = row[3]->end();
  const PageId at150 = row[5]->end();
  EXPECT_EQ(New(140)->first, at150);
  EXPECT_EQ(New(15)->first, at20);
  EXPECT_EQ(New(160)->first, at200);
  EXPECT_EQ(New(8)->first, at150 + Length(140));
  EXPECT_EQ(New(10)->first, at10);
}

TEST_F(PageHeapTest, FreeComesBeforeReturned) {
  std::vector<Span*> row = NewRow({10, 1, 50, 1});
  const PageId free = row[2]->first;
  heap_->Delete(row[0]);
  heap_->ReleaseAtLeast(Length(10));
  heap_->Delete(row[2]);
  // The returned span would fit exactly, but is not resident.
  EXPECT_EQ(New(10)->first, free);
}

TEST_F(PageHeapTest, CoalescesWithBothNeighbours) {
  std::vector<Span*> row = NewRow({3, 4, 5, 1});
  const PageId first = row[0]->first;
  heap_->Delete(row[0]);
  heap_->Delete(row[2]);
  EXPECT_EQ(heap_->stats().spans, 4u);
  heap_->Delete(row[1]);
  EXPECT_EQ(heap_->stats().spans, 2u);
  Span* whole = New(12);
  EXPECT_EQ(whole->first, first);
  EXPECT_EQ(heap_.system.allocated().size(), 4u);
}

TEST_F(PageHeapTest, EveryOrderOfDeletionLeavesOneSpan) {
  std::vector<size_t> order = {0, 1, 2, 3};
  do {
    std::vector<Span*> row = {New(1), New(2), New(130), New(3)};
    for (size_t i : order) heap_->Delete(row[i]);
    EXPECT_EQ(heap_->stats().free, heap_->stats().system);
    EXPECT_EQ(heap_->stats().spans, 1u);
    heap_->CheckInvariants();
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(PageHeapTest, FreeAndReturnedStayApart) {
  std::vector<Span*> row = NewRow({10, 10, 1});
  heap_->Delete(row[0]);
  heap_->ReleaseAtLeast(Length(10));
  heap_->Delete(row[1]);
  EXPECT_EQ(heap_->stats().free, Length(10));
  EXPECT_EQ(heap_->stats().returned, Length(10));
  heap_->ReleaseAtLeast(Length(10));
  EXPECT_EQ(heap_->stats().returned, Length(20));
  EXPECT_EQ(heap_->stats().spans, 2u);
}

TEST_F(PageHeapTest, BlocksApartAreNotMerged) {
  heap_.system.gap = kPageSize;
  Span* a = New(10);
  Span* b = New(10);
  heap_->Delete(a);
  heap_->Delete(b);
  EXPECT_EQ(heap_->stats().spans, 2u);
  Span* whole = New(20);
  EXPECT_EQ(whole->start(), heap_.system.allocated().back().start);
}

TEST_F(PageHeapTest, AlignedRequestsUseFreeSpansAndGiveTheRestBack) {
  Span* span = New(64);
  const PageId first = span->first;
  ASSERT_EQ(first.index() % 64, 0u);
  heap_->Delete(span);
  Span* head = New(1);
  ASSERT_EQ(head->first, first);
  Span* aligned = heap_->NewAligned(Length(8), Length(16));
  EXPECT_EQ(aligned->first, first + Length(16));
  EXPECT_EQ(heap_->stats().free, Length(64 - 9));
  EXPECT_EQ(New(15)->first, first + Length(1));
  EXPECT_EQ(New(40)->first, first + Length(24));
  EXPECT_EQ(heap_.system.allocated().size(), 1u);
}

TEST_F(PageHeapTest, ExtendsIntoAFreeNeighbour) {
  std::vector<Span*> row = NewRow({10, 20, 1});
  heap_->Delete(row[1]);
  EXPECT_TRUE(heap_->TryExtend(row[0], Length(15)));
  EXPECT_EQ(row[0]->length, Length(15));
  EXPECT_EQ(heap_.map->Get(row[0]->end() - Length(1)), row[0]);
  heap_->CheckInvariants();
  EXPECT_TRUE(heap_->TryExtend(row[0], Length(30)));
  EXPECT_EQ(row[0]->end(), row[2]->first);
  EXPECT_EQ(heap_->stats().free, Length(0));
  EXPECT_FALSE(heap_->TryExtend(row[0], Length(31)));
  EXPECT_EQ(row[0]->length, Length(30));
}

TEST_F(PageHeapTest, ExtendsOverFreeAndReturnedNeighbours) {
  std::vector<Span*> row = NewRow({10, 20, 30, 1});
  heap_->Delete(row[2]);
  heap_->ReleaseAtLeast(Length(30));
  heap_->Delete(row[1]);
  EXPECT_FALSE(heap_->TryExtend(row[0], Length(61)));
  EXPECT_EQ(heap_->stats().free, Length(20));
  EXPECT_TRUE(heap_->TryExtend(row[0], Length(59)));
  EXPECT_EQ(heap_->stats().free, Length(0));
  EXPECT_EQ(heap_->stats().returned, Length(1));
}

// A block that has grown, as realloc marks it.
Span* Grown(Span* span) {
  span->grows = true;
  return span;
}

TEST_F(PageHeapTest, ABlockThatGrowsKeepsItsRoom) {
  Span* block = Grown(heap_->NewRoomy(Length(100)));
  ASSERT_EQ(heap_->stats().system, Length(300)) << "room on both sides";
  Span* other = New(10);
  EXPECT_EQ(other->first, block->end() + Length(100));
  EXPECT_EQ(New(30)->first, other->end()) << "the longest rest, though the room is shorter";
  EXPECT_TRUE(heap_->TryExtend(block, Length(200)));
  EXPECT_EQ(block->end(), other->first);
}

TEST_F(PageHeapTest, OthersTakeRoomFromItsEndIfNothingElseIsThere) {
  Span* block = Grown(heap_->NewRoomy(Length(100)));
  Span* wall = New(100);
  ASSERT_EQ(wall->first, block->end() + Length(100));
  EXPECT_EQ(New(60)->first, block->end() + Length(40));
  EXPECT_EQ(heap_->NewAligned(Length(4), Length(16))->first.index() % 16, 0u);
  EXPECT_EQ(heap_.system.allocated().size(), 1u);
  EXPECT_TRUE(heap_->TryExtend(block, Length(120)));
}

TEST_F(PageHeapTest, TwoBlocksThatGrowLeaveEachOtherRoom) {
  Span* one = Grown(heap_->NewRoomy(Length(100)));
  Span* two = Grown(heap_->NewRoomy(Length(100)));
  EXPECT_EQ(two->first, one->end() + Length(100));
  EXPECT_TRUE(heap_->TryExtend(one, Length(200)));
  EXPECT_TRUE(heap_->TryExtend(two, Length(500)));
}

TEST_F(PageHeapTest, AFreedBlockKeepsNoRoom) {
  Span* block = Grown(heap_->NewRoomy(Length(100)));
  const PageId first = block->first;
  heap_->Delete(block);
  block = New(100);
  ASSERT_EQ(block->first, first);
  EXPECT_EQ(New(10)->first, block->end());
}

TEST_F(PageHeapTest, NoRoomForASmallShareOfTheHeapNorForScarceAddresses) {
  New(500);
  ASSERT_NE(heap_->NewRoomy(Length(100)), nullptr);
  EXPECT_EQ(heap_->stats().system, Length(600));
  heap_.system.limited = true;
  ASSERT_NE(heap_->NewRoomy(Length(1000)), nullptr);
  EXPECT_EQ(heap_->stats().system, Length(1600));
}

TEST_F(PageHeapTest, NoRoomInMemoryThatMayRunOut) {
  heap_.system.finite = true;
  ASSERT_NE(heap_->NewRoomy(Length(100)), nullptr);
  EXPECT_EQ(heap_->stats().system, Length(100));
}

TEST_F(PageHeapTest, ARoomyBlockDoesWithoutRoomIfTheSystemGivesNone) {
  int calls = 0;
  heap_.system.fail_allocate = [&] { return ++calls == 1; };
  ASSERT_NE(heap_->NewRoomy(Length(100)), nullptr);
  EXPECT_EQ(heap_->stats().system, Length(100));
}

TEST_F(PageHeapTest, TruncateGivesTheTailBack) {
  std::vector<Span*> row = NewRow({10, 1});
  heap_->Truncate(row[0], Length(4));
  EXPECT_EQ(row[0]->length, Length(4));
  EXPECT_EQ(heap_.map->Get(row[0]->end() - Length(1)), row[0]);
  EXPECT_EQ(heap_->stats().free, Length(6));
  EXPECT_EQ(New(6)->first, row[0]->end());
}

TEST_F(PageHeapTest, TruncatedTailCoalesces) {
  std::vector<Span*> row = NewRow({10, 5, 1});
  heap_->Delete(row[1]);
  heap_->Truncate(row[0], Length(1));
  EXPECT_EQ(New(14)->first, row[0]->end());
}

TEST_F(PageHeapTest, OneDirtyPartMakesTheWholeDirty) {
  heap_.system.zeroed = false;
  Span* dirty = New(10);
  EXPECT_FALSE(dirty->zeroed);
  heap_.system.zeroed = true;
  heap_->set_growth(Length(10));
  heap_->Delete(dirty);
  Span* span = New(15);
  EXPECT_TRUE(span->zeroed) << "a block of its own";
  EXPECT_TRUE(heap_->TryExtend(New(10), Length(10)));
}

TEST_F(PageHeapTest, FreshBlocksThatMergeShareTheFlag) {
  heap_->set_growth(Length(100));
  heap_.system.zeroed = false;
  New(1);
  heap_.system.zeroed = true;
  // The rest of the first block and the second one are one span now.
  EXPECT_FALSE(New(150)->zeroed);
}

TEST_F(PageHeapTest, ReturnedMemoryBesideADirtyBlockSharesTheFlag) {
  heap_->set_growth(Length(100));
  heap_.system.zeroed = false;
  Span* span = New(10);
  heap_->Delete(span);
  heap_->ReleaseAtLeast(Length(10));
  EXPECT_FALSE(New(50)->zeroed);
}

TEST_F(PageHeapTest, ExtendedSpanIsNotKnownToBeZero) {
  std::vector<Span*> row = NewRow({10, 20});
  Fill(row[1], 'x');
  heap_->Delete(row[1]);
  ASSERT_TRUE(row[0]->zeroed);
  ASSERT_TRUE(heap_->TryExtend(row[0], Length(20)));
  EXPECT_FALSE(row[0]->zeroed);
}

TEST_F(PageHeapTest, ForEachSpanVisitsWhatIsThere) {
  heap_->set_growth(Length(100));
  Span* a = New(10);
  New(20);
  heap_->Delete(a);
  const std::vector<Span> spans = heap_.SpansByAddress();
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0].state, State::kFree);
  EXPECT_EQ(spans[0].length, Length(10));
  EXPECT_EQ(spans[1].state, State::kLarge);
  EXPECT_EQ(spans[2].state, State::kReturned);
  EXPECT_EQ(spans[2].length, Length(70));
}

TEST_F(PageHeapTest, SpansAreFreshUntilMemoryIsGivenBack) {
  heap_->set_growth(Length(100));
  Span* a = New(10);
  New(20);
  std::vector<Span> fresh;
  const auto note = [&](const Span& span) { fresh.push_back(span); };
  EXPECT_TRUE(heap_->ForEachFreshSpan(2, note));
  EXPECT_TRUE(fresh.empty());
  EXPECT_TRUE(heap_->ForEachFreshSpan(3, note));
  ASSERT_EQ(fresh.size(), 1u);
  EXPECT_EQ(fresh[0].length, Length(70));
  EXPECT_TRUE(heap_->IsFresh());
  heap_->Delete(a);
  heap_->ReleaseAtLeast(Length(1));
  EXPECT_FALSE(heap_->IsFresh());
  EXPECT_FALSE(heap_->ForEachFreshSpan(3, note));
  EXPECT_EQ(fresh.size(), 1u);
}

}  // namespace
}  // namespace tcmalloc::testing
