// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The part of Threads in which threads start, enter, move and end. Included by thread/threads.h.

#ifndef TCMALLOC_THREAD_THREADS_INL_H_
#define TCMALLOC_THREAD_THREADS_INL_H_

#include <sched.h>

#include "hook/hooks.h"
#include "thread/thread_parts.h"

namespace tcmalloc {

template <SourceTable Sources>
void Threads<Sources>::ReleaseRecord(ThreadHeader* thread) {
  if (thread->is_served_by_cpus()) {
    cpus_.Leave(CpuThread::Of(thread));
  } else {
    caches_.Destroy(Cache::Of(thread));
  }
}

// Gives up the records and the seat of a thread that has ended, or that gets no front end.
template <SourceTable Sources>
void Threads<Sources>::Release(ThreadHeader* thread) {
  GateSeat* seat = thread->seat;
  if (thread->other != nullptr) ReleaseRecord(thread->other);
  ReleaseRecord(thread);
  gate_.ReturnSeat(seat);
  if (front_end_.NoteEnd()) cpus_.Flush();
}

template <SourceTable Sources>
void Threads<Sources>::PushEnded(ThreadHeader* thread) {
  thread->next_ended = ended_.load(std::memory_order_relaxed);
  // Release pairs with the acquire in ReleaseEnded.
  while (!ended_.compare_exchange_weak(thread->next_ended, thread, std::memory_order_release,
                                       std::memory_order_relaxed)) {
  }
}

// Called inside.
template <SourceTable Sources>
void Threads<Sources>::ReleaseEnded() {
  if (TCMALLOC_LIKELY(ended_.load(std::memory_order_relaxed) == nullptr)) return;
  // Acquire pairs with the release in PushEnded.
  ThreadHeader* thread = ended_.exchange(nullptr, std::memory_order_acquire);
  while (thread != nullptr) {
    ThreadHeader* next = thread->next_ended;
    Release(thread);
    thread = next;
  }
}

// Takes the front end away from the running thread, which is outside the slow path, and sets the
// phase `then`. Another thread releases the front end if a fork is under way.
template <SourceTable Sources>
void Threads<Sources>::GiveUpFrontEnd(Phase then) {
  thread_state.phase = Phase::kInside;
  // Pairs with Enter in a signal handler, which must find the phase before the front end goes.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const bool entered = gate_.EnterAsStranger(CurrentThreadId());
  const FastThread thread = current_thread;
  if (entered) {
    SetCurrentThread(NoThread());
    Release(thread.header());
    ReleaseEnded();
    gate_.LeaveAsStranger(CurrentThreadId());
  } else {
    if (survivor_ == &current_thread) {
      ended_survivor_ = thread;
      survivor_ = &ended_survivor_;
    }
    SetCurrentThread(NoThread());
    PushEnded(thread.header());
  }
  thread_state.phase = then;
}

template <SourceTable Sources>
void Threads<Sources>::NoteEnd(void* value) {
  if (++thread_state.destructor_rounds < kLastRound && end_.Watch(value)) return;
  GiveUpFrontEnd(Phase::kEnded);
  // Pairs with BelowChecks in a signal handler, which finds no seat once the part is returned.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  thread_parts.ReturnOwn();
}

template <SourceTable Sources>
ThreadHeader* Threads<Sources>::MakeThreadCache() {
  Cache* cache = caches_.Create(context_);
  return cache != nullptr ? cache->thread() : nullptr;
}

// Returns a closed front end of the kind that is wanted, or a cache of its own for a thread that
// cannot have it. Null if no memory can be had.
template <SourceTable Sources>
ThreadHeader* Threads<Sources>::MakeFrontEnd() {
  ThreadHeader* thread = nullptr;
  if (front_end_.wanted() == FrontEnd::kPerCpu) thread = JoinCpus();
  return thread != nullptr ? thread : MakeThreadCache();
}

// Gives the thread a closed front end, if one can be had and the choice is made. Called inside.
template <SourceTable Sources>
bool Threads<Sources>::StartThread() {
  ReleaseEnded();
  GateSeat* seat = gate_.TakeSeat(arena_);
  if (seat == nullptr) return false;
  const bool decided = front_end_.NoteStart(events_.start_per_cpu);
  ThreadHeader* thread = decided ? MakeFrontEnd() : nullptr;
  if (thread == nullptr) {
    gate_.ReturnSeat(seat);
    if (front_end_.NoteEnd()) cpus_.Flush();
    return false;
  }
  thread->seat = seat;
  SetCurrentThread(FastThread(thread));
  return true;
}

// Moves a closed thread to its other front end. It stays where it is if that cannot be had. It also
// stays while a signal handler that interrupted a fast path at a list may have objects of that
// list, which must come back to it. Both records stay the thread's own until it ends; see
// ThreadHeader::other.
template <SourceTable Sources>
void Threads<Sources>::Move() {
  ThreadHeader* old = current_thread.header();
  const bool to_cpus = !old->is_served_by_cpus();
  if (to_cpus && !Cache::Of(old)->IsAtRest()) return;
  ThreadHeader* other = old->other;
  if (other == nullptr) {
    other = to_cpus ? JoinCpus() : MakeThreadCache();
    if (other == nullptr) return;
    other->seat = old->seat;
    other->other = old;
    old->other = other;
  } else if (!to_cpus) {
    Cache::Of(other)->Rejoin();
  }
  SetCurrentThread(FastThread(other));
  if (to_cpus) Cache::Of(old)->Park();
}

template <SourceTable Sources>
TCMALLOC_ALWAYS_INLINE bool Threads<Sources>::HasWantedFrontEnd(Entry entry) const {
  return (entry == Entry::kCpuCache) == (front_end_.wanted() == FrontEnd::kPerCpu);
}

template <SourceTable Sources>
TCMALLOC_ALWAYS_INLINE void Threads<Sources>::CloseFrontEnd(ThreadHeader* thread) {
  thread->is_served_by_cpus() ? Cpus::Close(CpuThread::Of(thread)) : Cache::Of(thread)->Close();
}

// Closes the running thread to its front end, if it has one and is outside the slow path, and sets
// *entry accordingly. A front end that is closed already means nothing, because blocks may be
// watched.
template <SourceTable Sources>
TCMALLOC_ALWAYS_INLINE bool Threads<Sources>::CloseThread(Entry* entry) {
  if (TCMALLOC_UNLIKELY(thread_state.phase != Phase::kServed)) return false;
  thread_state.phase = Phase::kInside;
  // Pairs with Enter in a signal handler: one that finds the front end closed must find the phase
  // as well, or it would open.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  *entry = EntryOf(current_thread.header());
  CloseFrontEnd(current_thread.header());
  return true;
}

// Undoes CloseThread. While hooks for blocks exist, the thread stays closed, without a moment at
// which a signal handler would find it open. Otherwise it opens first and looks for hooks again. A
// thread that adds a hook fences in between, and then closes all threads. So either this thread
// sees the hook, or its opening comes before it is closed.
template <SourceTable Sources>
void Threads<Sources>::OpenThread() {
  if (TCMALLOC_LIKELY(!BlocksAreWatched())) {
    ThreadHeader* thread = current_thread.header();
    thread->is_served_by_cpus() ? cpus_.Open(CpuThread::Of(thread)) : Cache::Of(thread)->Open();
    // Pairs with Heap::CloseThreads, whose fence of all threads makes a barrier of the processor
    // out of this one of the compiler.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (TCMALLOC_UNLIKELY(BlocksAreWatched())) CloseFrontEnd(thread);
  }
  thread_state.phase = Phase::kServed;
}

// Turns away from a closed gate, leaving the front end as it was found. In a fork of its own, and
// where shared data may not be trusted, the thread stays closed.
template <SourceTable Sources>
Entry Threads<Sources>::BackOut() {
  if (thread_state.fork_depth == 0 && !gate_.IsDamaged()) {
    OpenThread();
  } else {
    thread_state.phase = Phase::kServed;
  }
  return Entry::kReentrant;
}

// Returns true if the running thread is outside, and a fork of another thread keeps it there.
template <SourceTable Sources>
bool Threads<Sources>::MayWait() const {
  return thread_state.phase != Phase::kInside && thread_state.fork_depth == 0 && !gate_.IsDamaged();
}

// Waits at a closed gate, but not for a fork of the thread's own. Returns true if it may try again.
template <SourceTable Sources>
bool Threads<Sources>::AwaitGate() {
  return thread_state.fork_depth == 0 && gate_.AwaitOpening();
}

template <SourceTable Sources>
TCMALLOC_ALWAYS_INLINE bool Threads<Sources>::EnterBySeat() {
  GateSeat* seat = current_thread->seat;
  return TCMALLOC_LIKELY(gate_.Enter(seat)) || (AwaitGate() && gate_.Enter(seat));
}

// Enters as a stranger. If the gate is closed, returns false and sets the phase `otherwise`.
template <SourceTable Sources>
bool Threads<Sources>::BecomeStranger(Phase otherwise) {
  thread_state.phase = Phase::kInside;
  // Pairs with Enter in a signal handler: the thread's name is entered once only.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (gate_.EnterAsStranger(CurrentThreadId())) return true;
  if (AwaitGate() && gate_.EnterAsStranger(CurrentThreadId())) return true;
  thread_state.phase = otherwise;
  return false;
}

// Lets a thread that just started leave, and registers it with libc. That may allocate, so the
// thread is served by then. If libc has no memory for it, returns false; the thread then has no
// front end.
template <SourceTable Sources>
bool Threads<Sources>::OpenNewThread() {
  gate_.LeaveAsStranger(CurrentThreadId());
  OpenThread();
  RegisterForkHandlers();
  if (end_.Watch(current_thread.header())) return true;
  GiveUpFrontEnd(Phase::kNew);
  return false;
}

// Enters a thread that has no front end yet, or no longer.
template <SourceTable Sources>
Entry Threads<Sources>::EnterWithoutSeat() {
  const Phase before = thread_state.phase;
  if (!BecomeStranger(before)) return Entry::kReentrant;
  // This may be the first thread, for which the shared lists must be made.
  events_.first_entry();
  if (before == Phase::kEnded || !StartThread()) return Entry::kUncached;
  if (OpenNewThread()) return Enter();
  return BecomeStranger(Phase::kNew) ? Entry::kUncached : Entry::kReentrant;
}

template <SourceTable Sources>
Entry Threads<Sources>::Enter() {
  Entry entry = Entry::kUncached;
  if (TCMALLOC_LIKELY(CloseThread(&entry))) {
    if (TCMALLOC_UNLIKELY(!EnterBySeat())) return BackOut();
    if (TCMALLOC_LIKELY(HasWantedFrontEnd(entry))) return entry;
    Move();
    return EntryOf(current_thread.header());
  }
  return thread_state.phase == Phase::kInside ? Entry::kReentrant : EnterWithoutSeat();
}

template <SourceTable Sources>
Entry Threads<Sources>::EnterPatiently() {
  // Takes about a second at a closed gate, where each try waits. At an open one the tries fail
  // while too many threads start at once, of which some must run.
  constexpr int kMostTries = 10'000;
  Entry entry = Enter();
  for (int i = 0; i < kMostTries && entry == Entry::kReentrant && MayWait(); ++i) {
    ::sched_yield();
    entry = Enter();
  }
  return entry;
}

template <SourceTable Sources>
void Threads<Sources>::Leave(Entry entry) {
  switch (entry) {
    case Entry::kThreadCache:
    case Entry::kCpuCache:
      gate_.Leave(current_thread->seat);
      return OpenThread();
    case Entry::kUncached:
      gate_.LeaveAsStranger(CurrentThreadId());
      thread_state.phase =
          thread_state.destructor_rounds < kLastRound ? Phase::kNew : Phase::kEnded;
      return;
    case Entry::kReentrant:
      return;
  }
}

template <SourceTable Sources>
TCMALLOC_ALWAYS_INLINE GateSeat* Threads<Sources>::TryEnterBriefly() {
  if (TCMALLOC_UNLIKELY(thread_state.phase != Phase::kServed)) return nullptr;
  thread_state.phase = Phase::kInside;
  // Pairs with Enter in a signal handler, which must find the phase before any change.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  GateSeat* seat = current_thread->seat;
  if (TCMALLOC_LIKELY(gate_.TryEnter(seat))) return seat;
  thread_state.phase = Phase::kServed;
  return nullptr;
}

template <SourceTable Sources>
TCMALLOC_ALWAYS_INLINE void Threads<Sources>::LeaveBriefly(GateSeat* seat) {
  gate_.Leave(seat);
  // Pairs with Enter in a signal handler, which must find all changes before the phase.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  thread_state.phase = Phase::kServed;
}

template <SourceTable Sources>
void Threads<Sources>::ScheduleSlowPath(Entry entry) {
  constexpr int64_t kSoon = 4096;  // allocated bytes
  if (entry == Entry::kThreadCache || entry == Entry::kCpuCache) {
    current_thread->clock.ExpireWithin(kSoon);
  }
}

}  // namespace tcmalloc

#endif  // TCMALLOC_THREAD_THREADS_INL_H_
