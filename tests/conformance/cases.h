// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_CONFORMANCE_CASES_H_
#define TCMALLOC_TESTS_CONFORMANCE_CASES_H_

#include "conformance/suite.h"

namespace tcmalloc::testing {

// Which names exist, and that one object defines them all.
void AddSymbolCases(Suite& suite);
// Sizes that cannot be had, products that overflow, size zero.
void AddSizeCases(Suite& suite);
// Valid and invalid alignments, and every size at every alignment.
void AddAlignmentCases(Suite& suite);
// realloc and reallocarray.
void AddReallocCases(Suite& suite);
// free and its kin: errno, NULL, sizes given on deallocation, nallocx.
void AddDeallocationCases(Suite& suite);
// new handlers, std::bad_alloc, the mode in which malloc behaves like new.
void AddNewHandlerCases(Suite& suite);
// malloc_usable_size.
void AddUsableSizeCases(Suite& suite);
// malloc_trim, malloc_info, mallinfo, mallopt, malloc_stats, tc_version.
void AddStatisticsCases(Suite& suite);

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_CONFORMANCE_CASES_H_
