// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_INTEGRATION_ENVIRONMENT_PROBE_RUN_H_
#define TCMALLOC_TESTS_INTEGRATION_ENVIRONMENT_PROBE_RUN_H_

#include <string>
#include <vector>

namespace tcmalloc::testing {

// The result of a run of environment_probe.
struct ProbeRun {
  int status = 0;  // as waitpid gives it
  std::string output;
  std::string errors;

  bool Succeeded() const { return status == 0; }
  // The value of a "name=value" line; -1 where there is none.
  long Value(const std::string& name) const;
  // Lines of stderr.
  std::vector<std::string> ErrorLines() const;
};

// The probe in the directory of this program.
std::string ProbePath();

// Who starts the probe.
enum class Starter { kSelf, kNobody };

// Runs `program` with exactly this environment, duplicates included.
ProbeRun RunProbe(const std::string& program, const std::vector<std::string>& environment,
                  const std::vector<std::string>& observations, Starter starter = Starter::kSelf);

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_INTEGRATION_ENVIRONMENT_PROBE_RUN_H_
