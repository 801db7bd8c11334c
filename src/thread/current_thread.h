// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What the running thread owns, and how it enters the slow path.

#ifndef TCMALLOC_THREAD_CURRENT_THREAD_H_
#define TCMALLOC_THREAD_CURRENT_THREAD_H_

#include <cstdint>

#include "heap/heap.h"

namespace tcmalloc {

// With the few bytes of current_thread.cc and of base/spin_lock.cc this is all thread-local storage
// of the library: one with more could not be relied upon to load by dlopen.
//
// Never null: a thread without a cache has one that is closed for good and belongs to nobody.
extern constinit thread_local Cache* current_cache
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

// What malloc and free do where the fast paths refuse: MallocSlow of the entry points and
// DeallocateSlow of the allocator, which stand above. Null in a program without these, a test of
// lower layers.
SlowPaths SlowPathsOfEntryPoints();

// Gives current_cache its initial value in a thread whose thread-local storage is still zero.
void InitializeCurrentThread();

// How a thread came into the slow path.
enum class Entry : uint8_t {
  kThreadCache,  // with a cache of its own, closed now
  kCpuCache,     // served by the caches of CPUs, closed to them now
  kUncached,     // without a cache: it could not be made yet, or the thread's destructors have run
  kReentrant,    // from a signal handler or library call that interrupted the slow path, or while a
                 // fork is under way; no lock may be taken
};

// Marks the running thread as inside the slow path, gives it a front end if it has none yet, and
// another one if that is wanted now.
Entry EnterSlowPath();
// The same for what is no allocation, and may wait up to a second for forks of other threads.
Entry EnterSlowPathPatiently();
// Undoes EnterSlowPath, which returned `entry`.
void LeaveSlowPath(Entry entry);

// Lets the running thread, which came in as `entry`, enter the slow path again after few more
// allocations.
void ReturnToSlowPathSoon(Entry entry);

// A thread without its front end, as SuspendThread left it. Two registers hold it.
struct SuspendedThread {
  Cache* cache;   // what it had, or null
  uint8_t phase;  // values of current_thread.cc
  uint8_t destructor_rounds;
  bool interrupted;  // it was inside the slow path, and stays as it is
};
static_assert(sizeof(SuspendedThread) == 2 * sizeof(void*));

// Takes the running thread off its front end until ResumeThread: it allocates uncached. In a signal
// handler that interrupted the slow path nothing changes, for nothing is served by a front end
// there.
SuspendedThread SuspendThread();
// Undoes SuspendThread, which returned `thread`, in whatever state the thread was left since.
void ResumeThread(SuspendedThread thread);

// What the handlers of fork do; see ForkGate. A fork may begin within a fork, in a signal handler.
// Each keeps errno, but for BeginFork.
void BeginFork();
void EndForkInParent();
void EndForkInChild();

// Clears what threads left that exist no longer: see ForkGate::OpenInChild.
void ClearAfterFork();

// Arranges that threads give up their caches when they end. Called once, with the heap's
// initialization lock held. Allocates nothing.
void WatchThreadEnds();

}  // namespace tcmalloc

#endif  // TCMALLOC_THREAD_CURRENT_THREAD_H_
