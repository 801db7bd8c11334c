// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/release/demand_window.h"

namespace tcmalloc {

void DemandWindow::Advance(uint64_t now, uint64_t epoch_ns, Length demand) {
  if (epoch_start_ == 0) epoch_start_ = now;
  if (now < epoch_start_) return;
  const uint64_t epochs = (now - epoch_start_) / epoch_ns;
  // Stops once every peak is forgotten.
  for (uint64_t i = 0; i < std::min(epochs, uint64_t{kEpochs + 1}); ++i) {
    peaks_[next_] = running_;
    next_ = (next_ + 1) % kEpochs;
    running_ = demand;
  }
  epoch_start_ += epochs * epoch_ns;
}

}  // namespace tcmalloc
