// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The less usual ways to fork while threads allocate: a child that forks, fork handlers that
// allocate, and forks from signal handlers.
// Usage: fork_variants [variant], all by default.

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <thread>

#include "stress/fork/storm.h"
#include "stress/fork/variants.h"
#include "stress/threads/workload.h"

namespace tcmalloc::testing {
namespace {

constexpr int kChurners = 4;
constexpr int kRounds = 100;
// Each has two forks and a thread in the child, which copy most of the heap.
constexpr int kNestedRounds = 60;

// --- A child that forks ---------------------------------------------------------------------

[[noreturn]] void ForkAgain(BlockSet<64>& blocks, int round) {
  alarm(kChildAlarmSeconds);
  const Churners churners(1);
  const pid_t pid = fork();
  PROGRAM_CHECK(pid >= 0);
  if (pid == 0) {
    alarm(kChildAlarmSeconds);
    UseHeapInChild(blocks, static_cast<uint64_t>(round));
    LeaveChild(round);
  }
  UseHeapInChild(blocks, static_cast<uint64_t>(round));
  int status = 0;
  PROGRAM_CHECK(waitpid(pid, &status, 0) == pid);
  _exit(WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1);
}

void NestedForks() {
  const Churners churners(kChurners);
  BlockSet<64> blocks(1);
  for (int round = 0; round < kNestedRounds; ++round) {
    blocks.Steps(20);
    const pid_t pid = fork();
    PROGRAM_CHECK(pid >= 0);
    if (pid == 0) ForkAgain(blocks, round);
    AwaitChild(pid);
  }
  blocks.FreeAll();
}

// --- Fork handlers that allocate -------------------------------------------------------------

std::atomic<bool> handlers_active{false};
thread_local Block* handler_block = nullptr;

void AllocateInPrepare() {
  if (!handlers_active.load()) return;
  Random random(7);
  handler_block = new Block;
  handler_block->Allocate(random);
}

void FreeAfterFork() {
  if (!handlers_active.load()) return;
  Random random(8);
  handler_block->Resize(random);
  handler_block->Free();
  delete handler_block;
}

// Registered before main, and so before most of what a program registers.
__attribute__((constructor(101))) void RegisterEarlyHandlers() {
  PROGRAM_CHECK(pthread_atfork(AllocateInPrepare, FreeAfterFork, FreeAfterFork) == 0);
}

void AllocatingHandlers() {
  handlers_active.store(true);
  const Churners churners(kChurners);
  BlockSet<64> blocks(2);
  for (int round = 0; round < kRounds; ++round) {
    blocks.Steps(20);
    const pid_t pid = fork();
    PROGRAM_CHECK(pid >= 0);
    if (pid == 0) {
      alarm(kChildAlarmSeconds);
      UseHeapInChild(blocks, static_cast<uint64_t>(round));
      LeaveChild(round);
    }
    AwaitChild(pid);
  }
  blocks.FreeAll();
  handlers_active.store(false);
}

// --- Forks from signal handlers --------------------------------------------------------------

void CountForkInHandler(pid_t pid) {
  PROGRAM_CHECK(pid >= 0);
  if (pid == 0) _exit(0);
  AwaitChild(pid);
  handler_forks.fetch_add(1);
}

// The child does nothing but leave, as POSIX demands of a child of a signal handler. The signal
// may have come in the middle of malloc; the fork handlers of the allocator run all the same.
void ForkInHandler(int /*signal*/) {
  const int saved_errno = errno;
  CountForkInHandler(fork());
  errno = saved_errno;
}

// _Fork runs no fork handlers and is the one that may be called anywhere.
void PlainForkInHandler(int /*signal*/) {
  const int saved_errno = errno;
  CountForkInHandler(_Fork());
  errno = saved_errno;
}

// Sends SIGUSR1 to the process every millisecond while it lives.
class SignalTimer {
 public:
  SignalTimer() {
    sigevent event = {};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGUSR1;
    PROGRAM_CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0);
    constexpr timespec kPeriod = {0, 1'000'000};
    const itimerspec when = {kPeriod, kPeriod};
    PROGRAM_CHECK(timer_settime(timer_, 0, &when, nullptr) == 0);
  }
  SignalTimer(const SignalTimer&) = delete;
  SignalTimer& operator=(const SignalTimer&) = delete;
  ~SignalTimer() { timer_delete(timer_); }

 private:
  timer_t timer_{};
};

// One thread, interrupted anywhere in its allocations.
void ForkInterruptsMalloc() {
  SetHandler(ForkInHandler);
  BlockSet<256> blocks(3);
  {
    const SignalTimer timer;
    while (handler_forks.load() < kRounds) blocks.Steps(100);
  }
  blocks.FreeAll();
}

// Several threads, any of which the signal may interrupt in its allocations.
void PlainForkInterruptsThreads() {
  SetHandler(PlainForkInHandler);
  BlockSet<256> blocks(4);
  const Churners churners(kChurners);
  {
    const SignalTimer timer;
    while (handler_forks.load() < kRounds) blocks.Steps(100);
  }
  blocks.FreeAll();
}

// The thread that takes the signal is outside malloc while the others are inside.
void ForkInterruptsIdleThread() {
  SetHandler(ForkInHandler);
  sigset_t signal_set;
  sigset_t old_mask;
  sigemptyset(&signal_set);
  sigaddset(&signal_set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &signal_set, &old_mask);
  {
    const Churners churners(kChurners);
    const SignalTimer timer;
    while (handler_forks.load() < kRounds) sigsuspend(&old_mask);
  }
  SetHandler(SIG_IGN);
  pthread_sigmask(SIG_SETMASK, &old_mask, nullptr);
}

// ----------------------------------------------------------------------------------------------

// The variant without threads comes first: later the process counts as multi-threaded for libc.
constexpr Variant kVariants[] = {
    {"signal_one_thread", ForkInterruptsMalloc},
    {"nested", NestedForks},
    {"atfork_malloc", AllocatingHandlers},
    {"signal_plain_fork", PlainForkInterruptsThreads},
    {"signal_idle_thread", ForkInterruptsIdleThread},
};

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  using namespace tcmalloc::testing;
  return RunVariants(argc, argv, "fork_variants", kVariants);
}
