// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Reads the variables that control CPU profiles. They belong to libraries that may lack the
// allocator and its options.

#ifndef TCMALLOC_CPU_PROFILE_SETTINGS_H_
#define TCMALLOC_CPU_PROFILE_SETTINGS_H_

#include <csignal>

#include "options/options.h"
#include "system/environment.h"

namespace tcmalloc {

inline constexpr int kDefaultFrequency = 100;
inline constexpr int kMostFrequency = 4000;

struct ProfilerSettings {
  int frequency = kDefaultFrequency;  // CPUPROFILE_FREQUENCY
  bool wall = false;                  // CPUPROFILE_REALTIME
  bool perf = false;                  // CPUPROFILE_PERF_EVENTS
  int timer_signal = SIGPROF;         // CPUPROFILE_TIMER_SIGNAL
  bool proto = false;                 // TCMALLOC_PROFILE_FORMAT
};

// How the process is profiled without a call of its own.
struct StartSettings {
  char path[kPathCapacity] = {};  // CPUPROFILE; empty if it is not
  int toggle_signal = 0;          // CPUPROFILESIGNAL
  bool use_pid = false;           // CPUPROFILE_USE_PID
  bool follow_forks = false;      // CPUPROFILE_FOLLOW_FORKS
};

// Report a value that cannot be understood in one line, and ignore it. May change errno.
enum class Complaints : uint8_t { kPrint, kOmit };
ProfilerSettings LoadProfilerSettings(Environment& environment,
                                      Complaints complaints = Complaints::kPrint);
// Loads them from the environment as it is now. Complains in the first call alone. Thread safe.
ProfilerSettings CurrentProfilerSettings();
void LoadStartSettings(Environment& environment, StartSettings* settings);

}  // namespace tcmalloc

#endif  // TCMALLOC_CPU_PROFILE_SETTINGS_H_
