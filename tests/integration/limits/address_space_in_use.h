// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_INTEGRATION_LIMITS_ADDRESS_SPACE_IN_USE_H_
#define TCMALLOC_TESTS_INTEGRATION_LIMITS_ADDRESS_SPACE_IN_USE_H_

#include <unistd.h>

#include <cstdio>

#include "integration/limits/address_limit.h"
#include "integration/limits/require.h"

namespace tcmalloc::testing {

// Returns the bytes of address space that the calling process has.
inline Size AddressSpaceInUse() {
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  Require(file != nullptr, "statm");
  Size pages = 0;
  Require(std::fscanf(file, "%zu", &pages) == 1, "the first number of statm");
  std::fclose(file);
  return pages * static_cast<Size>(sysconf(_SC_PAGESIZE));
}

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_INTEGRATION_LIMITS_ADDRESS_SPACE_IN_USE_H_
