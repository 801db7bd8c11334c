// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "stress/faults/workload_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "stress/faults/protocol.h"
#include "stress/threads/workload.h"

namespace tcmalloc::testing {
namespace {

// The strings must outlive the pointers.
std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Between fork and exec in a process with several threads: only what is async-signal-safe. The
// alarm outlives exec, and so covers the start of the program too.
[[noreturn]] void BecomeWorkload(char* const* arguments, char* const* environment) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  alarm(kHangSeconds);
  execve(arguments[0], arguments, environment);
  _exit(127);
}

WorkloadResult Explain(int status) {
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return {Outcome::kFailed, "hangs"};
  if (WIFSIGNALED(status)) {
    return {Outcome::kFailed, "killed by signal " + std::to_string(WTERMSIG(status))};
  }
  if (WEXITSTATUS(status) == kAbsorbedStatus) return {Outcome::kFaultsAbsorbed, ""};
  if (WEXITSTATUS(status) == kOneFaultAbsorbedStatus) return {Outcome::kOneFaultAbsorbed, ""};
  if (WEXITSTATUS(status) == kNothingInjectedStatus) return {Outcome::kNothingInjected, ""};
  return {Outcome::kFailed, "exit status " + std::to_string(WEXITSTATUS(status))};
}

}  // namespace

std::string WorkloadCommand::Text() const {
  std::string text = "env -i";
  for (const std::string& variable : environment) text += " '" + variable + "'";
  text += " " + program;
  for (const std::string& argument : arguments) text += " '" + argument + "'";
  return text;
}

WorkloadResult RunWorkload(const WorkloadCommand& command) {
  std::vector<std::string> words = {command.program};
  words.insert(words.end(), command.arguments.begin(), command.arguments.end());
  const std::vector<char*> arguments = Pointers(words);
  const std::vector<char*> environment = Pointers(command.environment);
  const pid_t pid = fork();
  PROGRAM_CHECK(pid >= 0);
  if (pid == 0) BecomeWorkload(arguments.data(), environment.data());
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) PROGRAM_CHECK(errno == EINTR);
  // Children of a workload that died.
  if (!WIFEXITED(status)) kill(-pid, SIGKILL);
  WorkloadResult result = Explain(status);
  if (result.outcome == Outcome::kFailed) {
    result.reason = "pid " + std::to_string(pid) + ": " + result.reason;
  }
  return result;
}

}  // namespace tcmalloc::testing
