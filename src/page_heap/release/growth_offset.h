// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Decides how much free memory goes back because the heap needs other memory.

#ifndef TCMALLOC_PAGE_HEAP_RELEASE_GROWTH_OFFSET_H_
#define TCMALLOC_PAGE_HEAP_RELEASE_GROWTH_OFFSET_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "pages/page_types.h"

namespace tcmalloc {

// If no free span is long enough for a request, as many free pages as the request makes resident go
// back to the system first. Spans of unsuitable lengths thus do not make the resident memory grow.
// Requests are gathered until a release is worth a system call.
//
// A page that goes back may have to be faulted in again. A program whose requests keep missing the
// free spans would pay for that for ever. All exchanges together therefore stay below a share of
// what the heap holds, and there are none while too many pages had to be faulted in again; beyond
// that the heap grows. Not thread safe.
class GrowthOffset {
 public:
  static constexpr Length kLeast = Length::FromBytesCeil(size_t{256} << 10);
  // Bounds the wait of one request to about half a millisecond, or to a part of what the pages take
  // that it makes resident itself.
  static constexpr Length kMost = Length::FromBytesCeil(size_t{16} << 20);
  // A heap with less than one free page in this many is not worth the trouble.
  static constexpr uintptr_t kFewestFree = 32;
  // One page may be exchanged for this many that the heap holds.
  static constexpr uintptr_t kExchangeShare = 2;
  // Of pages that went back for nothing there may be a share of what the heap holds, as many as in
  // kFewNeedless, and besides as many as a share of the time pays for that has passed. A page of
  // the kernel takes about kFaultNanoseconds.
  static constexpr uintptr_t kNeedlessShare = 16;
  static constexpr Length kFewNeedless = Length::FromBytesCeil(size_t{2} << 20);
  static constexpr uint64_t kTimeShare = 128;
  static constexpr uint64_t kFaultNanoseconds = 1000;
  static constexpr size_t kFaultBytes = 4096;

  constexpr GrowthOffset() = default;

  // Returns the number of free pages that should go back before n pages become resident.
  Length PagesDue(Length n, Length free, Length committed) {
    if (free.pages() < committed.pages() / kFewestFree || free == Length(0)) {
      owed_ = Length(0);
      return owed_;
    }
    if (exchanged_.pages() >= committed.pages() / kExchangeShare) return Length(0);
    owed_ += ShorterOf(n, kMost);
    if (owed_ < kLeast) return Length(0);
    const Length due = std::max(n, ShorterOf(owed_, kMost));
    owed_ = Length(0);
    return due;
  }

  // Moves on to `now`, in nanoseconds. The first call begins the time that counts.
  void NoteTime(uint64_t now) {
    if (begin_ == 0) begin_ = now;
    latest_ = std::max(latest_, now);
  }

  // Returns true if another exchange may pay. Of the pages that exchanges gave back `retaken`
  // became resident again.
  bool MayPay(Length retaken, Length committed) const {
    const uint64_t faults = (latest_ - begin_) / (kTimeShare * kFaultNanoseconds);
    const Length paid = Length::FromBytesCeil(faults * kFaultBytes);
    return retaken <= std::max(kFewNeedless, Length(committed.pages() / kNeedlessShare)) + paid;
  }

  void NoteReleased(Length n) { exchanged_ += n; }

 private:
  Length owed_;
  Length exchanged_;
  uint64_t begin_ = 0;
  uint64_t latest_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_RELEASE_GROWTH_OFFSET_H_
