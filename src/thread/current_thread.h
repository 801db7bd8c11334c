// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The pointer through which malloc and free find the running thread's data.

#ifndef TCMALLOC_THREAD_CURRENT_THREAD_H_
#define TCMALLOC_THREAD_CURRENT_THREAD_H_

#include "cache/thread_header.h"

namespace tcmalloc {

// The library has little thread-local storage, here and in other layers. With more, loading it by
// dlopen would not be reliable.
//
// Always points to a header. A thread without a front end has one that is closed for good and
// belongs to nobody.
extern constinit thread_local FastThread current_thread
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

// Read by the entry points in place of current_thread. In the default mode each member names the
// same header as current_thread. In a mode that checks blocks it stays as it is in a new thread,
// and then names a header that is closed for good, whose slow paths are those of the entry points.
// Each member serves entry points that free as one family, or all that allocate.
struct EntryThreads {
  FastThread plain;  // malloc, free, and whatever allocates
  FastThread deletes;
};

// Passed in place of the size by a delete without a size, and by one of an array.
inline constexpr size_t kPlainDelete = SIZE_MAX;
inline constexpr size_t kArrayDelete = SIZE_MAX - 1;
// Added to the size by a sized delete of an array.
inline constexpr size_t kArrayTag = size_t{1} << 32;
extern constinit thread_local EntryThreads entry_threads
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

// Makes entry_threads stay as it is in new threads, with these functions for malloc, free and
// deletes. Null leaves deletes to their slow path. Called before any thread has a front end.
void CheckEntries(MallocElsewhere malloc = MallocClosed,
                  DeallocateElsewhere free = DeallocateClosed,
                  DeallocateElsewhere deletes = nullptr);

// True if the program has operators new and delete of its own, to which forms of ours have to lead:
// see system/own_operators.h. Then the member for deletes stays as it is in new threads.
extern constinit bool program_has_operators __attribute__((visibility("hidden")));
// Sets it. Called before any thread has a front end.
void LeadToProgramsOperators();

// Changes current_thread, and entry_threads with it.
void SetCurrentThread(FastThread thread);

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
