// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cpu_profile/settings.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/message.h"
#include "options/child_mark.h"
#include "options/parse.h"

namespace tcmalloc {
namespace {

constexpr uint64_t kMostSignal = 64;

constinit std::atomic<bool> complained{false};

void SetNumber(const EnvironmentVariable& variable, uint64_t most, Complaints complaints,
               int* field) {
  if (variable.value.empty()) return;
  const std::optional<uint64_t> parsed = ParseCount(variable.value);
  const int value = static_cast<int>(std::min(parsed.value_or(0), most));
  if (value > 0) *field = value;
  if (parsed == uint64_t{static_cast<unsigned>(*field)} || complaints == Complaints::kOmit) return;
  Message message;
  message << variable.name << "=";
  message.AppendQuoted(variable.value) << ": expected a number from 1 to " << most << "; using ";
  Warn(*field != 0 ? message << *field : message << "none");
}

void SetSwitch(const EnvironmentVariable& variable, Complaints complaints, bool* field) {
  const std::optional<bool> parsed = ParseSwitch(variable.value);
  if (parsed.has_value()) {
    *field = *parsed;
  } else if (complaints == Complaints::kPrint) {
    Message message;
    message << variable.name << "=";
    Warn(message.AppendQuoted(variable.value)
         << ": expected true or false; using " << (*field ? "true" : "false"));
  }
}

}  // namespace

ProfilerSettings CurrentProfilerSettings() {
  Environment environment;
  const bool again = complained.exchange(true, std::memory_order_relaxed);
  return LoadProfilerSettings(environment, again ? Complaints::kOmit : Complaints::kPrint);
}

ProfilerSettings LoadProfilerSettings(Environment& environment, Complaints complaints) {
  ProfilerSettings settings;
  EnvironmentVariable variable;
  while (environment.Next(&variable)) {
    if (variable.name == "CPUPROFILE_FREQUENCY") {
      SetNumber(variable, kMostFrequency, complaints, &settings.frequency);
    } else if (variable.name == "CPUPROFILE_TIMER_SIGNAL") {
      SetNumber(variable, kMostSignal, complaints, &settings.timer_signal);
    } else if (variable.name == "CPUPROFILE_REALTIME") {
      // gperftools looks whether it is set, so that any word means yes.
      settings.wall = ParseSwitch(variable.value).value_or(true);
    } else if (variable.name == "CPUPROFILE_PERF_EVENTS") {
      SetSwitch(variable, complaints, &settings.perf);
    } else if (variable.name == "TCMALLOC_PROFILE_FORMAT") {
      settings.proto = variable.value == "proto";
    }
  }
  return settings;
}

void LoadStartSettings(Environment& environment, StartSettings* settings) {
  EnvironmentVariable variable;
  while (environment.Next(&variable)) {
    if (variable.name == "CPUPROFILE") {
      if (variable.value.size() < kPathCapacity) {
        std::memcpy(settings->path, variable.value.data(), variable.value.size());
      } else {
        Warn(Message() << "CPUPROFILE is too long for a path; no profile is taken");
      }
    } else if (variable.name == "CPUPROFILE_USE_PID") {
      SetSwitch(variable, Complaints::kPrint, &settings->use_pid);
    } else if (variable.name == "CPUPROFILE_FOLLOW_FORKS") {
      SetSwitch(variable, Complaints::kPrint, &settings->follow_forks);
    } else if (variable.name == "CPUPROFILESIGNAL") {
      SetNumber(variable, kMostSignal, Complaints::kPrint, &settings->toggle_signal);
    }
  }
  if (ClearChildMark(settings->path)) settings->use_pid = true;
}

}  // namespace tcmalloc
