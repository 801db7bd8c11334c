// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The timers of all threads of the process.

#ifndef TCMALLOC_CPU_PROFILE_THREAD_TIMERS_H_
#define TCMALLOC_CPU_PROFILE_THREAD_TIMERS_H_

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cpu_profile/timer_calls.h"

namespace tcmalloc {

// The events for which a thread is signalled.
enum class TickSource : uint8_t {
  kCpuTime,   // each period of CPU time of the thread
  kWallTime,  // each period of time
  kEvents,    // each period of CPU time outside of the kernel, by perf_event_open
};

struct TimerPlan {
  TickSource source = TickSource::kCpuTime;
  int signal = 0;
  uint64_t period_ns = 0;
  void* value = nullptr;  // the si_value of signals
};

// At most one timer for each thread. Finding a thread takes no lock; changes are made by one thread
// at a time, which signal handlers only try to become. A slot has the number of its thread, or 0.
class ThreadTimers {
 public:
  constexpr ThreadTimers() = default;
  ThreadTimers(const ThreadTimers&) = delete;
  ThreadTimers& operator=(const ThreadTimers&) = delete;

  // Begins with timers as planned for all threads that there are. Returns false if the running
  // thread cannot have one. Requires blocked signals, as Clear.
  [[nodiscard]] bool Begin(const TimerPlan& plan);
  // Deletes all timers.
  void Clear();
  // Forgets all timers in the child of a fork, which has inherited none.
  void Forget();

  // The rest may be called in signal handlers.

  // Returns true if the running thread has a timer of its own.
  bool RunningThreadHasOne();
  // Gives it one, unless there is no room or another thread makes changes.
  void TryAddRunningThread();
  // Adds the threads that have none, and removes the timers of those that have ended.
  void TryUpdate();

  size_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kCapacity = 8192;
  static constexpr size_t kLeastSweep = 64;

  struct Slot {
    std::atomic<pid_t> thread{0};
    std::atomic<KernelTimer> timer{0};
    std::atomic<uint64_t> start{0};  // of the thread, unless its timer tells that it has ended
  };

  // The right to make changes.
  class Change {
   public:
    enum class Mode : uint8_t { kTry, kWait };
    Change(ThreadTimers& timers, Mode mode);
    ~Change();
    bool ok() const { return ok_; }

   private:
    ThreadTimers& timers_;
    bool ok_;
  };

  bool BeginChange();
  void EndChange();
  Slot* Find(pid_t thread);
  bool Add(pid_t thread);
  void AddIfMissing(pid_t thread);
  void AddListed();
  bool IsOfEarlierThread(const Slot& slot, pid_t thread) const;
  bool MakeTimer(pid_t thread, KernelTimer* timer) const;
  void Remove(Slot& slot);
  void RemoveEnded();

  TimerPlan plan_;
  bool running_ = false;
  std::atomic<bool> changing_{false};
  std::atomic<size_t> used_slots_{0};  // beyond them, all are free
  std::atomic<size_t> count_{0};
  size_t sweep_at_ = kLeastSweep;
  Slot slots_[kCapacity];
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CPU_PROFILE_THREAD_TIMERS_H_
