// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Takes CPU profiles of threads that share one stack for signals. The profiler's handler must leave
// it alone, whether they took it before the profile or during it.

#include "fakes/shared_signal_stack.h"

#include <gperftools/profiler.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "fakes/require.h"

namespace {

using tcmalloc::testing::Require;
using tcmalloc::testing::SharedSignalStack;

constexpr int kThreads = 3;
constexpr int kTicks = 50;

int TicksTaken() {
  ProfilerState state = {};
  ProfilerGetCurrentState(&state);
  return state.samples_gathered;
}

// Runs threads that share the stack until enough ticks have come in them.
void ProfileThreads(bool take_first) {
  const std::string path = "/tmp/shared_signal_stack." + std::to_string(getpid());
  std::atomic<int> have_stack = 0;
  std::atomic<bool> runs = false;
  std::atomic<bool> ends = false;
  if (!take_first) Require(ProfilerStart(path.c_str()) != 0, "no profile");
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const SharedSignalStack::Holder stack;
      ++have_stack;
      runs.wait(false);
      while (!ends) std::free(std::malloc(100));
    });
  }
  while (have_stack != kThreads) std::this_thread::yield();
  if (take_first) Require(ProfilerStart(path.c_str()) != 0, "no profile");
  SharedSignalStack::Mark();
  runs = true;
  runs.notify_all();
  const int before = TicksTaken();
  while (TicksTaken() - before < kTicks) std::this_thread::yield();
  ends = true;
  for (std::thread& thread : threads) thread.join();
  ProfilerStop();
  unlink(path.c_str());
  Require(SharedSignalStack::IsUntouched(), "the handler runs on the shared stack");
}

// The profiler leaves such stacks alone for good, so each case has a process of its own.
bool Passes(bool take_first) {
  const pid_t child = fork();
  if (child == 0) {
    ProfileThreads(take_first);
    std::_Exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status == 0) return true;
  std::fprintf(stderr, "taken %s the start: status %x\n", take_first ? "before" : "after",
               static_cast<unsigned>(status));
  return false;
}

}  // namespace

int main() {
  const bool before = Passes(true);
  const bool after = Passes(false);
  return before && after ? 0 : 1;
}
