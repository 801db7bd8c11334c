// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The hugepages that nobody uses: address space from the system, and a cache of freed hugepages.

#ifndef TCMALLOC_PAGE_HEAP_HUGE_HUGE_RANGES_H_
#define TCMALLOC_PAGE_HEAP_HUGE_HUGE_RANGES_H_

#include <cstddef>

#include "page_heap/classic/span_tree.h"
#include "page_heap/huge/huge_page.h"
#include "pages/metadata_arena.h"
#include "pages/page_map.h"
#include "pages/page_types.h"
#include "pages/span.h"

namespace tcmalloc {

// Maximal ranges of whole hugepages, as Spans. The kFree ones are the cache, because they may be
// resident; the kReturned ones are address space. No two ranges of one state touch. The page map's
// entries of a range's first and last page name the range. Entries of pages beside it may be stale,
// but if such an entry names a free record that touches the range, it is valid. Not thread safe.
class HugeRanges {
 public:
  constexpr HugeRanges(PageMap& map, MetadataPool<Span>& pool) : map_(map), pool_(pool) {}
  HugeRanges(const HugeRanges&) = delete;
  HugeRanges& operator=(const HugeRanges&) = delete;

  // Returns the shortest range of `state` that has room for n pages at a multiple of `alignment`;
  // null if there is none. With alignment beyond a hugepage, a suitable range may be missed.
  Span* Find(Span::State state, Length n, Length alignment) const;
  // Returns a place for n pages at a multiple of `alignment` in adjacent ranges of both states,
  // with few returned pages: at best none but those that touch a long free range. Page 0 if there
  // is no room around any of the kMostTried longest free ranges.
  PageId FindAcross(Length n, Length alignment) const;
  // Returns the length of the adjacent ranges that end at `page`, or of kMostSteps of them.
  Length LengthEndingAt(PageId page) const;
  // Returns the longest range of `state`, or null.
  Span* Longest(Span::State state) const { return tree(state).Longest(); }
  // Returns the range that begins at `page`, or null.
  Span* BeginningAt(PageId page) const;
  // Returns the range that ends at `page`, or null.
  Span* EndingAt(PageId page) const;
  // Returns the range that holds `page`, of which there must be one. Takes time in proportion to
  // the distance from its beginning.
  Span* Containing(PageId page) const;

  // Takes the hugepages [first, first + n) out of a range. Returns false, with nothing changed, if
  // no memory can be had for a record of the rest behind them. Never fails if the range begins at
  // `first`.
  [[nodiscard]] bool Carve(Span* range, PageId first, Length n);

  // Adds the range of a record, with first, length, state and zeroed set, and merges it with its
  // neighbours.
  void Put(Span* range);

  Length total(Span::State state) const {
    return state == Span::State::kFree ? free_total_ : returned_total_;
  }

  // Returns the number of ranges.
  size_t CheckInvariants() const;

 private:
  static constexpr int kMostTried = 16;
  static constexpr int kMostSteps = 64;

  // Pages in adjacent ranges, of which some are returned; page 0 for none.
  struct Window {
    PageId first;
    Length returned;
  };

  Window WindowAround(const Span* free, Length n, Length alignment) const;
  const SpanTree& tree(Span::State state) const {
    return state == Span::State::kFree ? free_ : returned_;
  }
  void Insert(Span* range);
  void Remove(Span* range);
  void Retire(Span* range);

  PageMap& map_;
  MetadataPool<Span>& pool_;
  SpanTree free_;
  SpanTree returned_;
  Length free_total_;
  Length returned_total_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_HUGE_HUGE_RANGES_H_
