// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap/fork.h"

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "heap/current_thread.h"
#include "heap/heap.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

// What happened before a fork, for the handlers after it. Guarded by the locks themselves. A bit
// for each lock: the state is copied to the stack of the thread that forks, which may be a small
// one.
struct ForkState {
  Entry entry = Entry::kUncached;
  uint8_t taken[Heap::kLocks / 8 + 1] = {};

  void SetTaken(size_t lock) { taken[lock / 8] |= static_cast<uint8_t>(1 << lock % 8); }
  bool IsTaken(size_t lock) const { return (taken[lock / 8] >> lock % 8 & 1) != 0; }
};
constinit ForkState state;
constinit std::atomic<bool> registered{false};

// A fork from a signal handler may have interrupted its own thread inside a slow path, which then
// goes on in both processes and itself frees what it holds. Such a lock shows by staying taken.
bool TryLockForAWhile(SpinLock& lock) TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    if (lock.TryLock()) return true;
    sched_yield();
  }
  return false;
}

TCMALLOC_COLD void Prepare() TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
  ForkState now;
  now.entry = EnterSlowPath();
  heap.ForEachLock([&](SpinLock& lock, size_t position) TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
    if (now.entry != Entry::kReentrant) lock.Lock();
    if (now.entry != Entry::kReentrant || TryLockForAWhile(lock)) now.SetTaken(position);
  });
  state = now;
}

template <typename F>
void ForEachTakenLock(const ForkState& before, F f) {
  heap.ForEachLock([&](SpinLock& lock, size_t position) {
    if (before.IsTaken(position)) f(lock);
  });
}

TCMALLOC_COLD void InParent() {
  // The locks guard the state, so it is copied before the first of them is freed.
  const ForkState before = state;
  ForEachTakenLock(before,
                   [](SpinLock& lock) TCMALLOC_NO_THREAD_SAFETY_ANALYSIS { lock.Unlock(); });
  LeaveSlowPath(before.entry);
}

TCMALLOC_COLD void InChild() TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
  heap.page_heap().RecoverAfterFork();
  heap.caches().AbandonOthers(current_cache);
  heap.housekeeping().ResetAfterFork();
  heap.background().ResetAfterFork();
  // A handler that interrupted the thread which is trying returns to it.
  if (state.entry != Entry::kReentrant) heap.front_end().ResetAfterFork();
  ForEachTakenLock(state, [](SpinLock& lock) { lock.ResetAfterFork(); });
  if (state.entry != Entry::kReentrant) ResetHeldLocksAfterFork();
  LeaveSlowPath(state.entry);
}

}  // namespace

void RegisterForkHandlers() {
  if (registered.load(std::memory_order_relaxed) || registered.exchange(true)) return;
  if (system_calls.pthread_atfork(Prepare, InParent, InChild) != 0) registered.store(false);
}

}  // namespace tcmalloc
