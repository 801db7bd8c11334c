// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The mode in which all blocks are checked: TCMALLOC_MODE=debug, and the debug libraries.

#ifndef TCMALLOC_DEBUG_DEBUG_MODE_H_
#define TCMALLOC_DEBUG_DEBUG_MODE_H_

#include "allocator/block_functions.h"

namespace tcmalloc {

// The debug heap, for the entry points.
extern const BlockFunctions kDebugFunctions;

// Sends all entry points to it. Called once, before the program gets its first block.
void StartDebugMode();

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_DEBUG_MODE_H_
