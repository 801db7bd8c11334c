// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The code that all forms of operator new share.

#ifndef TCMALLOC_OVERRIDE_OPERATOR_NEW_H_
#define TCMALLOC_OVERRIDE_OPERATOR_NEW_H_

#include <cstddef>
#include <new>

#include "base/attributes.h"
#include "override/blocks.h"

namespace tcmalloc {

// Runs, after a failure, the loop that the standard prescribes. The handler makes room, throws, or
// does not return.
TCMALLOC_COLD void* RetryOrThrow(size_t size, size_t alignment);
TCMALLOC_COLD void* RetryOrNull(size_t size, size_t alignment);

void* NewSlow(size_t size);
void* NewArraySlow(size_t size);

TCMALLOC_ALWAYS_INLINE void* New(size_t size) { return Blocks::NewOr<NewSlow>(size); }
TCMALLOC_ALWAYS_INLINE void* NewArray(size_t size) {
  return Blocks::NewArrayOr<NewArraySlow>(size);
}
void* NewNoThrow(size_t size) noexcept;
void* NewAligned(size_t size, std::align_val_t alignment);
void* NewAlignedNoThrow(size_t size, std::align_val_t alignment) noexcept;
void* NewArrayNoThrow(size_t size) noexcept;
void* NewArrayAlignedNoThrow(size_t size, std::align_val_t alignment) noexcept;
TCMALLOC_ALWAYS_INLINE void* NewArrayAligned(size_t size, std::align_val_t alignment) {
  return Blocks::MakeNewArray(NewAligned(size, alignment));
}

}  // namespace tcmalloc

#endif  // TCMALLOC_OVERRIDE_OPERATOR_NEW_H_
