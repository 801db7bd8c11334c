// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Sizes, and a limit of the address space, for the programs that run under limits.

#ifndef TCMALLOC_TESTS_INTEGRATION_LIMITS_ADDRESS_LIMIT_H_
#define TCMALLOC_TESTS_INTEGRATION_LIMITS_ADDRESS_LIMIT_H_

#include <sys/resource.h>

#include <cstddef>

#include "integration/limits/require.h"

namespace tcmalloc::testing {

using Size = std::size_t;

inline constexpr Size kKiB = 1024;
inline constexpr Size kMiB = 1024 * kKiB;

// Limits the calling process, for good.
inline void LimitAddressSpace(Size bytes) {
  const rlimit wanted{bytes, bytes};
  Require(setrlimit(RLIMIT_AS, &wanted) == 0, "setrlimit", bytes, bytes);
}

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_INTEGRATION_LIMITS_ADDRESS_LIMIT_H_
