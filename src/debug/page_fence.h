// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Blocks in pages of their own that end at a page without access (TCMALLOC_PAGE_FENCE).

#ifndef TCMALLOC_DEBUG_PAGE_FENCE_H_
#define TCMALLOC_DEBUG_PAGE_FENCE_H_

#include <cstddef>

#include "debug/block_record.h"

namespace tcmalloc {

// The most blocks in pages of their own, freed ones included. Each takes up to two of the mappings
// that the kernel grants a process, 65,530 by default, and the program needs some as well.
inline constexpr int kMostFenced = 16'384;

// Maps memory for a block of `size` bytes, and sets its place in *block. Returns false if there are
// kMostFenced, or the kernel has no memory, or no mapping left. A fence that is readable lets
// programs read too far.
[[nodiscard]] bool MapFenced(size_t size, size_t alignment, bool readable, BlockRecord* block);

// Takes the program's access to a freed block: to writes, or to reads as well. Returns true if it
// may not be read from now on.
bool ForbidFenced(const BlockRecord& block, bool readable);

void UnmapFenced(const BlockRecord& block);

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_PAGE_FENCE_H_
