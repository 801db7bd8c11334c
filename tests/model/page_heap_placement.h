// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Where each page heap has promised to put spans.

#ifndef TCMALLOC_TESTS_MODEL_PAGE_HEAP_PLACEMENT_H_
#define TCMALLOC_TESTS_MODEL_PAGE_HEAP_PLACEMENT_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include "unit/page_heap/test_heap.h"

namespace tcmalloc::testing {

// Check judges where `span`, new and without alignment, is; `before` are the spans before it came.
// `released`: whether the heap may have given memory back for it, at a limit or instead of growing.
template <typename Heap>
struct Placement;

// Best fit, free spans first. Of returned ones, the longest if the best is the room of a growing
// block, which is also left alone where it is a part of the span.
template <>
struct Placement<TestHeap> {
  using State = Span::State;

  static Length ShortestFit(const std::vector<Span>& spans, State state, Length n) {
    Length best = Length::Max();
    for (const Span& span : spans) {
      if (span.state == state && span.length >= n) best = std::min<Length>(best, span.length);
    }
    return best;
  }

  // The pages that a growing block before a returned span may take.
  static Length RoomIn(const std::vector<Span>& spans, const Span& span) {
    if (span.state != State::kReturned) return Length(0);
    for (const Span& other : spans) {
      if (other.end() == span.first && other.in_use() && other.grows) return other.length;
    }
    return Length(0);
  }

  // Whether a returned span of this length begins with room.
  static bool HasRoomOf(const std::vector<Span>& spans, Length length) {
    return std::any_of(spans.begin(), spans.end(), [&](const Span& span) {
      return span.length == length && RoomIn(spans, span) > Length(0);
    });
  }

  static void Check(TestHeap&, const std::vector<Span>& before, const Span* span, bool released) {
    for (State state : {State::kFree, State::kReturned}) {
      const Length best = ShortestFit(before, state, span->length);
      if (best == Length::Max()) continue;
      // Memory was released before returned spans were looked at.
      if (state == State::kReturned && released) continue;
      const auto origin = std::find_if(before.begin(), before.end(), [&](const Span& other) {
        return other.Contains(span->first);
      });
      ASSERT_NE(origin, before.end());
      ASSERT_EQ(origin->state, state);
      if (RoomIn(before, *origin) == Length(0)) {
        ASSERT_EQ(origin->first, span->first);
        ASSERT_TRUE(origin->length == best || HasRoomOf(before, best));
      } else {
        ASSERT_EQ(origin->length, best);
        ASSERT_EQ(span->first, origin->first + std::min<Length>(RoomIn(before, *origin),
                                                                origin->length - span->length));
      }
      return;
    }
  }
};

// A short span breaks no run of a hugepage that is longer than the longest of another hugepage in
// use that could have served it; and of no hugepage from which pages were returned while one that
// is whole could.
template <>
struct Placement<HugeTestHeap> {
  struct Contents {
    Length used;
    Length returned;
    Length longest;
    Length run;

    bool broken() const { return returned > Length(0); }
  };
  using HugePages = std::map<HugePage, Contents>;

  static HugePages ContentsOf(const std::vector<Span>& spans) {
    HugePages pages;
    for (const Span& span : spans) {
      for (PageId page = span.first; page < span.end();) {
        const HugePage huge = HugePage::Containing(page);
        const PageId end = std::min(span.end(), huge.end_page());
        Contents& contents = pages[huge];
        contents.run = span.in_use() ? Length(0) : contents.run + (end - page);
        contents.longest = std::max(contents.longest, contents.run);
        if (span.in_use()) contents.used += end - page;
        if (span.state == Span::State::kReturned) contents.returned += end - page;
        page = end;
      }
    }
    return pages;
  }

  static void Check(HugeTestHeap& heap, const std::vector<Span>& before, const Span* span,
                    bool released) {
    const Length n = span->length;
    // At the limit, what is returned may not be used. Regions are for other spans.
    if (n >= kPagesPerHugePage || released || heap->huge_stats().regions > 0) return;
    HugePages pages = ContentsOf(before);
    const HugePage chosen = HugePage::Containing(span->first);
    const bool crosses = chosen.end_page() < span->end();
    const Contents own = pages[chosen];
    for (const auto& [page, other] : pages) {
      if (other.used == Length(0) || other.longest < n) continue;
      ASSERT_FALSE(crosses) << "a hugepage could have served it";
      ASSERT_GT(own.used, Length(0)) << "a hugepage in use could have served it";
      ASSERT_LE(own.broken(), other.broken());
      if (own.broken() == other.broken()) {
        ASSERT_LE(own.longest, other.longest);
      }
    }
  }
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_MODEL_PAGE_HEAP_PLACEMENT_H_
