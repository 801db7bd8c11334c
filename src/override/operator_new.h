// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The code that all forms of operator new share.

#ifndef TCMALLOC_OVERRIDE_OPERATOR_NEW_H_
#define TCMALLOC_OVERRIDE_OPERATOR_NEW_H_

#include <cstddef>
#include <new>

#include "allocator/allocate.h"
#include "base/attributes.h"

namespace tcmalloc {

// Runs, after a failure, the loop that the standard prescribes. The handler makes room, throws, or
// does not return.
TCMALLOC_COLD void* RetryOrThrow(size_t size, size_t alignment);
TCMALLOC_COLD void* RetryOrNull(size_t size, size_t alignment);

void* NewSlow(size_t size);

TCMALLOC_ALWAYS_INLINE void* New(size_t size) { return AllocateOr<NewSlow>(size); }
void* NewNoThrow(size_t size) noexcept;
void* NewAligned(size_t size, std::align_val_t alignment);
void* NewAlignedNoThrow(size_t size, std::align_val_t alignment) noexcept;

}  // namespace tcmalloc

#endif  // TCMALLOC_OVERRIDE_OPERATOR_NEW_H_
