// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Chooses what the entry points call. They are compiled twice: for the allocator, and for the debug
// libraries with TCMALLOC_DEBUG_BLOCKS.

#ifndef TCMALLOC_OVERRIDE_BLOCKS_H_
#define TCMALLOC_OVERRIDE_BLOCKS_H_

#ifdef TCMALLOC_DEBUG_BLOCKS
#include "debug/debug_blocks.h"
#else
#include "override/heap_blocks.h"
#endif

namespace tcmalloc {

#ifdef TCMALLOC_DEBUG_BLOCKS
using Blocks = DebugBlocks;
#else
using Blocks = HeapBlocks;
#endif

}  // namespace tcmalloc

#endif  // TCMALLOC_OVERRIDE_BLOCKS_H_
