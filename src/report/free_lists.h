// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Lists free memory by place and by size.

#ifndef TCMALLOC_REPORT_FREE_LISTS_H_
#define TCMALLOC_REPORT_FREE_LISTS_H_

#include <gperftools/malloc_extension.h>

#include <vector>

namespace tcmalloc {

// Replaces *lists by the free lists of the heap, empty ones included. Leaves it empty if the slow
// path was interrupted.
void ListFreeLists(std::vector<MallocExtension::FreeListInfo>* lists);

}  // namespace tcmalloc

#endif  // TCMALLOC_REPORT_FREE_LISTS_H_
