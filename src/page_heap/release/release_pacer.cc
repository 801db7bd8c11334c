// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/release/release_pacer.h"

#include <algorithm>

namespace tcmalloc {

void ReleasePacer::set_rate(double rate) {
  rate_ = rate > 0 ? rate : 0;
  countdown_ = WaitAfter(1);
}

bool ReleasePacer::BeginRelease() {
  countdown_ = kNever;
  return rate_ > 0;
}

void ReleasePacer::NoteReleased(Length n) {
  countdown_ = n > Length(0) ? WaitAfter(static_cast<double>(n.pages())) : kIdleWait;
}

int64_t ReleasePacer::WaitAfter(double released) const {
  if (rate_ == 0) return kNever;
  return static_cast<int64_t>(std::min(1000 / rate_ * released, static_cast<double>(kMaxWait)));
}

}  // namespace tcmalloc
