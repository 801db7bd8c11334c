// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The pointer by which malloc and free find what the running thread owns.

#ifndef TCMALLOC_THREAD_CURRENT_THREAD_H_
#define TCMALLOC_THREAD_CURRENT_THREAD_H_

#include "cache/thread_header.h"

namespace tcmalloc {

// With the few bytes of thread/thread_state.h and of base/spin_lock.cc this is all thread-local
// storage of the library: one with more could not be relied upon to load by dlopen.
//
// Always names a header: a thread without a front end has one that is closed for good and belongs
// to nobody.
extern constinit thread_local FastThread current_thread
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

// Names the closed header, for a thread without a front end.
FastThread NoThread();

// Continues what the fast paths refuse: MallocSlow of the entry points and DeallocateSlow of the
// allocator, which stand above. Null in a program without these, a test of lower layers.
SlowPaths SlowPathsOfEntryPoints();

// Gives current_thread its initial value in a thread whose thread-local storage is still zero.
void InitializeCurrentThread();

}  // namespace tcmalloc

#endif  // TCMALLOC_THREAD_CURRENT_THREAD_H_
