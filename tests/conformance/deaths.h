// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_CONFORMANCE_DEATHS_H_
#define TCMALLOC_TESTS_CONFORMANCE_DEATHS_H_

#include "conformance/suite.h"

namespace tcmalloc::testing {

// Pointers that are not blocks: foreign, wild, misaligned, interior.
void AddInvalidFreeDeaths(Suite& suite);
void AddDoubleFreeDeaths(Suite& suite);
// Writes to blocks after they were freed.
void AddOverwriteDeaths(Suite& suite);
// Sized deallocation with another size than the block has.
void AddWrongSizeDeaths(Suite& suite);

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_CONFORMANCE_DEATHS_H_
