// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Aligned pages inside of a range of unused ones, for both page heaps.

#ifndef TCMALLOC_PAGE_HEAP_FIT_H_
#define TCMALLOC_PAGE_HEAP_FIT_H_

#include <cstddef>

#include "base/bits.h"
#include "pages/page_types.h"
#include "pages/span.h"

namespace tcmalloc {

inline constexpr Length kOnePage(1);

// Where a span shall begin.
struct Placement {
  // The parts of memory in which the spans of one thread shall lie together.
  static constexpr Length kZone = Length::FromBytesCeil(size_t{64} << 10);

  Length alignment = kOnePage;
  // If `zoned`, spans shall begin at `near`, right behind the one before, or else with a zone.
  PageId near;
  bool zoned = false;
  // If set, the span shall be able to grow by its own length.
  bool roomy = false;
};

// Returns the first aligned page at or behind the beginning of the range.
inline PageId AlignedStart(const Span* range, Length alignment) {
  return PageId(AlignUp(range->first.index(), alignment.pages()));
}

// Returns true if n aligned pages lie inside of the range.
inline bool Fits(const Span* range, Length n, Length alignment) {
  return AlignedStart(range, alignment) + n <= range->end();
}

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_FIT_H_
