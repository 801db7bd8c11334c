// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/system_page_heap.h"

#include "system/weak_cxx_symbols.h"

namespace tcmalloc {

template class PageHeapBase<SystemMemory, HeapSpans>;
template class PageHeapBase<SystemMemory, HugeSpans>;
template class ClassicPageHeap<SystemMemory>;
template class HugePageHeap<SystemMemory>;

}  // namespace tcmalloc
