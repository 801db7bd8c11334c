// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Zeroes of calloc, in memory that was a block before.

#ifndef TCMALLOC_ALLOCATOR_CLEAR_BLOCK_H_
#define TCMALLOC_ALLOCATOR_CLEAR_BLOCK_H_

#include <cstddef>

namespace tcmalloc {

// Zeroes the first `size` bytes of a block of the heap. Parts of a long one of which few pages are
// resident give these back, so that a block that its last owner hardly touched takes as little time
// and memory as a new one. Keeps errno.
void ClearBlock(void* block, size_t size);

}  // namespace tcmalloc

#endif  // TCMALLOC_ALLOCATOR_CLEAR_BLOCK_H_
