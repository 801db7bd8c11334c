// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Signals interrupt threads anywhere in malloc and free: from a timer every 50 microseconds and
// from a thread that sends them one by one. The handler does nothing, allocates and
// frees, or asks the code that it interrupts to allocate. Blocks carry patterns; a deadlock shows
// as no progress. Usage: signal_storm [handler [signals]], all handlers by default.

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "stress/threads/workload.h"

namespace tcmalloc::testing {
namespace {

constexpr int kWorkers = 3;
constexpr int kSignal = SIGUSR1;
// A handler that interrupts the slow path gets its memory from a small reserve.
constexpr size_t kMaxHandlerSize = 4096;

const char* only_handler = nullptr;
// Signals handled per kind of handler; 100 thousand over the three.
uint64_t signals_wanted = 34'000;

std::atomic<uint64_t> signals_handled{0};
std::atomic<bool> stop{false};
Progress* progress = nullptr;

// Initial-exec, so that a handler reaches them without a call that may allocate.
[[gnu::tls_model("initial-exec")]] thread_local uint64_t handler_seed = 0;
[[gnu::tls_model("initial-exec")]] thread_local std::atomic<int> deferred_allocations{0};

void CountSignal() {
  signals_handled.fetch_add(1, std::memory_order_relaxed);
  progress->Advance();
}

void HandleNothing(int /*signal*/) { CountSignal(); }

// The block is freed before the interrupted code goes on: keeping it would take more than malloc
// promises to handlers.
void HandleByAllocating(int /*signal*/) {
  const int saved_errno = errno;
  Random random(++handler_seed, kMaxHandlerSize);
  Block block;
  block.Allocate(random);
  block.Free();
  CountSignal();
  errno = saved_errno;
}

// Does as a careful program: the interrupted thread allocates later.
void HandleByDeferring(int /*signal*/) {
  deferred_allocations.fetch_add(1, std::memory_order_relaxed);
  CountSignal();
}

struct Handler {
  const char* name;
  void (*handle)(int);
};

constexpr Handler kHandlers[] = {
    {"nothing", HandleNothing},
    {"allocate", HandleByAllocating},
    {"defer", HandleByDeferring},
};

void Work(int index, std::atomic<pid_t>& thread_id) {
  thread_id.store(static_cast<pid_t>(syscall(SYS_gettid)), std::memory_order_release);
  BlockSet<256> blocks(static_cast<uint64_t>(index));
  while (!stop.load(std::memory_order_relaxed)) {
    blocks.Steps(4 + deferred_allocations.exchange(0, std::memory_order_relaxed));
  }
  blocks.FreeAll();
}

void SetHandler(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  PROGRAM_CHECK(sigaction(kSignal, &action, nullptr) == 0);
}

timer_t StartTimer() {
  sigevent event = {};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = kSignal;
  timer_t timer{};
  PROGRAM_CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
  constexpr timespec kPeriod = {0, 50'000};
  const itimerspec when = {kPeriod, kPeriod};
  PROGRAM_CHECK(timer_settime(timer, 0, &when, nullptr) == 0);
  return timer;
}

void RunHandler(const Handler& handler) {
  SetHandler(handler.handle);
  signals_handled.store(0);
  stop.store(false);
  std::array<std::atomic<pid_t>, kWorkers> thread_ids{};
  std::vector<std::thread> workers;
  for (int i = 0; i < kWorkers; ++i) {
    workers.emplace_back([i, &thread_ids] { Work(i, thread_ids[static_cast<size_t>(i)]); });
  }

  // This thread sends; its own share of the timer's signals would only slow it down.
  sigset_t signal_set;
  sigemptyset(&signal_set);
  sigaddset(&signal_set, kSignal);
  pthread_sigmask(SIG_BLOCK, &signal_set, nullptr);
  const timer_t timer = StartTimer();
  uint64_t sent = 0;
  while (signals_handled.load(std::memory_order_relaxed) < signals_wanted) {
    const pid_t target = thread_ids[sent++ % kWorkers].load(std::memory_order_acquire);
    if (target != 0) PROGRAM_CHECK(syscall(SYS_tgkill, getpid(), target, kSignal) == 0);
    // Signals to a thread that has one pending merge: let the targets run.
    sched_yield();
  }
  stop.store(true);
  PROGRAM_CHECK(timer_delete(timer) == 0);
  for (std::thread& worker : workers) worker.join();
  SetHandler(SIG_IGN);
  pthread_sigmask(SIG_UNBLOCK, &signal_set, nullptr);
  printf("%-10s %8llu signals handled\n", handler.name,
         static_cast<unsigned long long>(signals_handled.load()));
  fflush(stdout);
}

int Body(Progress& shared_progress) {
  progress = &shared_progress;
  for (const Handler& handler : kHandlers) {
    if (only_handler != nullptr && strcmp(only_handler, handler.name) != 0) continue;
    RunHandler(handler);
  }
  return 0;
}

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "all") != 0) tcmalloc::testing::only_handler = argv[1];
  if (argc > 2) tcmalloc::testing::signals_wanted = strtoull(argv[2], nullptr, 10);
  return tcmalloc::testing::RunSupervised("signal_storm", tcmalloc::testing::Body);
}
