// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Blocks the program's signal handlers.

#ifndef TCMALLOC_SYSTEM_SIGNAL_MASK_H_
#define TCMALLOC_SYSTEM_SIGNAL_MASK_H_

#include <signal.h>

#include <cerrno>
#include <cstdint>

#include "system/system_calls.h"

namespace tcmalloc {

// All signals but the two that libc keeps for itself, 32 and 33. It uses one to cancel threads, and
// the other to let every thread of the process change its credentials, and waits for each of them.
inline constexpr uint64_t kSignalsOfPrograms = ~(uint64_t{3} << 31);

// Blocks them in the running thread. Returns false if the kernel refuses; may change errno.
inline bool BlockSignals(uint64_t* old) {
  return system_calls.rt_sigprocmask(SIG_BLOCK, &kSignalsOfPrograms, old) == 0;
}

// A scope in which no handler of the program runs on this thread. Keeps errno.
class SignalsBlocked {
 public:
  SignalsBlocked() : saved_errno_(errno), blocked_(BlockSignals(&mask_)) {}
  ~SignalsBlocked() {
    if (blocked_) system_calls.rt_sigprocmask(SIG_SETMASK, &mask_, nullptr);
    errno = saved_errno_;
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

  bool blocked() const { return blocked_; }

 private:
  int saved_errno_;
  uint64_t mask_ = 0;
  bool blocked_;  // after mask_, which it sets
};

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_SIGNAL_MASK_H_
