// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The heap when the system refuses, metadata runs out, or a limit is reached.

#include <gtest/gtest.h>

#include <vector>

#include "page_heap/huge/huge_page_heap.h"
#include "unit/page_heap/test_heap.h"

namespace tcmalloc::testing {
namespace {

class HugePageHeapPressureTest : public PageHeapFixture<HugeTestHeap> {
 protected:
  // Takes everything that the arena and the pools have, so that no record can be had.
  void ExhaustMetadata() {
    heap_.metadata.exhausted = true;
    while (heap_.arena.Allocate(8, 8) != nullptr) continue;
  }
};

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
  EXPECT_EQ(TryNew(1), nullptr);
  heap_->Delete(span);
  EXPECT_EQ(heap_->stats().free, Length(2 * kHuge));
}

// Of blocks of more than half a hugepage, each next one begins where the last one ends.
TEST_F(HugePageHeapPressureTest, SpansLieAcrossHugepagesWhereAddressesAreScarce) {
  heap_.system.limited = true;
  for (const Length n : {Length(kHuge / 2 + 1), Length(2 * kHuge + 3), Length(kHuge / 8 + 1)}) {
    const Length before = heap_->stats().system;
    std::vector<Span*> spans;
    for (int i = 0; i < 40; ++i) spans.push_back(New(n.pages()));
    heap_->CheckInvariants();
    EXPECT_LE(heap_->stats().system - before, n * 40 + kPagesPerHugePage * 5);
    for (Span* span : spans) heap_->Delete(span);
    heap_->CheckInvariants();
    // Everything is one run again.
    Span* all = New((n * 40).pages());
    EXPECT_LE(heap_->stats().system - before, n * 40 + kPagesPerHugePage * 5);
    heap_->Delete(all);
  }
  EXPECT_EQ(heap_->huge_stats().regions, 0u);
}

TEST_F(HugePageHeapPressureTest, SpansBeginWithTheirHugepageWhereAddressesAbound) {
  for (int i = 0; i < 10; ++i) EXPECT_EQ(New(kHuge / 2 + 1)->first.index() % kHuge, 0u);
}

TEST_F(HugePageHeapPressureTest, WithoutMetadataNothingIsLost) {
  heap_->set_growth(kPagesPerHugePage * 50);
  std::vector<Span*> spans = {New(1), New(2 * kHuge)};
  ExhaustMetadata();
  while (Span* span = TryNew(1)) spans.push_back(span);
  const PageHeapStats before = heap_->stats();
  EXPECT_EQ(TryNew(1), nullptr);
  EXPECT_EQ(TryNew(2 * kHuge + 1), nullptr);
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

TEST_F(HugePageHeapPressureTest, FreeMemoryIsReleasedToStayWithinTheLimit) {
  Span* a = New(2 * kHuge);
  Span* b = New(2);
  New(1);
  heap_->set_limit(Length(2 * kHuge + 4));
  heap_->Delete(a);
  heap_->Delete(b);
  // Resident memory is used without looking at the limit; more needs room.
  EXPECT_NE(TryNew(2), nullptr);
  EXPECT_TRUE(heap_.system.released().empty());
  EXPECT_NE(TryNew(3 * kHuge / 2), nullptr);
  EXPECT_LE(heap_->stats().committed(), heap_->limit());
}

}  // namespace
}  // namespace tcmalloc::testing
