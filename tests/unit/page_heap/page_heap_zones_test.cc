// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Spans of several threads in zones of their own.

#include <gtest/gtest.h>

#include <vector>

#include "page_heap/classic/page_heap.h"
#include "page_heap/fit.h"
#include "test_heap.h"

namespace tcmalloc::testing {
namespace {

class PageHeapZonesTest : public PageHeapFixture<TestHeap> {
 protected:
  PageHeapZonesTest() { heap_->set_growth(Length(1024)); }

  Span* NewNear(uintptr_t pages, PageId near) {
    Span* span = heap_->NewNear(Length(pages), near);
    EXPECT_NE(span, nullptr);
    EXPECT_EQ(span->length, Length(pages));
    return span;
  }
  static uintptr_t ZoneOf(const Span* span) {
    return span->first.index() / Placement::kZone.pages();
  }
};

TEST_F(PageHeapZonesTest, ThreadsThatAskInTurnGetPagesApart) {
  PageId next[2];
  std::vector<Span*> spans[2];
  for (int i = 0; i < 64; ++i) {
    Span* span = NewNear(1, next[i % 2]);
    next[i % 2] = span->end();
    spans[i % 2].push_back(span);
  }
  for (const Span* a : spans[0]) {
    for (const Span* b : spans[1]) EXPECT_NE(ZoneOf(a), ZoneOf(b));
  }
}

TEST_F(PageHeapZonesTest, AZoneIsFilled) {
  PageId next[2];
  for (int i = 0; i < 2; ++i) next[i] = NewNear(1, PageId())->end();
  for (uintptr_t i = 1; i < Placement::kZone.pages(); ++i) {
    Span* span = NewNear(1, next[0]);
    EXPECT_EQ(span->first, next[0]);
    next[0] = span->end();
  }
}

TEST_F(PageHeapZonesTest, ResidentPagesComeBeforeFreshOnes) {
  Span* resident = New(1);
  Span* last = New(1);
  heap_->Delete(resident);
  const Span* span = NewNear(1, last->end());
  EXPECT_EQ(span->end(), last->first);
  EXPECT_EQ(heap_->stats().committed(), Length(2));
}

TEST_F(PageHeapZonesTest, OfResidentPagesThoseBehindComeFirst) {
  Span* before = New(1);
  Span* behind = New(3);
  Span* between = New(1);
  Span* shorter = New(1);
  New(1);
  heap_->Delete(behind);
  heap_->Delete(shorter);
  EXPECT_EQ(NewNear(1, before->end())->first, before->end());
  EXPECT_EQ(NewNear(1, PageId())->first, between->end());
}

TEST_F(PageHeapZonesTest, LengthsBeyondAZoneAreServed) {
  const uintptr_t zone = Placement::kZone.pages();
  for (uintptr_t pages = 1; pages < 4 * zone; ++pages) NewNear(pages, PageId());
}

TEST_F(PageHeapZonesTest, ALengthBeyondAZoneIsNotServedFromOneZone) {
  const uintptr_t zone = Placement::kZone.pages();
  Span* short_span = New(2 * zone);
  New(1);
  heap_->Delete(short_span);
  heap_->ReleaseAtLeast(Length::Max());
  NewNear(4 * zone, PageId());
}

TEST_F(PageHeapZonesTest, NeitherZonesNorPlacesAreNeeded) {
  Span* all = New(1024);
  RefuseGrowth();
  heap_->Delete(all);
  for (int i = 0; i < 1024; ++i) NewNear(1, PageId(i % 7));
  EXPECT_EQ(heap_->NewNear(Length(1), PageId()), nullptr);
}

TEST_F(PageHeapZonesTest, WithoutGrowthEveryFreshPageIsServed) {
  const uintptr_t rest = 1023;
  New(1);
  RefuseGrowth();
  PageId next[3];
  for (uintptr_t i = 0; i < rest; ++i) next[i % 3] = NewNear(1, next[i % 3])->end();
  EXPECT_EQ(heap_->NewNear(Length(1), PageId()), nullptr);
}

}  // namespace
}  // namespace tcmalloc::testing
