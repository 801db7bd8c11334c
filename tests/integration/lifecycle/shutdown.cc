// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Allocates and frees at each point of a process's end at which a program can run code. Each way
// to end is taken by a child, which reports the stages that it went through over a pipe.

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "stress/threads/workload.h"

namespace tcmalloc::testing {
namespace {

int report_fd = -1;
Progress* progress = nullptr;

// Works on the heap and then says so; a stage that crashes or hangs is missing from the report.
void Report(char stage) {
  BlockSet<64> blocks(static_cast<uint64_t>(stage));
  blocks.Steps(500);
  blocks.FreeAll();
  if (report_fd >= 0) PROGRAM_CHECK(write(report_fd, &stage, 1) == 1);
}

// Frees in its destructor what it allocated in its constructor.
template <char kStage>
class Owner {
 public:
  Owner() { block_.Allocate(random_); }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  ~Owner() {
    block_.Free();
    Report(kStage);
  }
  void Touch() { block_.Check(); }

 private:
  Random random_{static_cast<uint64_t>(kStage)};
  Block block_;
};

Owner<'s'> static_owner;
thread_local Owner<'t'> thread_local_owner;

// Runs after every destructor of the program.
__attribute__((destructor(101))) void LastDestructor() { Report('d'); }

void AtExit() { Report('a'); }
void AtQuickExit() { Report('q'); }

void ChurnForever(std::atomic<int>* started) {
  BlockSet<256> blocks(11);
  blocks.Steps(1000);
  started->fetch_add(1);
  for (;;) blocks.Step();
}

void Exit() {
  PROGRAM_CHECK(atexit(AtExit) == 0);
  thread_local_owner.Touch();
  exit(0);
}

void QuickExit() {
  PROGRAM_CHECK(at_quick_exit(AtQuickExit) == 0);
  quick_exit(0);
}

// Threads still allocate while the exit handlers run and the process goes away.
void ExitBesideThreads() {
  static std::atomic<int> started{0};
  constexpr int kThreads = 3;
  for (int i = 0; i < kThreads; ++i) std::thread(ChurnForever, &started).detach();
  while (started.load() < kThreads) sched_yield();
  Exit();
}

// The main thread ends first; the process lives on in another one, which joins it.
void MainThreadFirst() {
  static pthread_t main_thread;
  main_thread = pthread_self();
  std::thread([] {
    PROGRAM_CHECK(pthread_join(main_thread, nullptr) == 0);
    thread_local_owner.Touch();
    PROGRAM_CHECK(atexit(AtExit) == 0);
    exit(0);
  }).detach();
  pthread_exit(nullptr);
}

struct Way {
  const char* name;
  void (*end)();
  const char* stages;
  int repeats;
};

// thread_local objects go before exit handlers, exit handlers in the reverse order of their
// registration, and destructor functions last.
constexpr Way kWays[] = {
    {"exit", Exit, "tasd", 5},
    {"quick_exit", QuickExit, "q", 5},
    {"exit beside threads", ExitBesideThreads, "tasd", 50},
    {"main thread first", MainThreadFirst, "tasd", 5},
};

std::string StagesOf(const Way& way) {
  std::array<int, 2> pipe_fds{};
  PROGRAM_CHECK(pipe(pipe_fds.data()) == 0);
  const pid_t pid = fork();
  PROGRAM_CHECK(pid >= 0);
  if (pid == 0) {
    close(pipe_fds[0]);
    report_fd = pipe_fds[1];
    way.end();
    abort();
  }
  close(pipe_fds[1]);
  std::string stages;
  char stage = 0;
  while (read(pipe_fds[0], &stage, 1) == 1) stages += stage;
  close(pipe_fds[0]);
  int status = 0;
  PROGRAM_CHECK(waitpid(pid, &status, 0) == pid);
  if (!WIFEXITED(status)) stages += " and killed by signal " + std::to_string(WTERMSIG(status));
  return stages;
}

int Body(Progress& shared_progress) {
  progress = &shared_progress;
  int failures = 0;
  for (const Way& way : kWays) {
    for (int i = 0; i < way.repeats; ++i) {
      const std::string stages = StagesOf(way);
      if (stages != way.stages) {
        fprintf(stderr, "%s: went through \"%s\", not \"%s\"\n", way.name, stages.c_str(),
                way.stages);
        ++failures;
      }
      progress->Advance();
    }
    printf("%-20s %2d times\n", way.name, way.repeats);
    fflush(stdout);
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace tcmalloc::testing

int main() { return tcmalloc::testing::RunSupervised("shutdown", tcmalloc::testing::Body); }
