// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Where the kernel lists the mappings of this process.

#ifndef TCMALLOC_SYSTEM_OWN_MAPS_H_
#define TCMALLOC_SYSTEM_OWN_MAPS_H_

#include <fcntl.h>
#include <unistd.h>

#include "system/system_calls.h"

namespace tcmalloc {

// Returns the name of a file in the form of /proc/PID/maps. That of the process is empty once its
// first thread has ended; the running thread has another. May change errno.
inline const char* OwnMapsFile() {
  constexpr const char* kOfProcess = "/proc/self/maps";
  // The kernel writes a page of lines for whoever reads one byte.
  if (system_calls.gettid() == ::getpid()) return kOfProcess;
  const int fd = system_calls.open(kOfProcess, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return kOfProcess;
  char first = 0;
  const bool empty = system_calls.read(fd, &first, 1) == 0;
  system_calls.close(fd);
  return empty ? "/proc/thread-self/maps" : kOfProcess;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_OWN_MAPS_H_
