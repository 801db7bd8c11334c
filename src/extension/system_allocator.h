// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The source of the heap's memory, which programs may examine and replace.

#ifndef TCMALLOC_EXTENSION_SYSTEM_ALLOCATOR_H_
#define TCMALLOC_EXTENSION_SYSTEM_ALLOCATOR_H_

#include <gperftools/malloc_extension.h>

namespace tcmalloc {

// Returns the source from which the heap grows: the one that was registered last, or else the
// system's memory, which a registered one may call in turn. Never null. The system's memory enters
// the slow path, so that forks of other threads and calls of this one find its lock free. In a
// signal handler that interrupted the slow path it fails.
SysAllocator* CurrentSystemAllocator();

// Null registers the system's memory. Thread safe.
void RegisterSystemAllocator(SysAllocator* allocator);

}  // namespace tcmalloc

#endif  // TCMALLOC_EXTENSION_SYSTEM_ALLOCATOR_H_
