// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Records the recent peak of demand for memory.

#ifndef TCMALLOC_PAGE_HEAP_RELEASE_DEMAND_WINDOW_H_
#define TCMALLOC_PAGE_HEAP_RELEASE_DEMAND_WINDOW_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "pages/page_types.h"

namespace tcmalloc {

// The peak of demand in the last kEpochs epochs and in the one that runs. Times are nanoseconds of
// one clock. Not thread safe.
class DemandWindow {
 public:
  static constexpr size_t kEpochs = 4;

  constexpr DemandWindow() = default;

  // Notes that `demand` pages are in use after some were taken.
  void Note(Length demand) { running_ = std::max(running_, demand); }

  // Moves on to `now`. `demand` pages are in use, as they were since the last call except for
  // peaks. Requires epoch_ns > 0.
  void Advance(uint64_t now, uint64_t epoch_ns, Length demand);

  Length peak() const {
    return std::max(running_, *std::max_element(std::begin(peaks_), std::end(peaks_)));
  }

 private:
  uint64_t epoch_start_ = 0;  // 0 before the first call of Advance
  Length running_;            // the peak of the epoch that runs
  Length peaks_[kEpochs];     // of the epochs before, as a ring
  size_t next_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_RELEASE_DEMAND_WINDOW_H_
