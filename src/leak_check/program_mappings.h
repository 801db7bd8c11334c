// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The memory that the program itself has mapped.

#ifndef TCMALLOC_LEAK_CHECK_PROGRAM_MAPPINGS_H_
#define TCMALLOC_LEAK_CHECK_PROGRAM_MAPPINGS_H_

#include "leak_check/range_set.h"
#include "system/mapped_object.h"

namespace tcmalloc {

// The mappings that the program's calls of mmap and its kin have left, sbrk included. Mappings of
// libc and of the allocator do not pass through the hooks, and are not there.
extern constinit MappedObject<MappingSet, MappedUse::kSparse> program_mappings;

// Maps the set, and adds the hooks that keep it up to date.
void StartProgramMappings();

}  // namespace tcmalloc

#endif  // TCMALLOC_LEAK_CHECK_PROGRAM_MAPPINGS_H_
