// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "integration/environment/probe_run.h"

#include <sys/mman.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <sstream>

#include "conformance/child.h"

namespace tcmalloc::testing {
namespace {

constexpr uid_t kNobody = 65534;

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::string ReadWhole(int file) {
  std::string text(1 << 16, '\0');
  const ssize_t got = pread(file, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

}  // namespace

long ProbeRun::Value(const std::string& name) const {
  std::istringstream lines(output);
  std::string line;
  while (std::getline(lines, line)) {
    if (line.starts_with(name + "=")) {
      return std::strtol(line.c_str() + name.size() + 1, nullptr, 10);
    }
  }
  return -1;
}

std::vector<std::string> ProbeRun::ErrorLines() const {
  std::istringstream lines(errors);
  std::vector<std::string> result;
  for (std::string line; std::getline(lines, line);) result.push_back(line);
  return result;
}

std::string ProbePath() {
  char path[PATH_MAX] = {};
  if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) std::abort();
  const std::string own = path;
  return own.substr(0, own.rfind('/') + 1) + "environment_probe";
}

ProbeRun RunProbe(const std::string& program, const std::vector<std::string>& environment,
                  const std::vector<std::string>& observations, Starter starter) {
  std::vector<std::string> arguments{program};
  arguments.insert(arguments.end(), observations.begin(), observations.end());
  std::vector<std::string> variables = environment;
  std::vector<char*> argument_pointers = Pointers(arguments);
  std::vector<char*> variable_pointers = Pointers(variables);
  const int output = memfd_create("probe output", MFD_CLOEXEC);
  const ChildResult child = RunInChild([&] {
    dup2(output, STDOUT_FILENO);
    if (starter == Starter::kNobody && (setgid(kNobody) != 0 || setuid(kNobody) != 0)) _exit(126);
    execve(program.c_str(), argument_pointers.data(), variable_pointers.data());
    _exit(127);
  });
  ProbeRun run;
  run.status = child.status;
  run.errors = child.errors;
  run.output = ReadWhole(output);
  close(output);
  return run;
}

}  // namespace tcmalloc::testing
