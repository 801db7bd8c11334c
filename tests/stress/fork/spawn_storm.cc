// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Starts programs while threads allocate, by each way that libc offers. The children of popen,
// system, posix_spawn and vfork share the parent's memory until they exec.
// Usage: spawn_storm [rounds per way]

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "stress/fork/storm.h"
#include "stress/threads/workload.h"

namespace tcmalloc::testing {
namespace {

constexpr int kChurners = 4;

int rounds = 100;

void ByPopen() {
  FILE* pipe = popen("echo heard; exit 0", "re");
  PROGRAM_CHECK(pipe != nullptr);
  std::array<char, 64> line{};
  PROGRAM_CHECK(fgets(line.data(), static_cast<int>(line.size()), pipe) != nullptr);
  PROGRAM_CHECK(strcmp(line.data(), "heard\n") == 0);
  PROGRAM_CHECK(pclose(pipe) == 0);
}

void BySystem() {
  const int status = system("exit 7");
  PROGRAM_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

int WaitFor(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) PROGRAM_CHECK(errno == EINTR);
  return status;
}

void ByPosixSpawn() {
  char name[] = "sh";
  char option[] = "-c";
  char command[] = "echo spawned; exit 9";
  char* const arguments[] = {name, option, command, nullptr};
  posix_spawn_file_actions_t actions;
  PROGRAM_CHECK(posix_spawn_file_actions_init(&actions) == 0);
  PROGRAM_CHECK(
      posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) == 0);
  pid_t pid = 0;
  PROGRAM_CHECK(posix_spawnp(&pid, "sh", &actions, nullptr, arguments, environ) == 0);
  PROGRAM_CHECK(posix_spawn_file_actions_destroy(&actions) == 0);
  const int status = WaitFor(pid);
  PROGRAM_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 9);
}

void ByVfork() {
  const pid_t pid = vfork();
  PROGRAM_CHECK(pid >= 0);
  if (pid == 0) {
    alarm(kChildAlarmSeconds);
    execl("/bin/true", "true", static_cast<char*>(nullptr));
    _exit(127);
  }
  PROGRAM_CHECK(WaitFor(pid) == 0);
}

// An exec that fails returns to a child that ran on the parent's memory.
void ByFailingVfork() {
  const pid_t pid = vfork();
  PROGRAM_CHECK(pid >= 0);
  if (pid == 0) {
    execl("/nonexistent/program", "program", static_cast<char*>(nullptr));
    _exit(5);
  }
  const int status = WaitFor(pid);
  PROGRAM_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
}

struct Way {
  const char* name;
  void (*start)();
};

constexpr Way kWays[] = {
    {"popen", ByPopen},
    {"system", BySystem},
    {"posix_spawn", ByPosixSpawn},
    {"vfork and exec", ByVfork},
    {"vfork and failing exec", ByFailingVfork},
};

int Body(Progress& progress) {
  const Churners churners(kChurners);
  BlockSet<64> blocks(1);
  for (const Way& way : kWays) {
    for (int round = 0; round < rounds; ++round) {
      blocks.Steps(20);
      way.start();
      progress.Advance();
    }
    printf("%-24s %5d children\n", way.name, rounds);
    fflush(stdout);
  }
  blocks.FreeAll();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  if (argc > 1) tcmalloc::testing::rounds = atoi(argv[1]);
  return tcmalloc::testing::RunSupervised("spawn_storm", tcmalloc::testing::Body);
}
