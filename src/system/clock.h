// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Reads the clocks of the system.

#ifndef TCMALLOC_SYSTEM_CLOCK_H_
#define TCMALLOC_SYSTEM_CLOCK_H_

#include <time.h>

#include <cstdint>

#include "base/attributes.h"
#include "system/system_calls.h"

namespace tcmalloc {

// Returns nanoseconds since some moment before the process started; 0 if the clock cannot be read.
// Costs a system call only if the kernel maps no function for it. A function of its own, because a
// copy in each caller makes all of them, and their unwind tables, larger.
TCMALLOC_NOINLINE inline int64_t MonotonicNanoseconds() {
  timespec now = {};
  if (system_calls.clock_gettime(CLOCK_MONOTONIC, &now) != 0) return 0;
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Returns nanoseconds since 1970, by the clock that people set.
inline int64_t WallNanoseconds() {
  timespec now = {};
  system_calls.clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_CLOCK_H_
