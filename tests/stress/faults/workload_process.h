// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_STRESS_FAULTS_WORKLOAD_PROCESS_H_
#define TCMALLOC_TESTS_STRESS_FAULTS_WORKLOAD_PROCESS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tcmalloc::testing {

enum class Outcome : uint8_t { kOneFaultAbsorbed, kFaultsAbsorbed, kNothingInjected, kFailed };

// A program to run with these variables and no others in its environment.
struct WorkloadCommand {
  std::string program;
  std::vector<std::string> environment;
  std::vector<std::string> arguments;

  // For a shell.
  std::string Text() const;
};

struct WorkloadResult {
  Outcome outcome = Outcome::kFailed;
  std::string reason;  // of a failure
};

// Runs it to its end, or to that of the time that a process may take. Nothing that it started
// stays. Thread safe.
WorkloadResult RunWorkload(const WorkloadCommand& command);

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_FAULTS_WORKLOAD_PROCESS_H_
