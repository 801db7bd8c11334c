// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cpu_profile/thread_timers.h"

#include <sched.h>

#include <algorithm>

#include "system/clock.h"
#include "system/thread_exists.h"

namespace tcmalloc {
namespace {

// Returns when the first signal of a thread comes: at any time within a period, so that threads
// which end before the period has passed are sampled as often as they should be.
uint64_t FirstPeriod(pid_t thread, uint64_t period_ns) {
  uint64_t hash = static_cast<uint64_t>(MonotonicNanoseconds()) + static_cast<uint64_t>(thread);
  hash *= 0x9e3779b97f4a7c15U;
  hash ^= hash >> 32;
  hash *= 0xd6e8feb86659fd93U;
  return (hash >> 8) % period_ns + 1;
}

}  // namespace

ThreadTimers::Change::Change(ThreadTimers& timers, Mode mode)
    : timers_(timers), ok_(timers.BeginChange()) {
  while (!ok_ && mode == Mode::kWait) {
    sched_yield();
    ok_ = timers_.BeginChange();
  }
}

ThreadTimers::Change::~Change() {
  if (ok_) timers_.EndChange();
}

bool ThreadTimers::BeginChange() {
  // Acquire pairs with the release in EndChange: the slots are as the last change left them.
  return !changing_.exchange(true, std::memory_order_acquire);
}

void ThreadTimers::EndChange() {
  // Release pairs with the acquire in BeginChange.
  changing_.store(false, std::memory_order_release);
}

bool ThreadTimers::Begin(const TimerPlan& plan) {
  const Change change(*this, Change::Mode::kWait);
  plan_ = plan;
  running_ = true;
  sweep_at_ = kLeastSweep;
  if (!Add(OwnThread())) {
    running_ = false;
    return false;
  }
  AddListed();
  sweep_at_ = std::max(kLeastSweep, 2 * count());
  return true;
}

void ThreadTimers::Clear() {
  const Change change(*this, Change::Mode::kWait);
  running_ = false;
  for (size_t i = 0; i < used_slots_.load(std::memory_order_relaxed); ++i) {
    if (slots_[i].thread.load(std::memory_order_relaxed) != 0) Remove(slots_[i]);
  }
  used_slots_.store(0, std::memory_order_relaxed);
}

void ThreadTimers::Forget() {
  for (size_t i = 0; i < used_slots_.load(std::memory_order_relaxed); ++i) {
    const bool taken = slots_[i].thread.load(std::memory_order_relaxed) > 0;
    if (taken && plan_.source == TickSource::kEvents) {
      CloseClockEvent(slots_[i].timer.load(std::memory_order_relaxed));
    }
    slots_[i].thread.store(0, std::memory_order_relaxed);
  }
  running_ = false;
  used_slots_.store(0, std::memory_order_relaxed);
  count_.store(0, std::memory_order_relaxed);
  changing_.store(false, std::memory_order_relaxed);
}

ThreadTimers::Slot* ThreadTimers::Find(pid_t thread) {
  const size_t used = used_slots_.load(std::memory_order_relaxed);
  for (size_t i = 0; i < used; ++i) {
    // Acquire pairs with the release in Add: the slot has its timer.
    if (slots_[i].thread.load(std::memory_order_acquire) == thread) return &slots_[i];
  }
  return nullptr;
}

bool ThreadTimers::MakeTimer(pid_t thread, KernelTimer* timer) const {
  if (plan_.source == TickSource::kEvents) {
    *timer = OpenClockEvent(thread, plan_.period_ns, plan_.signal);
    return *timer >= 0;
  }
  const clockid_t clock =
      plan_.source == TickSource::kCpuTime ? ThreadCpuClock(thread) : CLOCK_MONOTONIC;
  if (!CreateTimer({.clock = clock, .thread = thread, .signal = plan_.signal, .value = plan_.value},
                   timer)) {
    return false;
  }
  if (StartTimer(*timer, FirstPeriod(thread, plan_.period_ns), plan_.period_ns)) return true;
  DeleteTimer(*timer);
  return false;
}

bool ThreadTimers::Add(pid_t thread) {
  if (count() >= sweep_at_) RemoveEnded();
  const size_t used = used_slots_.load(std::memory_order_relaxed);
  size_t place = 0;
  while (place < used && slots_[place].thread.load(std::memory_order_relaxed) != 0) ++place;
  KernelTimer timer = 0;
  if (place == kCapacity || !MakeTimer(thread, &timer)) return false;
  slots_[place].timer.store(timer, std::memory_order_relaxed);
  const bool timer_tells = plan_.source == TickSource::kCpuTime;
  slots_[place].start.store(timer_tells ? 0 : StartOfThread(thread), std::memory_order_relaxed);
  // Release pairs with the acquire in Find: the slot has its timer.
  slots_[place].thread.store(thread, std::memory_order_release);
  count_.store(count() + 1, std::memory_order_relaxed);
  if (place == used) used_slots_.store(used + 1, std::memory_order_relaxed);
  return true;
}

void ThreadTimers::Remove(Slot& slot) {
  const KernelTimer timer = slot.timer.load(std::memory_order_relaxed);
  slot.thread.store(0, std::memory_order_relaxed);
  count_.store(count() - 1, std::memory_order_relaxed);
  if (plan_.source == TickSource::kEvents) {
    CloseClockEvent(timer);
  } else {
    DeleteTimer(timer);
  }
}

void ThreadTimers::RemoveEnded() {
  for (size_t i = 0; i < used_slots_.load(std::memory_order_relaxed); ++i) {
    const pid_t thread = slots_[i].thread.load(std::memory_order_relaxed);
    if (thread != 0 && !ThreadExists(thread)) Remove(slots_[i]);
  }
  sweep_at_ = std::max(kLeastSweep, 2 * count());
}

// A thread that has ended leaves a timer that signals nobody, and its number may be that of a new
// one.
bool ThreadTimers::IsOfEarlierThread(const Slot& slot, pid_t thread) const {
  if (plan_.source == TickSource::kCpuTime) {
    return !TimerRuns(slot.timer.load(std::memory_order_relaxed));
  }
  const uint64_t start = StartOfThread(thread);
  return start != 0 && start != slot.start.load(std::memory_order_relaxed);
}

bool ThreadTimers::RunningThreadHasOne() {
  const pid_t thread = OwnThread();
  const Slot* slot = Find(thread);
  return slot != nullptr && !IsOfEarlierThread(*slot, thread);
}

void ThreadTimers::AddIfMissing(pid_t thread) {
  Slot* slot = Find(thread);
  if (slot != nullptr) {
    if (!IsOfEarlierThread(*slot, thread)) return;
    Remove(*slot);
  }
  Add(thread);
}

void ThreadTimers::AddListed() {
  ForEachThread(
      [](pid_t thread, void* self) { static_cast<ThreadTimers*>(self)->AddIfMissing(thread); },
      this);
}

void ThreadTimers::TryAddRunningThread() {
  const Change change(*this, Change::Mode::kTry);
  if (change.ok() && running_) AddIfMissing(OwnThread());
}

void ThreadTimers::TryUpdate() {
  const Change change(*this, Change::Mode::kTry);
  if (!change.ok() || !running_) return;
  RemoveEnded();
  AddListed();
}

}  // namespace tcmalloc
