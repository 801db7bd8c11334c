// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Starts programs while threads allocate, by each way that libc offers. The children of popen,
// system, posix_spawn and vfork share the parent's memory until they exec. Those of vfork do more
// than POSIX lets them do: they allocate and free, on another CPU than their parent. A block that
// two of all these threads were given shows at once.
// Usage: spawn_storm [rounds per way [way]], all by default.

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "stress/fork/storm.h"
#include "stress/threads/owned_block.h"
#include "stress/threads/workload.h"

namespace tcmalloc::testing {
namespace {

constexpr int kAllocatingThreads = 8;
// Of a child of vfork: long enough for the other threads to run beside it.
constexpr int kChildSteps = 20'000;

int rounds = 30;
const char* only_way = nullptr;

// Load that the ways share: the blocks of the thread that starts programs, and of all threads.
struct Load {
  OwnedMailbox mailbox;
  OwnedBlocks blocks{mailbox, 1};
};
std::optional<Load> load;

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

// Another CPU than the one that the caller runs on, if there is one. By system call, for libc reads
// the number from where the kernel does not write it for a child of vfork.
cpu_set_t OtherCpus() {
  unsigned cpu = 0;
  PROGRAM_CHECK(syscall(SYS_getcpu, &cpu, nullptr, nullptr) == 0);
  cpu_set_t mask;
  PROGRAM_CHECK(sched_getaffinity(0, sizeof(mask), &mask) == 0);
  if (CPU_COUNT(&mask) > 1) CPU_CLR(cpu, &mask);
  return mask;
}

[[noreturn]] void AllocateAndExec(const cpu_set_t& cpus) {
  alarm(kChildAlarmSeconds);
  PROGRAM_CHECK(sched_setaffinity(0, sizeof(cpus), &cpus) == 0);
  load->blocks.Steps(kChildSteps);
  execl("/bin/true", "true", static_cast<char*>(nullptr));
  _exit(127);
}

void ByAllocatingVfork() {
  const cpu_set_t cpus = OtherCpus();
  const pid_t pid = vfork();
  PROGRAM_CHECK(pid >= 0);
  if (pid == 0) AllocateAndExec(cpus);
  PROGRAM_CHECK(WaitFor(pid) == 0);
}

// --- vfork in a signal handler, which may have interrupted malloc or free
// -------------------------

std::atomic<int> signals_handled{0};

[[noreturn]] void AllocateALittle() {
  void* block = OwnedBlock::Allocate(100);
  OwnedBlock::Free(block);
  _exit(0);
}

void VforkInHandler(int /*signal*/) {
  const int saved_errno = errno;
  const pid_t pid = vfork();
  PROGRAM_CHECK(pid >= 0);
  if (pid == 0) AllocateALittle();
  PROGRAM_CHECK(WaitFor(pid) == 0);
  signals_handled.fetch_add(1);
  signals_handled.notify_one();
  errno = saved_errno;
}

void ByVforkInHandler() {
  struct sigaction action = {};
  action.sa_handler = VforkInHandler;
  action.sa_flags = SA_RESTART;
  PROGRAM_CHECK(sigaction(SIGUSR1, &action, nullptr) == 0);
  const int handled = signals_handled.load();
  std::thread sender([handled, target = pthread_self()] {
    PROGRAM_CHECK(pthread_kill(target, SIGUSR1) == 0);
    signals_handled.wait(handled);
  });
  while (signals_handled.load(std::memory_order_relaxed) == handled) load->blocks.Steps(1);
  sender.join();
}

// --------------------------------------------------------------------------------------------------

struct Way {
  const char* name;
  void (*start)();
};

constexpr Way kWays[] = {
    {"popen", ByPopen},
    {"system", BySystem},
    {"posix_spawn", ByPosixSpawn},
    {"vfork", ByVfork},
    {"failing_exec", ByFailingVfork},
    {"allocating_vfork", ByAllocatingVfork},
    {"vfork_in_handler", ByVforkInHandler},
};

void RunWay(const Way& way, Progress& progress) {
  for (int round = 0; round < rounds; ++round) {
    load->blocks.Steps(100);
    way.start();
    progress.Advance();
  }
  printf("%-24s %5d children\n", way.name, rounds);
  fflush(stdout);
}

int Body(Progress& progress) {
  load.emplace();
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kAllocatingThreads; ++i) {
    threads.emplace_back([&stop, i] {
      OwnedBlocks blocks(load->mailbox, i + 2);
      while (!stop.load(std::memory_order_relaxed)) blocks.Steps(100);
    });
  }
  for (const Way& way : kWays) {
    if (only_way == nullptr || strcmp(only_way, way.name) == 0) RunWay(way, progress);
  }
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  load.reset();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  if (argc > 1) tcmalloc::testing::rounds = atoi(argv[1]);
  if (argc > 2) tcmalloc::testing::only_way = argv[2];
  return tcmalloc::testing::RunSupervised("spawn_storm", tcmalloc::testing::Body);
}
