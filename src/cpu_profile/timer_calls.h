// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The kernel's timers and threads, by calls that allocate nothing and may be made in a signal
// handler. libc's timer_create allocates.

#ifndef TCMALLOC_CPU_PROFILE_TIMER_CALLS_H_
#define TCMALLOC_CPU_PROFILE_TIMER_CALLS_H_

#include <sys/types.h>
#include <time.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tcmalloc {

// The kernel's number of a timer or, where events are counted instead, of a file.
using KernelTimer = int;

struct TimerRequest {
  clockid_t clock;
  pid_t thread;  // to which the signal is sent; 0 leaves it to the kernel
  int signal;
  void* value;  // the si_value of its signals
};

// All may change errno, and fail as the functions of libc do.
bool CreateTimer(const TimerRequest& request, KernelTimer* timer);
// The first signal comes after `first_ns`, at least 1.
bool StartTimer(KernelTimer timer, uint64_t first_ns, uint64_t period_ns);
// Returns false for the timer of a thread that has ended.
bool TimerRuns(KernelTimer timer);
void DeleteTimer(KernelTimer timer);

// The clock of the CPU time of a thread of this process.
clockid_t ThreadCpuClock(pid_t thread);
pid_t OwnThread();
// Returns when a thread of this process started, in clock ticks since the machine did; 0 if that is
// not known. Tells a thread from an earlier one of its number.
uint64_t StartOfThread(pid_t thread);

// Calls visit(thread, argument) for each thread of the process, as far as the kernel lists them.
void ForEachThread(void (*visit)(pid_t thread, void* argument), void* argument);

// Returns true if the kernel sends the signal of a timer of the process's CPU time to the thread
// that runs, as Linux does since 6.4, and not to the first one.
bool ProcessTimersSignalRunningThread();

// Opens an event for each `period_ns` that a thread runs outside of the kernel, of which it learns
// by the signal. Returns -1 if the kernel forbids it.
int OpenClockEvent(pid_t thread, uint64_t period_ns, int signal);
void CloseClockEvent(int fd);

}  // namespace tcmalloc

#endif  // TCMALLOC_CPU_PROFILE_TIMER_CALLS_H_
