// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Defines the global and the functions that reach it. Libc, threads and assembly call these without
// an argument that leads to the heap, so that nothing below this folder has to name it.

#include <sys/types.h>

#include <cerrno>
#include <cstdint>

#include "heap/heap.h"
#include "heap/observer.h"

namespace tcmalloc {
namespace {

void FirstEntry() { heap.EnsureInitialized(); }

bool StartPerCpu() { return heap.StartPerCpu(); }

void ThreadEnds(void* value) { heap.threads().NoteEnd(value); }

void BeforeFork() {
  const int saved_errno = errno;
  heap.threads().BeginFork();
  errno = saved_errno;
}

void InParent() { heap.threads().EndForkInParent(); }

// Forgets the kernel's number of a thread, which is another one in a child of fork.
void ForgetThreadNumbers(ThreadHeader* thread) {
  for (ThreadHeader* record : {thread, thread->other}) {
    if (record != nullptr && record->kernel_number != 0) record->kernel_number = 0;
  }
}

// Lets a child draw other samples than its parent and its brothers, which may do what it does.
void DrawOtherSamples(ThreadHeader* thread) {
  if (heap.sample_period() == 0) return;
  RenewThreadSeeds();
  heap.SeedShared(NewThreadSeed());
  for (ThreadHeader* record : {thread, thread->other}) {
    // A thread without a front end has a header that others share.
    if (record != nullptr && record->seat != nullptr) record->RedrawSamples();
  }
}

void InChild() {
  heap.threads().EndForkInChild([] {
    heap.background().ResetAfterFork();
    ForgetReadersAfterFork();
    DrawOtherSamples(current_thread.header());
    ForgetThreadNumbers(current_thread.header());
    heap.errands().ResetAfterFork(heap.background().is_lost());
  });
}

void ClearAfterFork() {
  heap.threads().ClearAfterFork();
  heap.housekeeping().ResetAfterFork();
}

// Runs upkeep in the background thread, and what signals ask it for. It has no cache, and the
// address of a variable on its stack identifies it.
bool RunRegularly(uint64_t* wait) {
  const char self = 0;
  if (!heap.gate().EnterAsStranger(&self)) return false;
  *wait = heap.housekeeping().RunAll();
  heap.gate().LeaveAsStranger(&self);
  WriteRequestedProfile();
  return true;
}

void RunnerComes() { heap.housekeeping().AddDelegate(); }

void RunnerGoes() { heap.housekeeping().RemoveDelegate(); }

bool IsInterrupted() {
  const Entry entry = EnterSlowPath();
  LeaveSlowPath(entry);
  return entry == Entry::kReentrant;
}

constexpr ThreadEvents kThreadEvents = {.first_entry = FirstEntry,
                                        .start_per_cpu = StartPerCpu,
                                        .thread_ends = ThreadEnds,
                                        .before_fork = BeforeFork,
                                        .in_parent = InParent,
                                        .in_child = InChild,
                                        .clear_after_fork = ClearAfterFork};

constexpr BackgroundWork kBackgroundWork = {.run = RunRegularly,
                                            .runner_comes = RunnerComes,
                                            .runner_goes = RunnerGoes,
                                            .is_interrupted = IsInterrupted};

}  // namespace

constinit Heap heap{kThreadEvents, kBackgroundWork};

void MakeHeap() {
  const int saved_errno = errno;
  LeaveSlowPath(EnterSlowPath());
  errno = saved_errno;
}

// Called by the assembly of vfork alone, which keeps the state in two registers.
extern "C" {

// Called before the system call of vfork. Keeps errno. Async-signal-safe.
SuspendedThread tcmalloc_before_vfork() {
  const int saved_errno = errno;
  const SuspendedThread thread = heap.threads().Suspend();
  errno = saved_errno;
  return thread;
}

// Called in the parent with the result of the system call; a negative one is an error. Returns the
// result of vfork.
pid_t tcmalloc_after_vfork(SuspendedThread thread, long result) {
  heap.threads().Resume(thread);
  if (result >= 0) return static_cast<pid_t>(result);
  errno = static_cast<int>(-result);
  return -1;
}

}  // extern "C"

}  // namespace tcmalloc
