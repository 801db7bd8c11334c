// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "upkeep/peak.h"

namespace tcmalloc {

PeakStats Peak::Note(const PeakStats& now) {
  SpinLockHolder holder(lock_);
  NoteLocked(now);
  return peak_;
}

// Keeps the moment with the most memory in use of each step, because statistics are seldom read
// exactly at a peak.
void Peak::NoteLocked(const PeakStats& now) {
  if (now.committed < peak_.committed) return;
  if (!IsDue(now.committed) && now.in_use <= peak_.in_use) return;
  peak_ = now;
  steps_.BeginAt(now.committed);
}

}  // namespace tcmalloc
