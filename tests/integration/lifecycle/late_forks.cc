// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Forks in the destructor of a library, when those of the allocator have run, while other threads
// allocate. Each child must have a heap of which no lock is held.
// Usage: late_forks PLUGIN

#include <dlfcn.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "stress/fork/storm.h"
#include "stress/threads/workload.h"

namespace tcmalloc::testing {
namespace {

constexpr int kForks = 100;
constexpr size_t kSizes[] = {16, 300, 5000, 40000, 300000, 3000000};

// Gives blocks back in groups, past the caches.
void UseHeap() {
  void* blocks[64];
  for (const size_t size : kSizes) {
    for (void*& block : blocks) block = malloc(size);
    for (void* block : blocks) free(block);
  }
}

// Exits with a message at the first child that hangs or fails.
void ForkLate() {
  for (int i = 0; i < kForks; ++i) {
    Tally tally;
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(kChildAlarmSeconds);
      UseHeap();
      _exit(0);
    }
    tally.Await(pid);
    if (tally.failed()) _exit(tally.Report("late fork"));
  }
}

int Run(const char* plugin) {
  void* library = dlopen(plugin, RTLD_NOW);
  PROGRAM_CHECK(library != nullptr);
  auto* set_last_action = reinterpret_cast<void (*)(void (*)())>(dlsym(library, "SetLastAction"));
  PROGRAM_CHECK(set_last_action != nullptr);
  set_last_action(ForkLate);
  for (int i = 0; i < 3; ++i) {
    std::thread([] {
      for (;;) UseHeap();
    }).detach();
  }
  return 0;
}

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  PROGRAM_CHECK(argc == 2);
  return tcmalloc::testing::Run(argv[1]);
}
