// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_INTEGRATION_LIMITS_HEAP_LIMIT_PROBES_H_
#define TCMALLOC_TESTS_INTEGRATION_LIMITS_HEAP_LIMIT_PROBES_H_

#include <span>

namespace tcmalloc::testing {

// A probe that runs in a process whose environment sets limits. It says what went wrong on stderr
// and exits with 1; it returns where all went well.
struct HeapLimitProbe {
  const char* name;
  void (*run)(const char* argument);
};

std::span<const HeapLimitProbe> HeapLimitProbes();

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_INTEGRATION_LIMITS_HEAP_LIMIT_PROBES_H_
