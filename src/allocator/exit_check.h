// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The last chance to notice that a program wrote to memory after it freed it.

#ifndef TCMALLOC_ALLOCATOR_EXIT_CHECK_H_
#define TCMALLOC_ALLOCATOR_EXIT_CHECK_H_

#include "base/attributes.h"

namespace tcmalloc {

// Checks free objects that no other thread can reach: those of the running thread, of threads that
// ended, of the caches of CPUs and of the shared lists. Ends the process if an address was freed at
// which no block begins, or if the beginning of a free object was overwritten. Looks at a bounded
// number of objects. Does nothing if TCMALLOC_EXIT_CHECK is off. Called when the program exits.
TCMALLOC_COLD void CheckFreeObjectsAtExit();

}  // namespace tcmalloc

#endif  // TCMALLOC_ALLOCATOR_EXIT_CHECK_H_
