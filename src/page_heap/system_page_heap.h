// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The page heap of the process, on memory of the system.

#ifndef TCMALLOC_PAGE_HEAP_SYSTEM_PAGE_HEAP_H_
#define TCMALLOC_PAGE_HEAP_SYSTEM_PAGE_HEAP_H_

#include "page_heap/any_page_heap.h"
#include "system/memory.h"

namespace tcmalloc {

using PageHeaps = AnyPageHeap<SystemMemory>;

// Instantiated beside this file alone: one copy of each function, compiled for speed, whoever calls
// it.
extern template class PageHeapBase<SystemMemory, HeapSpans>;
extern template class PageHeapBase<SystemMemory, HugeSpans>;
extern template class ClassicPageHeap<SystemMemory>;
extern template class HugePageHeap<SystemMemory>;

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_SYSTEM_PAGE_HEAP_H_
