// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Interrupts each thread at regular intervals of the time that it runs.

#ifndef TCMALLOC_CPU_PROFILE_TICKER_H_
#define TCMALLOC_CPU_PROFILE_TICKER_H_

#include <signal.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cpu_profile/program_action.h"
#include "cpu_profile/settings.h"
#include "cpu_profile/thread_timers.h"

namespace tcmalloc {

// A moment at which a thread was interrupted.
struct Tick {
  siginfo_t* info;
  void* context;    // the third argument of the signal handler
  uint64_t weight;  // the periods that it stands for
};

// Sends ticks to those who subscribe, in the thread that was interrupted, in a signal handler.
//
// Each thread has a timer on its own CPU time. A timer on the CPU time of the process finds threads
// that have none yet, because its signal goes to the thread that runs: the tick counts, with the
// weight of that timer's longer period, and the thread gets a timer. So no thread is missed,
// however it was started, and the ticks of a thread that ends early are as many as its running time
// demands. A tick of the process in a thread with a timer is ignored. In wall-clock mode those of
// the process count nowhere, and threads are looked for at ticks.
// docs/subsystems/cpu-profiler.md has the reasons.
//
// Subscribe and Unsubscribe are called under the profiler's lock, with signals blocked.
class Ticker {
 public:
  using Function = void (*)(const Tick& tick, void* argument);
  static constexpr size_t kMostSubscribers = 16;

  constexpr Ticker() = default;
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  // Returns the place of the subscriber, -1 if there is none or timers cannot be had. The first one
  // starts the timers, as the settings say.
  int Subscribe(Function function, void* argument, const ProfilerSettings& settings);
  // Ends a subscription; stops the timers after the last one. Ignores a subscription that Forget
  // has ended. Afterwards the function is not running in any thread. Returns false if it still may
  // be, because a thread did not leave it for a second.
  bool Unsubscribe(int place);
  // Stops and forgets everything, in the child of a fork.
  void Forget();

  size_t subscribers() const { return subscribers_; }
  int frequency() const { return settings_.frequency; }
  uint64_t ticks() const { return ticks_.load(std::memory_order_relaxed); }
  size_t timers() const { return timers_.count(); }
  // Gives the running thread a timer at once, if timers run.
  void RegisterThread();
  // Returns false if the program has replaced the signal handler by means that bypass libc.
  bool IsHeard() const { return action_.IsInPlace(); }

  // Handles a signal of a timer: called by the signal handler.
  void Handle(siginfo_t* info, void* context);

  ProgramAction& action() { return action_; }

 private:
  enum class Origin : uint8_t { kProgram, kThread, kProcess };

  struct Subscriber {
    std::atomic<Function> function{nullptr};
    std::atomic<void*> argument{nullptr};
  };

  bool StartTimers();
  bool StartProcessTimer();
  void StopTimers();
  Origin OriginOf(const siginfo_t& info) const;
  uint64_t WeightOf(const siginfo_t& info, Origin origin);
  void UpdateThreadsNowAndThen();
  bool WaitUntilIdle();

  ProfilerSettings settings_;
  uint64_t period_ns_ = 0;
  uint64_t process_periods_ = 0;  // of threads, in one of the process's timer
  bool signals_running_thread_ = false;
  bool has_process_timer_ = false;
  KernelTimer process_timer_ = 0;
  size_t subscribers_ = 0;
  std::atomic<bool> running_{false};
  std::atomic<uint32_t> in_handler_{0};
  std::atomic<uint64_t> ticks_{0};
  std::atomic<int64_t> next_update_ns_{0};
  Subscriber subscriber_[kMostSubscribers];
  ThreadTimers timers_;
  ProgramAction action_;
  // Their addresses mark the signals of timers.
  char thread_mark_ = 0;
  char process_mark_ = 0;
};

// Of the process: its signal handler has nothing else to start from.
extern constinit Ticker ticker;

}  // namespace tcmalloc

#endif  // TCMALLOC_CPU_PROFILE_TICKER_H_
