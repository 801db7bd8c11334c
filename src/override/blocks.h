// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Chooses what the entry points call. They are compiled twice: for the allocator, and for the debug
// libraries, where CMake names another header and another class.

#ifndef TCMALLOC_OVERRIDE_BLOCKS_H_
#define TCMALLOC_OVERRIDE_BLOCKS_H_

#ifndef TCMALLOC_BLOCKS
#define TCMALLOC_BLOCKS HeapBlocks
#define TCMALLOC_BLOCKS_HEADER "override/heap_blocks.h"
#endif

#include TCMALLOC_BLOCKS_HEADER

namespace tcmalloc {

using Blocks = TCMALLOC_BLOCKS;

}  // namespace tcmalloc

#endif  // TCMALLOC_OVERRIDE_BLOCKS_H_
