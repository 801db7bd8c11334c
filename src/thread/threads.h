// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The life of threads: their front ends, and their entries of the slow path.

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

// Functions through which libc and the parts of this folder reach the object that holds Threads.
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
// which its front end is closed to signal handlers. A gate keeps forks and slow paths apart; see
// ForkGate.
//
// Constant-initialised and trivially destructible. Thread safe. Async-signal-safe, except for
// functions that are said to allocate.
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
  void WatchThreadEnds() { end_.MakeKey(); }

  // Marks the running thread as inside the slow path. Gives it a front end if it has none yet, or
  // another one if that is wanted now. May allocate at the thread's first call.
  Entry Enter();
  // Enters for an operation that is no allocation. May wait up to a second for forks of other
  // threads.
  Entry EnterPatiently();
  // Undoes Enter, which returned `entry`.
  void Leave(Entry entry);

  // Marks a thread with a front end as inside the slow path, in which its front end stays open: it
  // may use neither that nor what is shared by front ends. For moments in modes where no entry
  // point uses front ends (CheckEntries). Returns the thread's seat at the gate; null if the thread
  // has to use Enter.
  [[nodiscard]] TCMALLOC_ALWAYS_INLINE GateSeat* TryEnterBriefly();
  // Undoes TryEnterBriefly, which returned `seat`.
  TCMALLOC_ALWAYS_INLINE void LeaveBriefly(GateSeat* seat);

  // Returns the cache of the running thread, which entered as `entry`; null unless that is
  // kThreadCache.
  static Cache* CacheOf(Entry entry) {
    return entry == Entry::kThreadCache ? Cache::Of(current_thread.header()) : nullptr;
  }

  // Makes the running thread, which entered as `entry`, enter the slow path again after few more
  // allocations.
  static void ScheduleSlowPath(Entry entry);

  // Takes the running thread off its front end until Resume; it allocates uncached. Changes nothing
  // in a signal handler that interrupted the slow path, because no front end serves there.
  SuspendedThread Suspend();
  // Undoes Suspend, which returned `thread`, in any state of the thread.
  void Resume(SuspendedThread thread);

  // Called at each round of the running thread's destructors.
  void NoteEnd(void* value);

  void RegisterForkHandlers() { fork_handlers_.Register(); }
  // Called by the handlers of fork. A fork may begin within a fork, in a signal handler. All but
  // BeginFork keep errno.
  TCMALLOC_COLD void BeginFork();
  TCMALLOC_COLD void EndForkInParent();
  // Calls reset_others(), with signals blocked, before other code may enter.
  template <typename F>
  void EndForkInChild(F reset_others);
  // Clears the data of vanished threads: see ForkGate::OpenInChild.
  TCMALLOC_COLD void ClearAfterFork();

  ForkGate& gate() { return gate_; }
  FrontEndChoice& front_end() { return front_end_; }

 private:
  // Destructors of other keys may still allocate and free. The front end is given up in this round
  // of destructors, out of the four that POSIX promises.
  static constexpr uint8_t kLastRound = 3;

  // Returns the running thread's name for the gate while it has no seat.
  static ThreadId CurrentThreadId() { return &thread_state; }
  TCMALLOC_ALWAYS_INLINE static void CloseFrontEnd(ThreadHeader* thread);
  TCMALLOC_ALWAYS_INLINE static bool CloseThread(Entry* entry);
  void OpenThread();
  void OpenIfServed();

  bool MayWait() const;
  TCMALLOC_COLD bool AwaitGate();
  TCMALLOC_ALWAYS_INLINE bool EnterBySeat();
  bool BecomeStranger(Phase otherwise);
  TCMALLOC_COLD Entry BackOut();
  TCMALLOC_NOINLINE Entry EnterWithoutSeat();

  ThreadHeader* JoinCpus() { return cpus_.Join(); }
  ThreadHeader* MakeThreadCache();
  ThreadHeader* MakeFrontEnd();
  bool StartThread();
  bool OpenNewThread();
  TCMALLOC_ALWAYS_INLINE bool HasWantedFrontEnd(Entry entry) const;
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
  // Set in a child whose vanished threads left data to be cleared: the word that names the header
  // of its first thread, which belongs to that thread while it lives.
  FastThread* survivor_ = nullptr;
  FastThread ended_survivor_;
};

}  // namespace tcmalloc

#include "thread/threads_fork_inl.h"
#include "thread/threads_inl.h"

#endif  // TCMALLOC_THREAD_THREADS_H_
