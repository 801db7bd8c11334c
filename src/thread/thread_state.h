// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Where the running thread is.

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

// State of one thread, which alone changes it, and reads it in its signal handlers.
struct ThreadState {
  Phase phase = Phase::kNew;
  uint8_t destructor_rounds = 0;
  // The forks that this thread has under way, one within the other, and what they found.
  uint8_t fork_depth = 0;
  GateFindings fork_findings;
};

extern constinit thread_local ThreadState thread_state
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

}  // namespace tcmalloc

#endif  // TCMALLOC_THREAD_THREAD_STATE_H_
