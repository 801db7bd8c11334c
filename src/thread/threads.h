// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The life of threads: their front ends, and how they enter the slow path.

#ifndef TCMALLOC_THREAD_THREADS_H_
#define TCMALLOC_THREAD_THREADS_H_

#include <atomic>
#include <cstdint>

#include "base/attributes.h"
#include "cache/per_cpu/cpu_cache.h"
#include "cache/per_thread/thread_caches.h"
#include "thread/current_thread.h"
#include "thread/deferred_frees.h"
#include "thread/entry.h"
#include "thread/fork_gate.h"
#include "thread/fork_handlers.h"
#include "thread/front_end.h"
#include "thread/thread_end.h"
#include "thread/thread_state.h"
#include "thread/vfork.h"

namespace tcmalloc {

// Functions by which libc and the parts of this folder reach the one object that holds Threads.
struct ThreadEvents {
  void (*first_entry)();       // makes what the threads share; later calls do nothing
  bool (*start_per_cpu)();     // see FrontEndChoice::NoteStart
  void (*thread_ends)(void*);  // calls NoteEnd
  void (*before_fork)();       // calls BeginFork, and keeps errno
  void (*in_parent)();         // calls EndForkInParent
  void (*in_child)();          // calls EndForkInChild
  void (*clear_after_fork)();  // calls ClearAfterFork
};

// Gives threads their front ends, takes them away again, and lets a thread into the slow path, in
// which its front end is closed to signal handlers. Forks are kept apart from the slow paths by a
// gate; see ForkGate.
//
// Constant-initialised and trivially destructible. Thread safe; async-signal-safe but for what says
// that it may allocate.
template <SourceTable Sources>
class Threads {
 public:
  using Cache = ThreadCache<Sources>;
  using Caches = ThreadCaches<Sources>;
  using Cpus = CpuCache<Sources>;

  constexpr Threads(MetadataArena& arena, const typename Cache::Context& context, Caches& caches,
                    Cpus& cpus, DeferredFrees& deferred, const ThreadEvents& events)
      : events_(events),
        arena_(arena),
        context_(context),
        caches_(caches),
        cpus_(cpus),
        deferred_(deferred),
        gate_(events.clear_after_fork),
        fork_handlers_(events.before_fork, events.in_parent, events.in_child),
        end_(events.thread_ends) {}
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

  // Arranges that threads give up their front ends when they end. Called once, before the first
  // thread gets one. Allocates nothing.
  void WatchEnds() { end_.MakeKey(); }

  // Marks the running thread as inside the slow path, gives it a front end if it has none yet, and
  // another one if that is wanted now. May allocate at the thread's first call.
  Entry Enter();
  // Enters for what is no allocation, and may wait up to a second for forks of other threads.
  Entry EnterPatiently();
  // Undoes Enter, which returned `entry`.
  void Leave(Entry entry);

  // The cache of the running thread, which came in as `entry`; null if that is another entry than
  // kThreadCache.
  static Cache* CacheOf(Entry entry) {
    return entry == Entry::kThreadCache ? Cache::Of(current_thread.header()) : nullptr;
  }

  // Lets the running thread, which came in as `entry`, enter the slow path again after few more
  // allocations.
  static void ScheduleSlowPath(Entry entry);

  // Takes the running thread off its front end until Resume: it allocates uncached. In a signal
  // handler that interrupted the slow path nothing changes, for nothing is served by a front end
  // there.
  SuspendedThread Suspend();
  // Undoes Suspend, which returned `thread`, in whatever state the thread was left since.
  void Resume(SuspendedThread thread);

  // Called at each round of the running thread's destructors.
  void NoteEnd(void* value);

  void RegisterForkHandlers() { fork_handlers_.Register(); }
  // Called by the handlers of fork. A fork may begin within a fork, in a signal handler. Each keeps
  // errno, but for BeginFork.
  void BeginFork();
  void EndForkInParent();
  // Calls reset_others(), with signals blocked, before other code may enter.
  template <typename F>
  void EndForkInChild(F reset_others);
  // Clears what threads left that exist no longer: see ForkGate::OpenInChild.
  void ClearAfterFork();

  ForkGate& gate() { return gate_; }
  FrontEndChoice& front_end() { return front_end_; }

 private:
  // Destructors of other keys may still allocate and free. The front end is given up in this round
  // of destructors, of the four that POSIX promises.
  static constexpr uint8_t kLastRound = 3;

  // The running thread, as the gate knows it while it has no seat.
  static ThreadId Self() { return &thread_state; }
  TCMALLOC_ALWAYS_INLINE static void CloseFrontEnd(ThreadHeader* thread);
  TCMALLOC_ALWAYS_INLINE static bool CloseThread(Entry* entry);
  void OpenThread();
  void OpenIfServed();

  bool MayWait() const;
  TCMALLOC_COLD bool AwaitGate();
  TCMALLOC_ALWAYS_INLINE bool EnterBySeat();
  bool BecomeStranger(Phase otherwise);
  TCMALLOC_COLD Entry TurnAway();
  TCMALLOC_NOINLINE Entry EnterWithoutSeat();

  ThreadHeader* JoinCpus() { return cpus_.Join(); }
  ThreadHeader* MakeThreadCache();
  ThreadHeader* MakeFrontEnd();
  bool StartThread();
  bool OpenNewThread();
  TCMALLOC_ALWAYS_INLINE bool IsWhereWanted(Entry entry) const;
  TCMALLOC_COLD void Move();

  void GiveUpFrontEnd(Phase then);
  TCMALLOC_NOINLINE void ReleaseRecord(ThreadHeader* thread);
  void Release(ThreadHeader* thread);
  void PushEnded(ThreadHeader* thread);
  void ReleaseEnded();

  const ThreadEvents events_;
  MetadataArena& arena_;
  const typename Cache::Context& context_;
  Caches& caches_;
  Cpus& cpus_;
  DeferredFrees& deferred_;
  ForkGate gate_;
  FrontEndChoice front_end_;
  ForkHandlers fork_handlers_;
  ThreadEnd end_;
  // The headers of threads that ended while the gate was closed, linked by
  // ThreadHeader::next_ended.
  std::atomic<ThreadHeader*> ended_{nullptr};
  // In a child whose vanished threads left something to be cleared: where the header of its first
  // thread is named, which is a word of that thread while it lives.
  FastThread* survivor_ = nullptr;
  FastThread ended_survivor_;
};

}  // namespace tcmalloc

#include "thread/threads_fork_inl.h"
#include "thread/threads_inl.h"

#endif  // TCMALLOC_THREAD_THREADS_H_
