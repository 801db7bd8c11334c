// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The position of the running thread with respect to the slow path and to forks.

#ifndef TCMALLOC_THREAD_THREAD_STATE_H_
#define TCMALLOC_THREAD_THREAD_STATE_H_

#include <cstdint>

#include "base/attributes.h"
#include "thread/fork_gate.h"

namespace tcmalloc {

enum class Phase : uint8_t {
  kNew,     // has not allocated yet, or no front end could be had so far
  kServed,  // has a front end, and is outside the slow path
  kInside,  // is in the slow path
  kEnded,   // its destructors have run, or it is suspended; it gets no front end again
};

// The state of one thread. Only the thread itself changes it and, in its signal handlers, reads it.
struct ThreadState {
  Phase phase = Phase::kNew;
  uint8_t destructor_rounds = 0;
  // The nested forks that this thread has under way, and their findings.
  uint8_t fork_depth = 0;
  GateFindings fork_findings;
  // The part of the quarantine that a mode that checks blocks gave to the thread, or 0. It is
  // kBelowChecks while the mode changes that part or is in the allocator below. A signal handler
  // that comes in between may use neither, and keep no block of the thread's lists, as the fast
  // paths demand.
  uint8_t quarantine_part = 0;

  static constexpr uint8_t kBelowChecks = UINT8_MAX;
  bool is_below_checks() const { return quarantine_part == kBelowChecks; }
};

extern constinit thread_local ThreadState thread_state
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

}  // namespace tcmalloc

#endif  // TCMALLOC_THREAD_THREAD_STATE_H_
