// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Functions that libc, threads and assembly call without an argument that leads to the heap: they
// name the global, so that nothing below this folder does.

#ifndef TCMALLOC_HEAP_EVENTS_H_
#define TCMALLOC_HEAP_EVENTS_H_

#include <sys/types.h>

#include <cstdint>

#include "thread/threads.h"
#include "thread/vfork.h"
#include "upkeep/background_thread.h"

namespace tcmalloc {

namespace events {

void FirstEntry();
bool StartPerCpu();
void ThreadEnds(void* value);
void BeforeFork();
void InParent();
void InChild();
void ClearAfterFork();

bool RunRegularly(uint64_t* wait);
void RunnerComes();
void RunnerGoes();
bool IsInterrupted();

}  // namespace events

inline constexpr ThreadEvents kThreadEvents = {.first_entry = events::FirstEntry,
                                               .start_per_cpu = events::StartPerCpu,
                                               .thread_ends = events::ThreadEnds,
                                               .before_fork = events::BeforeFork,
                                               .in_parent = events::InParent,
                                               .in_child = events::InChild,
                                               .clear_after_fork = events::ClearAfterFork};

inline constexpr BackgroundWork kBackgroundWork = {.run = events::RunRegularly,
                                                   .runner_comes = events::RunnerComes,
                                                   .runner_goes = events::RunnerGoes,
                                                   .is_interrupted = events::IsInterrupted};

// Called by the assembly of vfork alone, which keeps the state in two registers. Hidden by name,
// for the compiler hides only what it sees defined.
extern "C" {

// Before the system call. Keeps errno. Async-signal-safe.
__attribute__((visibility("hidden"))) SuspendedThread tcmalloc_before_vfork();

// In the parent, with what the system call returned: an error is negative. Returns what vfork does.
__attribute__((visibility("hidden"))) pid_t tcmalloc_after_vfork(SuspendedThread thread,
                                                                 long result);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_EVENTS_H_
