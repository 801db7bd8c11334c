// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_STRESS_FAULTS_ADDRESS_SPACE_H_
#define TCMALLOC_TESTS_STRESS_FAULTS_ADDRESS_SPACE_H_

#include <cstddef>

namespace tcmalloc::testing {

// Bytes of address space that the process has, whoever got them. Allocates nothing.
size_t AddressSpaceBytes();

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_FAULTS_ADDRESS_SPACE_H_
