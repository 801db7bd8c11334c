// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Statistics of the allocator under test, through libc's interfaces.

#ifndef TCMALLOC_TESTS_STRESS_FAULTS_STATISTICS_H_
#define TCMALLOC_TESTS_STRESS_FAULTS_STATISTICS_H_

#include <cstddef>

namespace tcmalloc::testing {

// Checks that mallinfo2 adds up, and that malloc_info does and says the same. Requires that no
// other thread is in the allocator. Allocates nothing. Takes standard output for itself.
void CheckStatistics();

size_t BytesInUse();
size_t BytesMapped();

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_FAULTS_STATISTICS_H_
