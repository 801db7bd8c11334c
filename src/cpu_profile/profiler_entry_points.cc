// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// gperftools' functions for CPU profiles, and profiles that the environment asks for.

#include <gperftools/profiler.h>
#include <signal.h>
#include <stdlib.h>

#include <cstring>

#include "base/message.h"
#include "cpu_profile/cpu_profiler.h"
#include "cpu_profile/profile_output.h"
#include "cpu_profile/settings.h"
#include "cpu_profile/ticker.h"
#include "system/environment.h"
#include "system/system_calls.h"
#include "unwind/stack_trace.h"

extern "C" int __sigaction(int signal, const struct sigaction* action, struct sigaction* old);

namespace tcmalloc {
namespace {

constinit StartSettings at_start;
constinit char path_of_process[kPathCapacity];
// Tells programs that this one starts to append the number of their process to the name.
constinit char use_pid_entry[] = "CPUPROFILE_USE_PID=1";

void OnToggleSignal(int) { cpu_profiler.Toggle(path_of_process); }

void HandleToggleSignal(int signal) {
  struct sigaction old = {};
  struct sigaction action = {};
  action.sa_handler = OnToggleSignal;
  action.sa_flags = SA_RESTART;
  sigfillset(&action.sa_mask);
  const bool known = !IsFaultSignal(signal) && __sigaction(signal, nullptr, &old) == 0;
  if (known && old.sa_handler == SIG_DFL && __sigaction(signal, &action, nullptr) == 0) return;
  Warn(Message() << "CPUPROFILESIGNAL: signal " << signal
                 << " cannot be used, or has a handler; the profiler does not listen to it");
}

__attribute__((constructor)) void OnLoad() {
  Environment environment;
  LoadStartSettings(environment, &at_start);
  if (at_start.path[0] == '\0') return;
  if (at_start.use_pid) {
    NameForProcess(at_start.path, path_of_process);
  } else {
    std::memcpy(path_of_process, at_start.path, sizeof(path_of_process));
    putenv(use_pid_entry);
  }
  if (at_start.follow_forks) cpu_profiler.FollowForks(at_start.path);
  if (at_start.toggle_signal != 0) {
    HandleToggleSignal(at_start.toggle_signal);
  } else {
    cpu_profiler.Start(path_of_process, nullptr);
  }
}

__attribute__((destructor)) void OnExit() { cpu_profiler.Stop(); }

}  // namespace
}  // namespace tcmalloc

using tcmalloc::cpu_profiler;

int ProfilerStart(const char* fname) { return cpu_profiler.Start(fname, nullptr) ? 1 : 0; }

int ProfilerStartWithOptions(const char* fname, const ProfilerOptions* options) {
  return cpu_profiler.Start(fname, options) ? 1 : 0;
}

void ProfilerStop() { cpu_profiler.Stop(); }

void ProfilerFlush() { cpu_profiler.Flush(); }

void ProfilerEnable() {}

void ProfilerDisable() {}

int ProfilingIsEnabledForAllThreads() { return cpu_profiler.running() ? 1 : 0; }

void ProfilerRegisterThread() { tcmalloc::ticker.RegisterThread(); }

void ProfilerGetCurrentState(ProfilerState* state) { cpu_profiler.Describe(state); }

int ProfilerGetStackTrace(void** result, int max_depth, int skip_count, const void* uc) {
  if (uc == nullptr) return tcmalloc::CaptureStack(result, max_depth, skip_count);
  return tcmalloc::CaptureStackFrom(uc, result, max_depth,
                                    tcmalloc::SkippedBeyondHandler(skip_count));
}
