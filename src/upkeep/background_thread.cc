// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "upkeep/background_thread.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "system/futex.h"
#include "system/signal_mask.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

// The name that ps and top show.
constexpr char kThreadName[] = "tcmalloc";

constexpr uint64_t kSecond = 1'000'000'000;
// The time between two checks for work while release by time is off.
constexpr uint64_t kIdleWait = 10 * kSecond;
// The time for which the thread stays away from the heap while a fork is under way.
constexpr uint64_t kWaitForFork = kSecond / 100;
// The time for which a process that ends waits for the thread.
constexpr uint64_t kWaitAtExit = kSecond;

// The scope of a change. No handler of the program, which might fork, runs in it, and nobody can
// cancel the thread. A new thread inherits the mask, so that no handler ever runs on it. Keeps
// errno.
class Undisturbed {
 public:
  Undisturbed() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state_); }
  ~Undisturbed() { pthread_setcancelstate(cancel_state_, nullptr); }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;

  bool blocked() const { return signals_.blocked(); }

 private:
  const SignalsBlocked signals_;
  int cancel_state_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace

// A child that was not made through fork's handlers shares the memory of its parent or has a copy,
// and has none of the threads.
bool BackgroundThread::IsOfThisProcess() const {
  const pid_t process = process_.load(std::memory_order_relaxed);
  return process == 0 || process == ::getpid();
}

bool BackgroundThread::Start() {
  if (!IsOfThisProcess()) return false;
  // Pairs with WantsOwnThread, in one order with the state.
  wish_.store(Wish::kOn);
  Wake();
  FulfilWishes();
  return enabled();
}

void BackgroundThread::Stop() {
  if (!IsOfThisProcess()) return;
  // Pairs with WantsOwnThread, in one order with the state.
  wish_.store(Wish::kOff);
  Wake();
  FulfilWishes();
}

void BackgroundThread::StopAtExit() {
  if (!IsOfThisProcess()) return;
  // Pairs with WantsOwnThread, in one order with the state.
  wish_.store(Wish::kOff);
  uint32_t running = kRunning;
  // Pairs with SetState, which publishes thread_, and is in one order with the wish.
  if (!state_.compare_exchange_strong(running, kStopping)) return;
  Wake();
  if (work_.is_interrupted() || !AwaitEnd()) return SetState(kAbandoned);
  Join();
  SetState(kNone);
}

bool BackgroundThread::AwaitEnd() {
  const Undisturbed scope;
  // Publishes nothing: the thread is joined before anybody relies on its work.
  while (has_ended_.load(std::memory_order_relaxed) == 0) {
    if (!SleepWhile(has_ended_, 0, kWaitAtExit)) return false;
  }
  return true;
}

bool BackgroundThread::enabled() const {
  if (paused()) return false;
  return state_.load(std::memory_order_relaxed) > kAbandoned ||
         lent_.load(std::memory_order_relaxed) > 0;
}

void BackgroundThread::FulfilWishes() {
  const Undisturbed scope;
  while (true) {
    // Pairs with SetState, in one order with the wishes.
    uint32_t state = state_.load();
    if (state == kStarting || state == kStopping) {
      SleepWhile(state_, state);
      continue;
    }
    const bool wanted = WantsOwnThread();
    if (state == kAbandoned || state == (wanted ? kRunning : kNone)) return;
    // Pairs with SetState, which publishes thread_.
    if (!state_.compare_exchange_strong(state, wanted ? kStarting : kStopping)) continue;
    if (wanted && !(scope.blocked() && Create())) return SetState(kNone);
    if (!wanted && state == kRunning) Join();
    SetState(wanted ? kRunning : kNone);
  }
}

void BackgroundThread::SetState(State state) {
  // Pairs with FulfilWishes and StopAtExit: publishes thread_, and is in one order with the wishes,
  // which FulfilWishes reads next.
  state_.store(state);
  WakeSleepers(state_);
}

bool BackgroundThread::Create() {
  process_.store(::getpid(), std::memory_order_relaxed);
  has_ended_.store(0, std::memory_order_relaxed);
  if (system_calls.pthread_create(&thread_, nullptr, Main, this) != 0) return false;
  work_.runner_comes();
  return true;
}

void BackgroundThread::Join() {
  Wake();
  ::pthread_join(thread_, nullptr);
  work_.runner_goes();
}

void* BackgroundThread::Main(void* self) {
  auto* background = static_cast<BackgroundThread*>(self);
  system_calls.prctl(PR_SET_NAME, reinterpret_cast<unsigned long>(kThreadName), 0, 0, 0);
  while (true) {
    // Acquire pairs with the release in Wake: settings that were made before are seen below.
    const uint32_t events = background->events_.load(std::memory_order_acquire);
    if (background->state_.load(std::memory_order_relaxed) <= kStopping) break;
    background->RunRound(events);
  }
  background->has_ended_.store(1, std::memory_order_relaxed);
  WakeSleepers(background->has_ended_);
  return nullptr;
}

void BackgroundThread::RunForever() {
  BlockSignals(nullptr);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  process_.store(::getpid(), std::memory_order_relaxed);
  // Pairs with WantsOwnThread, in one order with the state.
  lent_.fetch_add(1);
  FulfilWishes();
  bool working = false;
  while (true) {
    // Acquire pairs with the release in Wake.
    const uint32_t events = events_.load(std::memory_order_acquire);
    const bool work = !paused();
    if (work && !working) work_.runner_comes();
    if (!work && working) work_.runner_goes();
    working = work;
    if (working) {
      RunRound(events);
    } else {
      WaitFor(kIdleWait, events);
    }
  }
}

// `events` was read before the settings that the round uses.
void BackgroundThread::RunRound(uint32_t events) {
  uint64_t wait = 0;
  if (!work_.run(&wait)) return WaitFor(kWaitForFork, events);
  WaitFor(std::max(wait == 0 ? kIdleWait : wait, interval()), events);
}

// Waits, but may return early. Returns at once if more has happened than `events`.
void BackgroundThread::WaitFor(uint64_t ns, uint32_t events) { SleepWhile(events_, events, ns); }

void BackgroundThread::set_interval(uint64_t ns) {
  interval_ns_.store(ns, std::memory_order_relaxed);
  Wake();
}

void BackgroundThread::Wake() {
  const int saved_errno = errno;
  // Release pairs with the acquire in Main and RunForever and publishes the settings.
  events_.fetch_add(1, std::memory_order_release);
  WakeSleepers(events_);
  errno = saved_errno;
}

void BackgroundThread::ResetAfterFork() {
  const uint32_t state = state_.load(std::memory_order_relaxed);
  const bool had_one = state != kNone || lent_.load(std::memory_order_relaxed) > 0;
  lent_.store(0, std::memory_order_relaxed);
  state_.store(had_one && WantsOwnThread() ? kLost : kNone, std::memory_order_relaxed);
  process_.store(0, std::memory_order_relaxed);
}

}  // namespace tcmalloc
