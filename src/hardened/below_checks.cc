// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hardened/below_checks.h"

#include "allocator/slow_path.h"

namespace tcmalloc {

uint8_t BelowChecks::FindPart() {
  if (thread_state.is_below_checks()) return ThreadState::kBelowChecks;
  // Gets a front end, for which libc may allocate.
  if (thread_state.phase == Phase::kNew) const SlowPath slow_path;
  const uint8_t part = thread_state.quarantine_part;
  if (ThreadParts::IsPart(part)) return part;
  // A handler that came while a part is taken would take another one.
  thread_state.quarantine_part = ThreadState::kBelowChecks;
  // Pairs with PartOfThread in a signal handler.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return Quarantine::ChoosePart(part);
}

}  // namespace tcmalloc
