// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The source of the heap's memory, as programs see and replace it.

#ifndef TCMALLOC_EXTENSION_SYSTEM_ALLOCATOR_H_
#define TCMALLOC_EXTENSION_SYSTEM_ALLOCATOR_H_

#include <gperftools/malloc_extension.h>

namespace tcmalloc {

// What the heap grows by: what was registered last, or else the system's memory, which a registered
// one may call in turn. Never null. The system's memory enters the slow path, so that forks of
// other threads and calls of this one find its lock free; in a signal handler that interrupted the
// slow path it fails.
SysAllocator* CurrentSystemAllocator();

// Null registers the system's memory. Thread safe.
void RegisterSystemAllocator(SysAllocator* allocator);

}  // namespace tcmalloc

#endif  // TCMALLOC_EXTENSION_SYSTEM_ALLOCATOR_H_
