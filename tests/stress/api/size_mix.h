// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_STRESS_API_SIZE_MIX_H_
#define TCMALLOC_TESTS_STRESS_API_SIZE_MIX_H_

#include <cstddef>
#include <span>

#include "stress/api/random.h"

namespace tcmalloc::testing {

// A distribution of block sizes, and how many blocks a thread holds at most under it.
struct SizeMix {
  const char* name;
  std::size_t slots;
  std::size_t (*draw)(Random& random);
};

std::span<const SizeMix> SizeMixes();

// Null where there is no such mix.
const SizeMix* FindSizeMix(const char* name);

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_API_SIZE_MIX_H_
