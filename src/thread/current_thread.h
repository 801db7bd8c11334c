// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The pointer through which malloc and free find the running thread's data.

#ifndef TCMALLOC_THREAD_CURRENT_THREAD_H_
#define TCMALLOC_THREAD_CURRENT_THREAD_H_

#include "cache/thread_header.h"

namespace tcmalloc {

// Together with the few bytes of thread/thread_state.h and base/spin_lock.cc, this is all
// thread-local storage of the library. With more, loading it by dlopen would not be reliable.
//
// Always points to a header. A thread without a front end has one that is closed for good and
// belongs to nobody.
extern constinit thread_local FastThread current_thread
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

// Returns the closed header for threads without a front end.
FastThread NoThread();

// Return the functions to which the fast paths go when they refuse: MallocSlow of the entry points
// and DeallocateSlow of the allocator, which are layers above. Null in a program without them, such
// as a test of lower layers.
SlowPaths SlowPathsOfEntryPoints();

// Gives current_thread its initial value in a thread whose thread-local storage is still zero.
void InitializeCurrentThread();

}  // namespace tcmalloc

#endif  // TCMALLOC_THREAD_CURRENT_THREAD_H_
