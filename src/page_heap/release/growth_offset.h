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
// what the heap holds, and there are none while those that proved needless took more than a share
// of the time that has passed; beyond that the heap grows. Not thread safe.
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
  // The time that pages which went back for nothing may take: at the start that of kFirstNeedless,
  // then a share of what passes. A page of the kernel takes about kFaultNanoseconds.
  static constexpr Length kFirstNeedless = Length::FromBytesCeil(size_t{2} << 20);
  static constexpr int64_t kTimeShare = 128;
  static constexpr int64_t kFaultNanoseconds = 1000;
  static constexpr size_t kFaultBytes = 4096;

  constexpr GrowthOffset() = default;

  // Returns the number of free pages that should go back before n pages become resident.
  Length PagesDue(Length n, Length free, Length committed) {
    if (free.pages() < committed.pages() / kFewestFree || free == Length(0)) {
      owed_ = Length(0);
      return owed_;
    }
    if (exchanged_.pages() >= committed.pages() / kExchangeShare) return Length(0);
    owed_ += std::min(n, kMost);
    if (owed_ < kLeast) return Length(0);
    const Length due = std::max(n, std::min(owed_, kMost));
    owed_ = Length(0);
    return due;
  }

  // Returns true if another exchange may pay at `now`, a time in nanoseconds. `retaken` pages went
  // back for whatever reason and became resident again.
  bool MayPay(Length retaken, int64_t now) {
    if (begin_ == 0) begin_ = now;
    const int64_t faults = std::max<int64_t>(now - begin_, 0) / kTimeShare / kFaultNanoseconds;
    const auto most =
        kFirstNeedless + Length::FromBytesCeil(static_cast<size_t>(faults) * kFaultBytes);
    return std::min(retaken, exchanged_) <= most;
  }

  void NoteReleased(Length n) { exchanged_ += n; }

 private:
  Length owed_;
  Length exchanged_;
  int64_t begin_ = 0;  // when MayPay was called first
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_RELEASE_GROWTH_OFFSET_H_
