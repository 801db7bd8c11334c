// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Replaces libc's functions that end the process without exit handlers, so that programs which call
// them, such as shells and workers, leave their CPU profile.

#include <sys/syscall.h>
#include <unistd.h>

#include "base/attributes.h"
#include "cpu_profile/cpu_profiler.h"

extern "C" {

// May be called in signal handlers, and by children of vfork.
TCMALLOC_EXPORT void _exit(int status) {
  tcmalloc::cpu_profiler.StopBeforeEnd();
  for (;;) syscall(SYS_exit_group, status);
}

// An alias, because a call from a function that may not throw would need the C++ library.
TCMALLOC_EXPORT void _Exit(int status) noexcept __attribute__((alias("_exit")));

}  // extern "C"
