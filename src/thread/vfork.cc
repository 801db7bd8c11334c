// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "thread/vfork.h"

#include <cerrno>

namespace tcmalloc {

extern "C" SuspendedThread tcmalloc_before_vfork() {
  const int saved_errno = errno;
  const SuspendedThread thread = SuspendThread();
  errno = saved_errno;
  return thread;
}

extern "C" pid_t tcmalloc_after_vfork(SuspendedThread thread, long result) {
  ResumeThread(thread);
  if (result >= 0) return static_cast<pid_t>(result);
  errno = static_cast<int>(-result);
  return -1;
}

}  // namespace tcmalloc
