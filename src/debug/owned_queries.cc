// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Questions about checked blocks that the headers in include/tcmalloc ask.

#define TCMALLOC_OPTIONAL
#include <tcmalloc/internal_malloc_extension.h>

#include "debug/debug_heap.h"

using tcmalloc::debug_heap;

#pragma GCC visibility push(default)
extern "C" {

size_t tcmalloc_get_estimated_allocated_size(size_t size) {
  return tcmalloc::DebugHeap::SizeFor(size);
}

bool tcmalloc_get_allocated_size(const void* block, size_t* size) {
  if (block != nullptr && !tcmalloc_owns(block)) return false;
  *size = debug_heap.SizeOf(block, "GetAllocatedSize");
  return true;
}

bool tcmalloc_owns(const void* block) { return debug_heap.Owns(block); }

}  // extern "C"
#pragma GCC visibility pop
