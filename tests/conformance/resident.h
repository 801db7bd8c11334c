// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_CONFORMANCE_RESIDENT_H_
#define TCMALLOC_TESTS_CONFORMANCE_RESIDENT_H_

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>

namespace tcmalloc::testing {

// Resident bytes of this process, read without allocating.
inline std::size_t ResidentBytes() {
  char text[128] = {};
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t got = read(file, text, sizeof text - 1);
  close(file);
  std::size_t pages = 0;
  if (got <= 0 || std::sscanf(text, "%*u %zu", &pages) != 1) return 0;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_CONFORMANCE_RESIDENT_H_
