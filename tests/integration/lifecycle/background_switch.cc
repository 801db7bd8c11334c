// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Background actions while the program switches them on and off: on the allocator's own thread and
// on one that the program lends, in children of fork, by many threads at once, and while the
// process ends. To be run with a short half-life. Whoever waits for this program gives up if
// something that it awaits never comes.

#include <dirent.h>
#include <sys/wait.h>
#include <tcmalloc/malloc_extension.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "stress/threads/workload.h"

namespace {

using Extension = tcmalloc::MallocExtension;

constexpr size_t kMiB = size_t{1} << 20;

template <typename F>
void Await(F condition) {
  while (!condition()) usleep(1000);
}

template <typename F>
void ForEachThread(F f) {
  DIR* directory = opendir("/proc/self/task");
  PROGRAM_CHECK(directory != nullptr);
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] != '.') f(entry->d_name);
  }
  closedir(directory);
}

int CountThreads() {
  int count = 0;
  ForEachThread([&count](const char*) { ++count; });
  return count;
}

bool HasOwnThread() {
  bool found = false;
  ForEachThread([&found](const char* id) {
    std::ifstream file(std::string("/proc/self/task/") + id + "/comm");
    std::string name;
    found = found || (std::getline(file, name) && name == "tcmalloc");
  });
  return found;
}

// Counted at the start, because an emulator has threads of its own.
int threads_at_start = 0;

int MoreThreads() { return CountThreads() - threads_at_start; }

// A thread that was joined may be seen for a moment longer.
void AwaitMoreThreads(int count) {
  Await([count] { return MoreThreads() == count; });
}

void Switch(bool on) {
  Extension::SetBackgroundProcessActionsEnabled(on);
  PROGRAM_CHECK(Extension::GetBackgroundProcessActionsEnabled() == on);
  PROGRAM_CHECK(Extension::NeedsProcessBackgroundActions() == !on);
}

void AllocateAndFree(size_t bytes) {
  constexpr size_t kBlock = 4000;
  std::vector<void*> blocks(bytes / kBlock);
  for (void*& block : blocks) {
    block = malloc(kBlock);
    memset(block, 1, kBlock);
  }
  for (void* block : blocks) free(block);
}

size_t HeapBytes() { return Extension::GetNumericProperty("generic.heap_size").value(); }

// Without an allocation of this thread's, but for those of the question itself.
void AwaitRelease() {
  AllocateAndFree(64 * kMiB);
  Await([] { return HeapBytes() <= 16 * kMiB; });
}

template <typename F>
pid_t Fork(F body) {
  const pid_t child = fork();
  PROGRAM_CHECK(child >= 0);
  if (child == 0) {
    body();
    exit(0);
  }
  return child;
}

void Reap(pid_t child) {
  int status = -1;
  PROGRAM_CHECK(waitpid(child, &status, 0) == child);
  PROGRAM_CHECK(status == 0);
}

void OnAndOff() {
  for (int i = 0; i < 3; ++i) {
    Switch(true);
    AwaitMoreThreads(1);
    AwaitRelease();
    Switch(false);
    AwaitMoreThreads(0);
  }
}

void InChildren() {
  Switch(true);
  Reap(Fork([] {
    PROGRAM_CHECK(Extension::GetBackgroundProcessActionsEnabled());
    AwaitRelease();
    AwaitMoreThreads(1);
    // Nor does it come back in a grandchild once it was switched off.
    Switch(false);
    AwaitMoreThreads(0);
    Reap(Fork([] {
      AllocateAndFree(kMiB);
      PROGRAM_CHECK(MoreThreads() == 0);
      OnAndOff();
    }));
  }));
  // Before it came back.
  Reap(Fork([] {
    Switch(false);
    AllocateAndFree(kMiB);
    PROGRAM_CHECK(MoreThreads() == 0);
  }));
  Reap(Fork([] { Switch(true); }));
  AwaitMoreThreads(1);
  Switch(false);
}

// Checks that the last of all calls counts, whatever the others were at.
void ByManyThreads() {
  constexpr int kThreads = 3;
  constexpr int kRounds = 300;
  for (const bool last : {true, false}) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([t] {
        for (int i = 0; i < kRounds; ++i) {
          Extension::SetBackgroundProcessActionsEnabled((i + t) % 2 == 0);
          if (i % 8 == 0) AllocateAndFree(64 << 10);
        }
      });
    }
    for (int i = 0; i < 40; ++i) {
      Reap(Fork([i] {
        AllocateAndFree(64 << 10);
        Switch(i % 2 == 0);
        AwaitMoreThreads(i % 2 == 0 ? 1 : 0);
      }));
    }
    for (std::thread& thread : threads) thread.join();
    AwaitMoreThreads(Extension::GetBackgroundProcessActionsEnabled() ? 1 : 0);
    Switch(last);
    AwaitMoreThreads(last ? 1 : 0);
  }
}

// A process ends while its other threads go on switching.
void AtExit() {
  for (int i = 0; i < 10; ++i) {
    Reap(Fork([] {
      static std::atomic<int> rounds{0};
      for (int t = 0; t < 2; ++t) {
        std::thread([t] {
          for (bool on = t == 0;; on = !on) {
            Extension::SetBackgroundProcessActionsEnabled(on);
            ++rounds;
          }
        }).detach();
      }
      Await([] { return rounds >= 10; });
    }));
  }
}

// At the end, for the thread stays. Where one was lent the allocator needs none of its own, but for
// the children.
void OnALentThread() {
  Switch(true);
  AwaitMoreThreads(1);
  Extension::SetBackgroundProcessSleepInterval(std::chrono::milliseconds(1));
  std::thread([] { Extension::ProcessBackgroundActions(); }).detach();
  // Both were there for a moment.
  Await([] { return !HasOwnThread(); });
  AwaitMoreThreads(1);
  AwaitRelease();
  Switch(false);
  Switch(true);
  AwaitMoreThreads(1);
  AwaitRelease();
  Reap(Fork([] {
    PROGRAM_CHECK(Extension::GetBackgroundProcessActionsEnabled());
    AwaitRelease();
    PROGRAM_CHECK(HasOwnThread());
    Switch(false);
    AwaitMoreThreads(0);
    OnAndOff();
  }));
  Switch(false);
  Reap(Fork([] {
    AllocateAndFree(kMiB);
    PROGRAM_CHECK(MoreThreads() == 0);
  }));
}

// As programs do that were written for google/tcmalloc: they ask for nothing but this.
void OnALentThreadAlone() {
  PROGRAM_CHECK(!Extension::GetBackgroundProcessActionsEnabled());
  PROGRAM_CHECK(Extension::NeedsProcessBackgroundActions());
  std::thread([] { Extension::ProcessBackgroundActions(); }).detach();
  Await([] { return Extension::GetBackgroundProcessActionsEnabled(); });
  PROGRAM_CHECK(!Extension::NeedsProcessBackgroundActions());
  AwaitRelease();
  Reap(Fork([] {
    AllocateAndFree(kMiB);
    PROGRAM_CHECK(MoreThreads() == 0);
    PROGRAM_CHECK(Extension::NeedsProcessBackgroundActions());
  }));
}

}  // namespace

int main() {
  threads_at_start = CountThreads();
  PROGRAM_CHECK(!Extension::GetBackgroundProcessActionsEnabled());
  PROGRAM_CHECK(!HasOwnThread());
  Reap(Fork(OnALentThreadAlone));
  OnAndOff();
  InChildren();
  ByManyThreads();
  AtExit();
  OnALentThread();
  return 0;
}
