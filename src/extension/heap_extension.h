// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The MallocExtension that answers from the heap.

#ifndef TCMALLOC_EXTENSION_HEAP_EXTENSION_H_
#define TCMALLOC_EXTENSION_HEAP_EXTENSION_H_

#include <gperftools/malloc_extension.h>

namespace tcmalloc {

// Usable before the first constructor and after the last destructor. Never null.
MallocExtension* ExtensionOfHeap();

}  // namespace tcmalloc

#endif  // TCMALLOC_EXTENSION_HEAP_EXTENSION_H_
