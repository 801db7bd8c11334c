// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Questions about blocks that the headers in include/tcmalloc ask. The debug libraries have other
// answers.

#define TCMALLOC_OPTIONAL
#include <tcmalloc/internal_malloc_extension.h>

#include "allocator/allocated_size.h"
#include "allocator/deallocate.h"
#include "heap/heap.h"

using tcmalloc::heap;

#pragma GCC visibility push(default)
extern "C" {

size_t tcmalloc_get_estimated_allocated_size(size_t size) {
  return tcmalloc::AllocatedSizeFor(size);
}

bool tcmalloc_get_allocated_size(const void* block, size_t* size) {
  if (block != nullptr && !tcmalloc_owns(block)) return false;
  *size = tcmalloc::UsableSize(block);
  return true;
}

bool tcmalloc_owns(const void* block) {
  return heap.emergency().Owns(block) || heap.guarded().Owns(block) ||
         heap.page_map().FindInUse(block) != nullptr;
}

}  // extern "C"
#pragma GCC visibility pop
