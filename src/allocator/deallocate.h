// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Deallocation.

#ifndef TCMALLOC_ALLOCATOR_DEALLOCATE_H_
#define TCMALLOC_ALLOCATOR_DEALLOCATE_H_

#include <cstddef>

#include "base/attributes.h"
#include "size_class/size_classes.h"
#include "thread/current_thread.h"

namespace tcmalloc {

// Frees any block, or null. Aborts on anything else, with a message that names the address. Reports
// the block to the program's hooks.
void DeallocateSlow(void* block);
// Frees a block, which is not null, without reporting it, because the caller did.
void DeallocateUnreported(void* block);

// Continues after a fast path on `lists` that failed; see AllocateAfterTry.
void DeallocateAfterTry(void* block, FastLists* lists);

// Does the same for a delete with `size` bytes, after it has checked them.
void DeleteAfterTry(void* block, FastLists* lists, size_t size);

// Frees a block. Keeps errno. The fast path of a small object takes no lock and makes no call.
// DeallocateSlow does the rest.
TCMALLOC_ALWAYS_INLINE void Deallocate(void* block, FastThread thread = current_thread) {
  DeallocateBy(thread, block, DeallocateAfterTry, NoSize());
}

// Frees a block. Aborts if it is too small to have been asked for with `size` bytes.
void DeallocateCheckedSized(void* block, size_t size);

// Aborts if `block` is not what operator new returns for `size` bytes, unless the sizes are so
// close that a rounded one may have been passed.
void CheckDeletedSize(const void* block, size_t size);
// Frees a block that operator new returned, after this check.
void DeleteChecked(void* block, size_t size);

// Frees a block for which the caller asked with `size` bytes. Checks only sizes that the fast paths
// do not look up. A smaller size is not trusted, so a wrong one does no harm.
TCMALLOC_ALWAYS_INLINE void DeallocateSized(void* block, size_t size, FastThread thread) {
  if (TCMALLOC_UNLIKELY(size >= kClassBySize.size())) {
    DeallocateCheckedSized(block, size);
  } else {
    DeallocateBy(thread, block, DeallocateAfterTry, size);
  }
}

}  // namespace tcmalloc

#endif  // TCMALLOC_ALLOCATOR_DEALLOCATE_H_
