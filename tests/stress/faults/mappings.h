// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_STRESS_FAULTS_MAPPINGS_H_
#define TCMALLOC_TESTS_STRESS_FAULTS_MAPPINGS_H_

#include <cstddef>

namespace tcmalloc::testing {

// Checks that the mappings of the process that carry the heap's name add up to `bytes`. No
// statement where the kernel keeps no names or the heap is partly below the program's break.
// Allocates nothing.
void CheckHeapMappings(size_t bytes);

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_FAULTS_MAPPINGS_H_
