// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_STRESS_API_MACHINE_H_
#define TCMALLOC_TESTS_STRESS_API_MACHINE_H_

#include <cstdint>

#include "stress/api/shadow_map.h"
#include "stress/api/size_mix.h"

namespace tcmalloc::testing {

inline constexpr unsigned kMaxThreads = 64;

struct Configuration {
  const SizeMix* mix = nullptr;
  std::uint64_t operations = 0;  // of all threads together
  unsigned threads = 1;          // at most kMaxThreads
  unsigned cross_percent = 0;    // of blocks that another thread frees
  std::uint64_t seed = 1;
  // The threads take turns, so that the same seed gives the same run, and the last operations are
  // printed as they happen.
  bool replay = false;
};

// Performs random operations of the malloc API against a shadow map and returns the number of
// operations that it checked. On the first wrong answer of the allocator: prints what was wrong,
// the command that replays it and the history of the block, and exits with status 1.
std::uint64_t Run(const Configuration& configuration, ShadowMap& shadow);

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_API_MACHINE_H_
