// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Questions about blocks that the headers in include/tcmalloc ask.

#define TCMALLOC_OPTIONAL
#include <tcmalloc/internal_malloc_extension.h>

#include "allocator/block_functions.h"
#include "allocator/usable_size.h"
#include "heap/heap.h"

using tcmalloc::heap;

#pragma GCC visibility push(default)
extern "C" {

size_t tcmalloc_get_estimated_allocated_size(size_t size) {
  return tcmalloc::EstimatedSizeInMode(size);
}

bool tcmalloc_get_allocated_size(const void* block, size_t* size) {
  if (block != nullptr && !tcmalloc_owns(block)) return false;
  *size = tcmalloc::UsableSizeInUseByCall(block, "GetAllocatedSize");
  return true;
}

bool tcmalloc_owns(const void* block) { return tcmalloc::OwnsInMode(block); }

}  // extern "C"
#pragma GCC visibility pop
