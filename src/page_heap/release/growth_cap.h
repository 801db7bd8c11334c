// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Decides when a heap has enough, whatever its free spans look like.

#ifndef TCMALLOC_PAGE_HEAP_RELEASE_GROWTH_CAP_H_
#define TCMALLOC_PAGE_HEAP_RELEASE_GROWTH_CAP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "pages/page_types.h"

namespace tcmalloc {

// Long requests by turns with releases leave free and returned spans side by side, none of which is
// long enough for the next request. A heap that asked the system each time would grow for ever.
// Beyond a multiple of the most that was lately in use at once, a run of such spans serves first,
// and each page that becomes resident takes the place of a free one. Not thread safe.
class GrowthCap {
 public:
  static constexpr Length kSlack = Length::FromBytesCeil(size_t{64} << 20);
  // After a search in vain the heap grows by this share before the next one, which looks at every
  // span.
  static constexpr uintptr_t kSearchShare = 16;
  // The most that was in use is remembered for so many half-lives of free memory, and for twice as
  // many at most: what a program needed only as it started is no measure of what it needs later.
  static constexpr uint64_t kHalfLives = 4;

  constexpr GrowthCap() = default;

  // Notes that so many pages are in use. A request counts once it is served: programs ask for more
  // than there is, and go on without it.
  void NoteInUse(Length pages) {
    peak_ = std::max(peak_, pages);
    latest_ = std::max(latest_, pages);
  }
  // Moves on to `now`, when so many pages are in use. Times are nanoseconds of one clock; a
  // half-life of 0 lasts for ever.
  void NoteTime(uint64_t now, uint64_t half_life, Length in_use) {
    if (half_life == 0 || now < begin_ + kHalfLives * half_life) return;
    begin_ = now;
    peak_ = std::max(latest_, in_use);
    latest_ = in_use;
  }

  // Returns true if a run of free and returned spans should be looked for before a heap of `total`
  // pages gets more for a request with which `needed` pages would be in use.
  bool HasEnough(Length total, Length needed) const {
    const Length peak = std::max(peak_, needed);
    return total > peak + peak + kSlack && total >= next_search_;
  }
  void NoteSearchedInVain(Length total) {
    next_search_ = total + Length(total.pages() / kSearchShare);
  }

  // Returns true if no more than `committed` pages should be resident once `needed` are in use.
  bool IsResidentEnough(Length committed, Length needed) const {
    const Length peak = std::max(peak_, needed);
    return committed > peak + Length(peak.pages() / 2) + kSlack;
  }

 private:
  Length peak_;         // what is remembered
  Length latest_;       // since begin_
  uint64_t begin_ = 0;  // a time of NoteTime
  Length next_search_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_RELEASE_GROWTH_CAP_H_
