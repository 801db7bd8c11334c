// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The part of Threads for fork and vfork. Included by thread/threads.h.

#ifndef TCMALLOC_THREAD_THREADS_FORK_INL_H_
#define TCMALLOC_THREAD_THREADS_FORK_INL_H_

#include "system/signal_mask.h"

namespace tcmalloc {

template <SourceTable Sources>
SuspendedThread Threads<Sources>::Suspend() {
  SuspendedThread thread = {nullptr, static_cast<uint8_t>(thread_state.phase),
                            thread_state.destructor_rounds, false};
  Entry entry = Entry::kUncached;
  if (CloseThread(&entry)) {
    thread.front_end = current_thread.header();
  } else if (thread_state.phase != Phase::kNew && thread_state.phase != Phase::kEnded) {
    thread.interrupted = true;
    return thread;
  }
  thread_state.phase = Phase::kInside;
  SetCurrentThread(NoThread());
  thread_state.destructor_rounds = kLastRound;
  // Pairs with Enter in a signal handler, which may be served without a front end from here.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  thread_state.phase = Phase::kEnded;
  return thread;
}

template <SourceTable Sources>
void Threads<Sources>::Resume(SuspendedThread thread) {
  if (thread.interrupted) return;
  // A child that was killed did not leave the gate.
  if (thread_state.phase == Phase::kInside) gate_.LeaveAsStranger(CurrentThreadId());
  thread_state.phase = Phase::kInside;
  // Pairs with Enter in a signal handler, which must find the phase before the front end.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  thread_state.destructor_rounds = thread.destructor_rounds;
  if (thread.front_end == nullptr) {
    thread_state.phase = static_cast<Phase>(thread.phase);
    return;
  }
  SetCurrentThread(FastThread(thread.front_end));
  OpenThread();
}

template <SourceTable Sources>
void Threads<Sources>::BeginFork() {
  {
    const SignalsBlocked scope;
    // Keeps this thread away from memory that others use, until the end of the fork.
    if (thread_state.phase == Phase::kServed) CloseFrontEnd(current_thread.header());
    gate_.Close(current_thread->seat, CurrentThreadId());
    ++thread_state.fork_depth;
  }
  const GateFindings found = gate_.AwaitOthers(current_thread->seat, CurrentThreadId());
  if (found.others) thread_state.fork_findings.others = true;
  if (found.abandon) thread_state.fork_findings.abandon = true;
}

// Ends the outermost fork.
template <SourceTable Sources>
void Threads<Sources>::OpenIfServed() {
  thread_state.fork_findings = {};
  if (thread_state.phase == Phase::kServed && !gate_.IsDamaged()) OpenThread();
}

template <SourceTable Sources>
void Threads<Sources>::EndForkInParent() {
  {
    const SignalsBlocked scope;
    --thread_state.fork_depth;
    gate_.Open(current_thread->seat, CurrentThreadId(), thread_state.fork_depth == 0);
    if (thread_state.fork_depth > 0) return;
    OpenIfServed();
  }
  if (TCMALLOC_LIKELY(ended_.load(std::memory_order_relaxed) == nullptr)) return;
  const Entry entry = Enter();
  if (entry != Entry::kReentrant) ReleaseEnded();
  Leave(entry);
}

template <SourceTable Sources>
template <typename F>
void Threads<Sources>::EndForkInChild(F reset_others) {
  const SignalsBlocked scope;
  --thread_state.fork_depth;
  reset_others();
  if (thread_state.fork_findings.others) {
    // Other threads may have changed these while the kernel copied one page after the other.
    cpus_.AbandonObjects();
    deferred_.Abandon();
    ended_.store(nullptr, std::memory_order_relaxed);
    survivor_ = &current_thread;
  }
  gate_.OpenInChild(current_thread->seat, CurrentThreadId(), thread_state.fork_depth,
                    thread_state.fork_findings);
  if (thread_state.fork_depth == 0) OpenIfServed();
}

template <SourceTable Sources>
void Threads<Sources>::ClearAfterFork() {
  CpuThread* on_cpus = nullptr;
  Cache* with_lists = nullptr;
  const auto keep = [&](ThreadHeader* thread) {
    if (thread->is_served_by_cpus()) {
      on_cpus = CpuThread::Of(thread);
    } else {
      with_lists = Cache::Of(thread);
    }
  };
  ThreadHeader* mine = survivor_->header();
  const bool has_one = mine != NoThread().header();
  if (has_one) {
    keep(mine);
    if (mine->other != nullptr) keep(mine->other);
  }
  cpus_.KeepOnly(on_cpus);
  caches_.KeepOnly(with_lists);
  context_.budget->KeepOnly(with_lists != nullptr ? &with_lists->share() : nullptr);
  front_end_.ResetAfterFork(has_one ? 1 : 0);
  gate_.FreeOtherSeats(mine->seat);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_THREAD_THREADS_FORK_INL_H_
