// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cpu_profile/settings.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "base/message.h"
#include "options/parse.h"

namespace tcmalloc {
namespace {

constexpr uint64_t kMostSignal = 64;

void SetNumber(const EnvironmentVariable& variable, uint64_t most, int* field) {
  if (variable.value.empty()) return;
  const std::optional<uint64_t> parsed = ParseCount(variable.value);
  const int value = static_cast<int>(std::min(parsed.value_or(0), most));
  if (value > 0) *field = value;
  if (parsed == uint64_t{static_cast<unsigned>(*field)}) return;
  Message message;
  message << variable.name << "=";
  message.AppendQuoted(variable.value)
      << ": expected a number from 1 to " << most << "; using " << *field;
  Warn(message);
}

bool IsTrue(std::string_view value) { return ParseSwitch(value).value_or(true); }

}  // namespace

ProfilerSettings LoadProfilerSettings(Environment& environment) {
  ProfilerSettings settings;
  EnvironmentVariable variable;
  while (environment.Next(&variable)) {
    if (variable.name == "CPUPROFILE_FREQUENCY") {
      SetNumber(variable, kMostFrequency, &settings.frequency);
    } else if (variable.name == "CPUPROFILE_TIMER_SIGNAL") {
      SetNumber(variable, kMostSignal, &settings.timer_signal);
    } else if (variable.name == "CPUPROFILE_REALTIME") {
      settings.wall = IsTrue(variable.value);
    } else if (variable.name == "CPUPROFILE_PERF_EVENTS") {
      settings.perf = IsTrue(variable.value);
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
      settings->use_pid = IsTrue(variable.value);
    } else if (variable.name == "CPUPROFILE_FOLLOW_FORKS") {
      settings->follow_forks = IsTrue(variable.value);
    } else if (variable.name == "CPUPROFILESIGNAL") {
      SetNumber(variable, kMostSignal, &settings->toggle_signal);
    }
  }
}

}  // namespace tcmalloc
