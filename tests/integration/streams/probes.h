// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Actions of a process that must not notice that the allocator prints.

#ifndef TCMALLOC_TESTS_INTEGRATION_STREAMS_PROBES_H_
#define TCMALLOC_TESTS_INTEGRATION_STREAMS_PROBES_H_

#include <span>

namespace tcmalloc::testing {

struct StreamProbe {
  const char* name;
  int (*run)();  // returns an exit status
};

inline constexpr int kProbeSkipped = 77;

std::span<const StreamProbe> StreamProbes();
std::span<const StreamProbe> CancellationProbes();

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_INTEGRATION_STREAMS_PROBES_H_
