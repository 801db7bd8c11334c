// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Changes the size of a block.

#ifndef TCMALLOC_ALLOCATOR_REALLOCATE_H_
#define TCMALLOC_ALLOCATOR_REALLOCATE_H_

#include <cstddef>

namespace tcmalloc {

// Returns a block of at least `size` bytes with the contents of `block`, which is then freed unless
// it is the result. Null leaves `block` as it was, and happens only if `size` is more than it has:
// a block never fails to shrink. Requires block != nullptr and size > 0. Aborts if `block` is not
// one of ours.
void* Reallocate(void* block, size_t size);

}  // namespace tcmalloc

#endif  // TCMALLOC_ALLOCATOR_REALLOCATE_H_
