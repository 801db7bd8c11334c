// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap/events.h"

#include <cerrno>

#include "heap/heap.h"

namespace tcmalloc {
namespace events {

void FirstEntry() { heap.EnsureInitialized(); }

bool StartPerCpu() { return heap.StartPerCpu(); }

void ThreadEnds(void* value) { heap.threads().NoteEnd(value); }

void BeforeFork() {
  const int saved_errno = errno;
  heap.threads().BeginFork();
  errno = saved_errno;
}

void InParent() { heap.threads().EndForkInParent(); }

void InChild() {
  heap.threads().EndForkInChild([] { heap.background().ResetAfterFork(); });
}

void ClearAfterFork() {
  heap.threads().ClearAfterFork();
  heap.housekeeping().ResetAfterFork();
}

// The thread has no cache, and knows itself by the address of a variable on its stack.
bool RunRegularly(uint64_t* wait) {
  const char self = 0;
  if (!heap.gate().EnterAsStranger(&self)) return false;
  *wait = heap.housekeeping().RunAll();
  heap.gate().LeaveAsStranger(&self);
  return true;
}

void RunnerComes() { heap.housekeeping().AddDelegate(); }

void RunnerGoes() { heap.housekeeping().RemoveDelegate(); }

bool IsInterrupted() {
  const Entry entry = EnterSlowPath();
  LeaveSlowPath(entry);
  return entry == Entry::kReentrant;
}

}  // namespace events

extern "C" SuspendedThread tcmalloc_before_vfork() {
  const int saved_errno = errno;
  const SuspendedThread thread = heap.threads().Suspend();
  errno = saved_errno;
  return thread;
}

extern "C" pid_t tcmalloc_after_vfork(SuspendedThread thread, long result) {
  heap.threads().Resume(thread);
  if (result >= 0) return static_cast<pid_t>(result);
  errno = static_cast<int>(-result);
  return -1;
}

}  // namespace tcmalloc
