// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Decides how much free memory goes back because long spans need other memory.

#ifndef TCMALLOC_PAGE_HEAP_RELEASE_GROWTH_BOUND_H_
#define TCMALLOC_PAGE_HEAP_RELEASE_GROWTH_BOUND_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "pages/page_types.h"

namespace tcmalloc {

// Long spans whose lengths keep changing leave free ranges that fit no later span. When the heap
// would come to hold much more than the peak of the memory in use, free ranges go back instead.
//
// A page that goes back may have to be faulted in again. A program whose requests keep missing the
// free ranges would pay for that for ever. All exchanges together therefore stay below a share of
// what the heap holds and a share of what was freed; beyond that the heap grows. Not thread safe.
class GrowthBound {
 public:
  // The heap may hold a sixteenth more than the peak in use, and a small heap may hold kLeastSlack
  // more. Below that, exchanges cost programs whose buffers come and go more than they save.
  static constexpr uintptr_t kSlackShare = 16;
  static constexpr Length kLeastSlack = Length::FromBytesCeil(size_t{16} << 20);
  static constexpr uintptr_t kExchangeShare = 4;
  static constexpr uintptr_t kFreedShare = 1024;

  constexpr GrowthBound() = default;

  // Returns the number of free pages that should go back before `committed` pages are resident, of
  // which `in_use` will be in use. `freed` is the number of pages ever freed.
  Length PagesDue(Length committed, Length in_use, Length freed) {
    peak_ = std::max(peak_, in_use);
    const Length most = peak_ + std::max(Length(peak_.pages() / kSlackShare), kLeastSlack);
    const Length budget(committed.pages() / kExchangeShare + freed.pages() / kFreedShare);
    if (committed <= most || exchanged_ >= budget) return Length(0);
    return committed - most;
  }

  void NoteReleased(Length n) { exchanged_ += n; }

 private:
  Length peak_;
  Length exchanged_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_RELEASE_GROWTH_BOUND_H_
