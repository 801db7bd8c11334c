// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Lists directories.

#ifndef TCMALLOC_SYSTEM_DIRECTORY_H_
#define TCMALLOC_SYSTEM_DIRECTORY_H_

#include <dirent.h>
#include <fcntl.h>
#include <sys/types.h>

#include "system/system_calls.h"

namespace tcmalloc {

// Calls f(const char* name) for each entry of a directory, as far as the kernel lists them. Returns
// false if it cannot be read. Allocates nothing, and may be called in a signal handler. May change
// errno.
template <typename F>
bool ForEachName(const char* directory, F f) {
  const int fd = system_calls.open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (fd < 0) return false;
  alignas(dirent64) char entries[2048];
  ssize_t bytes = 0;
  while ((bytes = system_calls.getdents64(fd, entries, sizeof(entries))) > 0) {
    for (const char* at = entries; at < entries + bytes;) {
      const auto* entry = reinterpret_cast<const dirent64*>(at);
      f(static_cast<const char*>(entry->d_name));
      at += entry->d_reclen;
    }
  }
  system_calls.close(fd);
  return bytes == 0;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_DIRECTORY_H_
