// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Checks of what programs pass to free. Each ends the process, with one line that names the
// address, where a check fails.

#ifndef TCMALLOC_ALLOCATOR_CHECKED_BLOCK_H_
#define TCMALLOC_ALLOCATOR_CHECKED_BLOCK_H_

#include "pages/span.h"

namespace tcmalloc {

// The span in use in which `block` begins a block. Takes no lock.
Span* CheckedSpanOf(const void* block);

// Checks that `object`, of the small objects of `span`, is in use, as far as its first word makes
// that doubtful. Called inside a slow path that is not reentrant.
void CheckNotFree(const Span* span, void* object);

}  // namespace tcmalloc

#endif  // TCMALLOC_ALLOCATOR_CHECKED_BLOCK_H_
