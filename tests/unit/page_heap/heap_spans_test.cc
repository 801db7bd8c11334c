// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/classic/heap_spans.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/bits.h"
#include "fakes/fake_metadata.h"
#include "pages/metadata_arena.h"
#include "pages/page_map.h"
#include "system/transparent_hugepages.h"

namespace tcmalloc::testing {
namespace {

using State = Span::State;

constexpr PageId kBegin(1 << 12);
constexpr Placement kAnywhere;

class HeapSpansTest : public ::testing::Test {
 protected:
  HeapSpansTest() { Add(kBegin, 100); }
  ~HeapSpansTest() override { spans_.CheckInvariants(); }

  void Add(PageId first, uintptr_t pages) {
    ASSERT_TRUE(map_->Ensure(first, Length(pages)));
    ASSERT_NE(spans_.AddFresh(first, Length(pages), /*zeroed=*/true), nullptr);
  }
  Span* Take(State state, uintptr_t pages) {
    Span* found = spans_.Find(state, Length(pages), kAnywhere);
    return found != nullptr ? spans_.Take(found, Length(pages), kAnywhere) : nullptr;
  }
  Span* TakeNew(uintptr_t pages) { return Take(State::kReturned, pages); }
  // Gives a span in use back to the system, with the free ones beside it, to offset growth.
  void Return(Span* span) { Return(span, span->length); }
  // Does so for another reason if none of the pages is one that `offset` growth.
  void Return(Span* span, Length offset) {
    span = spans_.Free(span);
    spans_.BeginRelease(span);
    span->details = offset.pages();
    spans_.EndRelease(span, /*released=*/true, /*zeroed=*/true);
  }

  FakeMetadata metadata_;
  MetadataArena arena_{FakeMetadata::Source};
  std::unique_ptr<PageMap> map_ = std::make_unique<PageMap>(arena_);
  HeapSpans spans_{*map_, arena_};
};

TEST_F(HeapSpansTest, WhatGoesBackOfALongSpanBeginsAtAHugepage) {
  constexpr Length kHugepage = Length::FromBytesCeil(kHugePageSize);
  constexpr PageId kFirst(1 << 14);
  static_assert(IsAligned(kFirst.index(), kHugepage.pages()));
  Add(kFirst, 3 * kHugepage.pages() + 5);
  Span* span = spans_.Free(TakeNew(3 * kHugepage.pages() + 5));
  const auto release = [this](Length most) {
    Span* part = spans_.BeginRelease(most, HeapSpans::Cuts::kAtHugepages);
    if (part == nullptr) return PageRange{};
    const PageRange pages{part->first, part->length};
    spans_.EndRelease(part, /*released=*/true, /*zeroed=*/true);
    return pages;
  };
  const PageRange rest = release(kHugepage);
  EXPECT_EQ(rest.first, kFirst + kHugepage + kHugepage + kHugepage);
  EXPECT_EQ(rest.length, Length(5));
  EXPECT_EQ(release(kHugepage - Length(1)).length, Length(0)) << "no place for a cut";
  const PageRange last = release(kHugepage + Length(1));
  EXPECT_EQ(last.first, kFirst + kHugepage + kHugepage);
  EXPECT_EQ(last.length, kHugepage);
  EXPECT_EQ(span->length, kHugepage + kHugepage);
  span = spans_.BeginRelease(Length(7), HeapSpans::Cuts::kAnywhere);
  EXPECT_EQ(span->length, Length(7));
  spans_.EndRelease(span, /*released=*/true, /*zeroed=*/true);
}

TEST_F(HeapSpansTest, MemoryThatNobodyTouchedIsNotRetaken) {
  TakeNew(60);
  TakeNew(40);
  EXPECT_EQ(spans_.retaken(), Length(0));
}

TEST_F(HeapSpansTest, WhatWentBackIsRetakenOnce) {
  Span* span = TakeNew(60);
  TakeNew(40);
  Return(span);
  EXPECT_EQ(spans_.retaken(), Length(0));
  TakeNew(20);
  EXPECT_EQ(spans_.retaken(), Length(20));
  span = TakeNew(40);
  EXPECT_EQ(spans_.retaken(), Length(60));
  spans_.Free(span);
  Take(State::kFree, 40);
  EXPECT_EQ(spans_.retaken(), Length(60)) << "it was resident";
}

TEST_F(HeapSpansTest, WhatWentBackForAnotherReasonIsNotRetaken) {
  Return(TakeNew(60), Length(0));
  Return(TakeNew(30));
  TakeNew(100);
  EXPECT_EQ(spans_.retaken(), Length(30));
}

TEST_F(HeapSpansTest, WhatWentBackIsTakenBeforeFreshMemoryBehindIt) {
  Return(TakeNew(10));
  TakeNew(6);
  EXPECT_EQ(spans_.retaken(), Length(6));
  TakeNew(94);
  EXPECT_EQ(spans_.retaken(), Length(10));
}

TEST_F(HeapSpansTest, NeighboursThatWentBackCountTogether) {
  Span* row[] = {TakeNew(10), TakeNew(20), TakeNew(30)};
  TakeNew(40);
  Return(row[0]);
  Return(row[2]);
  Return(row[1]);
  TakeNew(60);
  EXPECT_EQ(spans_.retaken(), Length(60));
}

TEST_F(HeapSpansTest, ASpanThatGrowsRetakesWhatWentBack) {
  Span* span = TakeNew(10);
  Span* behind = TakeNew(20);
  Return(behind);
  ASSERT_TRUE(spans_.Extend(span, Length(15), Length(100)));
  EXPECT_EQ(spans_.retaken(), Length(5));
  ASSERT_TRUE(spans_.Extend(span, Length(100), Length(100)));
  EXPECT_EQ(spans_.retaken(), Length(20));
}

TEST_F(HeapSpansTest, ARunThatMergesRetakesWhatWentBack) {
  Span* row[] = {TakeNew(50), TakeNew(50)};
  Return(row[1]);
  spans_.Free(row[0]);
  Span* merged = spans_.MergeRun(Length(100), kOnePage, Length(100));
  ASSERT_NE(merged, nullptr);
  EXPECT_EQ(spans_.retaken(), Length(50));
  spans_.Take(merged, Length(100), kAnywhere);
  EXPECT_EQ(spans_.retaken(), Length(50));
}

TEST_F(HeapSpansTest, ABlockThatIsCutKeepsWhatItSaysOfItsSample) {
  Span* span = TakeNew(100);
  span->SetSample(7, 1.0F);
  Span* tail = spans_.SplitTail(span, Length(60));
  EXPECT_EQ(span->sample(), 7u);
  spans_.Free(tail);
  Take(State::kFree, 40);
  EXPECT_EQ(spans_.retaken(), Length(0));
}

// The shortest spans begin at odd pages, and no span has room for the pages wherever it begins.
TEST_F(HeapSpansTest, AlignedPagesComeFromAnySpanInWhichTheyFit) {
  constexpr Placement kAligned{.alignment = Length(64), .near = PageId(), .zoned = false};
  const PageId odd = kBegin + Length(1000);
  Add(odd + Length(1), 20);
  Add(odd + Length(50), 21);
  const PageId even(((odd + Length(200)).index() / 64 + 1) * 64);
  Add(even, 22);
  Span* found = spans_.Find(State::kReturned, Length(20), kAligned);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->first, even);
}

}  // namespace
}  // namespace tcmalloc::testing
