// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Free memory that goes back because the heap needs other memory.

#ifndef TCMALLOC_PAGE_HEAP_RELEASE_GROWTH_OFFSET_H_
#define TCMALLOC_PAGE_HEAP_RELEASE_GROWTH_OFFSET_H_

#include <algorithm>
#include <cstdint>

#include "pages/page_types.h"

namespace tcmalloc {

// Where no free span is long enough for a request, as many free pages as it makes resident go back
// to the system first, so that what is resident does not grow for the sake of spans of the wrong
// lengths. Requests are gathered until a release is worth a system call.
//
// A page that goes back may have to be faulted in again. A program whose requests keep missing the
// free spans would pay for that for ever; so all that was exchanged stays below a share of what the
// heap holds, and beyond that the heap grows. Not thread safe.
class GrowthOffset {
 public:
  static constexpr Length kLeast = Length::FromBytesCeil(size_t{256} << 10);
  // Bounds what one request waits for: about half a millisecond.
  static constexpr Length kMost = Length::FromBytesCeil(size_t{16} << 20);
  // A heap with less than one free page in so many is not worth the trouble.
  static constexpr uintptr_t kFewestFree = 32;
  // One page is exchanged for so many that the heap holds.
  static constexpr uintptr_t kExchangeShare = 2;

  constexpr GrowthOffset() = default;

  // How many free pages should go back before n pages become resident.
  Length Due(Length n, Length free, Length committed) {
    if (free.pages() < committed.pages() / kFewestFree || free == Length(0)) {
      owed_ = Length(0);
      return owed_;
    }
    if (exchanged_.pages() >= committed.pages() / kExchangeShare) return Length(0);
    owed_ += std::min(n, kMost);
    if (owed_ < kLeast) return Length(0);
    const Length due = std::min(owed_, kMost);
    owed_ = Length(0);
    return due;
  }

  void NoteReleased(Length n) { exchanged_ += n; }

 private:
  Length owed_;
  Length exchanged_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_RELEASE_GROWTH_OFFSET_H_
