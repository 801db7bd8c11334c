// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap/background_thread.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>

#include "heap/heap.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

// Shown by ps and top.
constexpr char kThreadName[] = "tcmalloc";

constexpr uint64_t kSecond = 1'000'000'000;
// How often it looks whether there is something to do while release by time is off.
constexpr uint64_t kIdleWait = 10 * kSecond;

uint32_t* FutexWord(std::atomic<uint32_t>& word) { return reinterpret_cast<uint32_t*>(&word); }

}  // namespace

bool BackgroundThread::Start() {
  const int saved_errno = errno;
  uint32_t state = state_.load(std::memory_order_relaxed);
  bool started = state == kRunning || state == kStarting;
  if ((state == kNone || state == kLost) &&
      state_.compare_exchange_strong(state, kStarting, std::memory_order_acquire)) {
    started = Create();
    // Release pairs with the acquire in Stop and publishes thread_ and process_.
    state_.store(started ? kRunning : kNone, std::memory_order_release);
    heap.housekeeping().set_delegated(started);
  }
  errno = saved_errno;
  return started;
}

// The new thread inherits a mask of all signals, so that no handler of the program ever runs on it.
bool BackgroundThread::Create() {
  const uint64_t all = ~uint64_t{0};
  uint64_t old = 0;
  if (system_calls.rt_sigprocmask(SIG_SETMASK, &all, &old) != 0) return false;
  process_ = ::getpid();
  const bool created = system_calls.pthread_create(&thread_, nullptr, Main, this) == 0;
  system_calls.rt_sigprocmask(SIG_SETMASK, &old, nullptr);
  return created;
}

void BackgroundThread::Stop() {
  uint32_t running = kRunning;
  // A child that did not come by fork's handlers has no such thread.
  if (process_ != ::getpid()) return;
  if (!state_.compare_exchange_strong(running, kStopping, std::memory_order_acquire)) return;
  system_calls.futex(FutexWord(state_), FUTEX_WAKE_PRIVATE, 1, nullptr);
  ::pthread_join(thread_, nullptr);
  heap.housekeeping().set_delegated(false);
  state_.store(kNone, std::memory_order_release);
}

void* BackgroundThread::Main(void* self) {
  auto* background = static_cast<BackgroundThread*>(self);
  system_calls.prctl(PR_SET_NAME, reinterpret_cast<unsigned long>(kThreadName), 0, 0, 0);
  while (background->state_.load(std::memory_order_relaxed) != kStopping) {
    const uint64_t wait = heap.housekeeping().RunAll();
    background->WaitFor(wait == 0 ? kIdleWait : wait);
  }
  return nullptr;
}

// May come back early, and at once while the thread is being started.
void BackgroundThread::WaitFor(uint64_t ns) {
  const timespec timeout = {static_cast<time_t>(ns / kSecond), static_cast<long>(ns % kSecond)};
  system_calls.futex(FutexWord(state_), FUTEX_WAIT_PRIVATE, kRunning, &timeout);
}

void BackgroundThread::ResetAfterFork() {
  const uint32_t state = state_.load(std::memory_order_relaxed);
  state_.store(state == kRunning || state == kStarting ? kLost : kNone, std::memory_order_relaxed);
}

}  // namespace tcmalloc
