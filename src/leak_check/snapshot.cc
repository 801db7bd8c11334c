// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/snapshot.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cerrno>

#include "leak_check/fault_barrier.h"
#include "leak_check/leak_search.h"
#include "leak_check/roots.h"
#include "leak_check/thread_stop.h"
#include "system/system_calls.h"
#include "unwind/stack_trace.h"

namespace tcmalloc {
namespace {

constinit ThreadStop thread_stop;

// A search takes at most some ten milliseconds, for which the program gets no signals, if it has no
// more to look at than this.
constexpr size_t kMostBlocksInPlace = size_t{1} << 16;
constexpr size_t kMostBytesInPlace = size_t{32} << 20;

// The search, in the process or in a child that has a copy of this.
struct Task {
  LeakSearch* search;
  SnapshotResult* result;
};

void Run(void* argument) {
  const Task& task = *static_cast<const Task*>(argument);
  task.result->complete = task.search->Run();
}

// A fault ends the child by its default action; the program's handlers are not called.
void RestoreFaults() {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS}) {
    ::sigaction(signal, &action, nullptr);
  }
}

void RunChild(void* task) {
  RestoreFaults();
  Run(task);
}

pid_t Fork(Task* task) {
  // Without an exit signal the child is invisible to the program's own wait.
  const pid_t child = system_calls.clone(0, nullptr, RunChild, task);
  const int error = errno;
  thread_stop.Resume();
  errno = error;
  return child;
}

bool AwaitChild(pid_t child) {
  int status = 0;
  while (system_calls.wait4(child, &status, __WALL) < 0) {
    // Somebody who ignores SIGCHLD does not matter, because the child sends none.
    if (errno != EINTR) return true;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Returns the bytes that a search may have to look at, as far as they are known.
size_t BytesAtMost(const SnapshotRequest& request, const LoadedData& data) {
  size_t bytes = request.blocks->Bytes() + OwnStackBytesFrom(request.own_stack);
  for (size_t i = 0; i < data.size(); ++i) bytes += data[i].bytes();
  for (const Range& mapping : request.mappings) bytes += mapping.bytes();
  for (const Range& region : request.root_regions) bytes += region.bytes();
  return bytes;
}

// Nobody changes the memory of a process whose only thread is here, so that a search need not have
// a copy of it.
bool SearchesInPlace(const SnapshotRequest& request, const LoadedData& data) {
  return thread_stop.is_alone() && request.blocks->CountAtMost() <= kMostBlocksInPlace &&
         BytesAtMost(request, data) <= kMostBytesInPlace;
}

// Returns false if there was no memory or a fault, and leaves the result as it was. Then a child
// may try, which has its own handlers of faults and its own limits.
bool SearchInPlace(const SnapshotRequest& request, LoadedData& data, MapsText* maps,
                   SnapshotResult* result) {
  const SnapshotCounts counts = *result;
  LeakSearch search(request, thread_stop, data, *maps, result);
  Task task = {&search, result};
  if (CallUntilFault(Run, &task) && result->complete) return true;
  static_cast<SnapshotCounts&>(*result) = counts;
  return false;
}

SnapshotOutcome SearchInChild(const SnapshotRequest& request, LoadedData& data,
                              SnapshotResult* result) {
  MapsText maps;
  LeakSearch search(request, thread_stop, data, maps, result);
  Task task = {&search, result};
  const pid_t child = Fork(&task);
  if (child < 0) return SnapshotOutcome::kNoFork;
  return AwaitChild(child) && result->complete ? SnapshotOutcome::kDone
                                               : SnapshotOutcome::kChildFailed;
}

}  // namespace

SnapshotResult* NewResult() {
  void* memory = system_calls.mmap(nullptr, sizeof(SnapshotResult), PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<SnapshotResult*>(memory);
}

void DeleteResult(SnapshotResult* result) {
  if (result != nullptr) system_calls.munmap(result, sizeof(SnapshotResult));
}

SnapshotOutcome TakeSnapshot(const SnapshotRequest& request, MapsText* maps,
                             SnapshotResult* result) {
  LoadedData data;
  data.Collect();
  if (!thread_stop.Reserve()) return SnapshotOutcome::kNoMemory;
  if (!thread_stop.Stop()) return SnapshotOutcome::kNoThreads;
  result->threads = static_cast<uint32_t>(thread_stop.size());
  for (size_t i = 0; i < thread_stop.size(); ++i) {
    result->held_threads += thread_stop[i].held.load(std::memory_order_relaxed);
  }
  if (SearchesInPlace(request, data) && SearchInPlace(request, data, maps, result)) {
    thread_stop.Resume();
    return SnapshotOutcome::kDone;
  }
  *maps = MapsText();
  return SearchInChild(request, data, result);
}

}  // namespace tcmalloc
