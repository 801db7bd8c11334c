// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_INTEGRATION_LIMITS_PROBES_H_
#define TCMALLOC_TESTS_INTEGRATION_LIMITS_PROBES_H_

#include <cstddef>
#include <span>
#include <string_view>

namespace tcmalloc::testing {

// A probe that runs in a process that started under a limit. It says what went wrong on stderr and
// exits with 1; it returns where all went well. `limit` is in bytes, 0 where that says nothing.
struct Probe {
  const char* name;
  void (*run)(std::size_t limit);
};

std::span<const Probe> Probes();

// Every thread that could be started can allocate.
void ProbeThreads(std::size_t stack_bytes);

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_INTEGRATION_LIMITS_PROBES_H_
