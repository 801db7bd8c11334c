// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_SYSTEM_THREAD_EXISTS_H_
#define TCMALLOC_SYSTEM_THREAD_EXISTS_H_

#include <sys/types.h>
#include <unistd.h>

#include <cerrno>

#include "system/system_calls.h"

namespace tcmalloc {

// Returns true if a thread of this process has the number, also if the kernel forbids to ask. May
// change errno. Async-signal-safe.
inline bool ThreadExists(pid_t thread) {
  return system_calls.tgkill(::getpid(), thread, 0) == 0 || errno != ESRCH;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_THREAD_EXISTS_H_
