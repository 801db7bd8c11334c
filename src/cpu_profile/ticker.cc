// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cpu_profile/ticker.h"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>

#include "base/attributes.h"
#include "base/message.h"
#include "system/alternate_stacks.h"
#include "system/clock.h"

namespace tcmalloc {
namespace {

// The kernel looks at timers of CPU time a hundred times a second, or more often.
constexpr uint64_t kProcessPeriodNs = 10'000'000;
// In wall-clock mode, how often threads are looked for where none that has a timer hears its ticks.
constexpr uint64_t kWallProcessPeriodNs = 50'000'000;
constexpr int64_t kUpdateNs = 10'000'000;
// Looking for threads takes at most this part of the time.
constexpr int64_t kUpdateShare = 50;
constexpr int64_t kPatienceNs = 1'000'000'000;

// True while the running thread handles a tick.
constinit thread_local bool handles_tick TCMALLOC_INITIALIZED_TLS = false;

void OnSignal(int, siginfo_t* info, void* context) { ticker.Handle(info, context); }

}  // namespace

constinit Ticker ticker;

int Ticker::Subscribe(Function function, void* argument, const ProfilerSettings& settings) {
  size_t place = 0;
  while (place < kMostSubscribers &&
         subscriber_[place].function.load(std::memory_order_relaxed) != nullptr) {
    ++place;
  }
  if (place == kMostSubscribers) return -1;
  if (subscribers_ == 0) {
    settings_ = settings;
    if (!StartTimers()) return -1;
  }
  subscriber_[place].argument.store(argument, std::memory_order_relaxed);
  // Release pairs with the load of the function in Handle: the argument is there.
  subscriber_[place].function.store(function, std::memory_order_release);
  ++subscribers_;
  return static_cast<int>(place);
}

bool Ticker::Unsubscribe(int place) {
  // The child of a fork may give up what Forget has ended.
  if (subscriber_[place].function.load(std::memory_order_relaxed) == nullptr) return true;
  // Pairs with the increment of in_handler_ in Handle: either that handler sees null, or this
  // thread sees that handler.
  subscriber_[place].function.store(nullptr, std::memory_order_seq_cst);
  if (--subscribers_ == 0) StopTimers();
  return WaitUntilIdle();
}

bool Ticker::WaitUntilIdle() {
  const int64_t begin = MonotonicNanoseconds();
  // Pairs with the decrement in Handle: what the subscribers wrote is visible.
  while (in_handler_.load(std::memory_order_seq_cst) != 0) {
    if (MonotonicNanoseconds() - begin > kPatienceNs) return false;
    sched_yield();
  }
  return true;
}

void Ticker::Forget() {
  for (Subscriber& subscriber : subscriber_) {
    subscriber.function.store(nullptr, std::memory_order_relaxed);
  }
  subscribers_ = 0;
  has_process_timer_ = false;
  running_.store(false, std::memory_order_relaxed);
  in_handler_.store(0, std::memory_order_relaxed);
  timers_.Forget();
}

bool Ticker::StartTimers() {
  period_ns_ = 1'000'000'000U / static_cast<uint64_t>(settings_.frequency);
  process_periods_ = (kProcessPeriodNs + period_ns_ - 1) / period_ns_;
  signals_running_thread_ = ProcessTimersSignalRunningThread();
  next_update_ns_.store(0, std::memory_order_relaxed);
  Message problem;
  problem << "no CPU profile is taken: ";
  CallWhenAlternateStacksAreUnfit([] { ticker.action().Reinstall(); });
  if (!action_.Take(settings_.timer_signal, OnSignal)) {
    Warn(problem << "signal " << settings_.timer_signal << " cannot be handled");
    return false;
  }
  running_.store(true, std::memory_order_relaxed);
  TimerPlan plan = {.source = settings_.wall ? TickSource::kWallTime : TickSource::kCpuTime,
                    .signal = settings_.timer_signal,
                    .period_ns = period_ns_,
                    .value = &thread_mark_};
  bool begun = false;
  if (settings_.perf && !settings_.wall) {
    plan.source = TickSource::kEvents;
    begun = timers_.Begin(plan);
    if (!begun) {
      Warn(Message() << "the kernel permits no perf events (errno " << errno
                     << "); the CPU profile uses timers");
      plan.source = TickSource::kCpuTime;
      settings_.perf = false;
    }
  }
  if ((begun || timers_.Begin(plan)) && StartProcessTimer()) return true;
  Warn(problem << "the kernel grants no timers (errno " << errno << ")");
  StopTimers();
  return false;
}

bool Ticker::StartProcessTimer() {
  const TimerRequest request = {
      .clock = settings_.wall ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID,
      .thread = 0,
      .signal = settings_.timer_signal,
      .value = &process_mark_};
  if (!CreateTimer(request, &process_timer_)) return false;
  has_process_timer_ = true;
  const uint64_t period = settings_.wall ? kWallProcessPeriodNs : process_periods_ * period_ns_;
  return StartTimer(process_timer_, period, period);
}

void Ticker::StopTimers() {
  running_.store(false, std::memory_order_relaxed);
  if (has_process_timer_) DeleteTimer(process_timer_);
  has_process_timer_ = false;
  timers_.Clear();
}

void Ticker::RegisterThread() {
  if (running_.load(std::memory_order_relaxed)) timers_.TryAddRunningThread();
}

Ticker::Origin Ticker::OriginOf(const siginfo_t& info) const {
  if (info.si_code == SI_TIMER) {
    if (info.si_value.sival_ptr == &thread_mark_) return Origin::kThread;
    if (info.si_value.sival_ptr == &process_mark_) return Origin::kProcess;
  }
  const bool event = info.si_code == POLL_IN || info.si_code == POLL_HUP;
  return settings_.perf && event ? Origin::kThread : Origin::kProgram;
}

// Returns 0 for ticks that do not count.
uint64_t Ticker::WeightOf(const siginfo_t& info, Origin origin) {
  // The kernel tells how often a timer has expired since the signal was sent.
  const uint64_t times =
      info.si_code == SI_TIMER ? 1 + static_cast<uint64_t>(std::max(info.si_overrun, 0)) : 1;
  if (origin == Origin::kThread) return times;
  if (settings_.wall || !signals_running_thread_) {
    UpdateThreadsNowAndThen();
    return 0;
  }
  if (timers_.RunningThreadHasOne()) return 0;
  timers_.TryAddRunningThread();
  return times * process_periods_;
}

void Ticker::UpdateThreadsNowAndThen() {
  const int64_t now = MonotonicNanoseconds();
  int64_t due = next_update_ns_.load(std::memory_order_relaxed);
  if (now < due) return;
  if (!next_update_ns_.compare_exchange_strong(due, now + kUpdateNs, std::memory_order_relaxed)) {
    return;
  }
  timers_.TryUpdate();
  const int64_t end = MonotonicNanoseconds();
  next_update_ns_.store(end + std::max(kUpdateNs, kUpdateShare * (end - now)),
                        std::memory_order_relaxed);
}

void Ticker::Handle(siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const Origin origin = OriginOf(*info);
  if (origin == Origin::kProgram) {
    errno = saved_errno;
    action_.Forward(info, context);
    return;
  }
  // The handler does not block its signal. Where it takes longer than a period, as in a debugger or
  // an emulator, ticks would interrupt one another until the stack is full. The ticks left out are
  // time of the profiler itself.
  if (handles_tick) {
    errno = saved_errno;
    return;
  }
  handles_tick = true;
  // Pairs with the store in Unsubscribe, and the load in WaitUntilIdle.
  in_handler_.fetch_add(1, std::memory_order_seq_cst);
  if (running_.load(std::memory_order_relaxed)) {
    if (settings_.wall) UpdateThreadsNowAndThen();
    const Tick tick = {.info = info, .context = context, .weight = WeightOf(*info, origin)};
    if (tick.weight != 0) {
      ticks_.fetch_add(tick.weight, std::memory_order_relaxed);
      for (Subscriber& subscriber : subscriber_) {
        // Pairs with the store in Unsubscribe, and the release in Subscribe.
        const Function function = subscriber.function.load(std::memory_order_seq_cst);
        if (function != nullptr) {
          function(tick, subscriber.argument.load(std::memory_order_relaxed));
        }
      }
    }
  }
  handles_tick = false;
  // Pairs with the load in WaitUntilIdle.
  in_handler_.fetch_sub(1, std::memory_order_seq_cst);
  errno = saved_errno;
}

}  // namespace tcmalloc
