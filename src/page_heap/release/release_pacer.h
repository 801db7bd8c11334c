// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Decides how often freeing memory is followed by giving some of it back.

#ifndef TCMALLOC_PAGE_HEAP_RELEASE_RELEASE_PACER_H_
#define TCMALLOC_PAGE_HEAP_RELEASE_RELEASE_PACER_H_

#include <cstdint>

#include "pages/page_types.h"

namespace tcmalloc {

// TCMALLOC_RELEASE_RATE: at rate r, about r pages are released for every thousand pages that are
// freed; at 0 none. The pacer counts freed pages down to the next release. A release of many pages
// postpones the next one accordingly. Not thread safe.
class ReleasePacer {
 public:
  static constexpr double kDefaultRate = 1.0;

  constexpr ReleasePacer() = default;

  double rate() const { return rate_; }
  // Sets the rate. Negative rates and NaN count as 0.
  void set_rate(double rate);

  // Returns true if a release is due now. The caller then releases and calls NoteReleased; until
  // then no other release is due.
  bool NoteFreed(Length n) {
    countdown_ -= static_cast<int64_t>(n.pages());
    return countdown_ <= 0 && BeginRelease();
  }

  void NoteReleased(Length n);

 private:
  // The pages to wait for if there was nothing to release, and the longest wait of all. It lets a
  // program that frees little release again in finite time after a big release.
  static constexpr int64_t kIdleWait = int64_t{1} << 18;
  static constexpr int64_t kMaxWait = int64_t{1} << 20;
  static constexpr int64_t kNever = INT64_MAX;

  bool BeginRelease();
  int64_t WaitAfter(double released) const;

  double rate_ = kDefaultRate;
  int64_t countdown_ = static_cast<int64_t>(1000 / kDefaultRate);
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_RELEASE_RELEASE_PACER_H_
