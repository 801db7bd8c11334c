// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Looks for leaks while threads sleep that share one stack for signals. The checker holds them all
// at a time, and must leave that stack alone, also where it has held threads before.

#include "fakes/shared_signal_stack.h"

#include <gperftools/heap-checker.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "fakes/require.h"

namespace {

using tcmalloc::testing::Require;
using tcmalloc::testing::SharedSignalStack;

constexpr int kThreads = 3;

// Runs threads while `look` is called, each with the shared stack if `shared` says so.
template <typename Look>
void WithThreads(bool shared, Look look) {
  std::atomic<int> sleeping = 0;
  std::atomic<bool> ends = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      std::optional<SharedSignalStack::Holder> holder;
      if (shared) holder.emplace();
      ++sleeping;
      ends.wait(false);
    });
  }
  while (sleeping != kThreads) std::this_thread::yield();
  look();
  ends = true;
  ends.notify_all();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main() {
  Require(HeapLeakChecker::IsActive(), "no leaks are looked for");
  WithThreads(false, [] { Require(HeapLeakChecker::NoGlobalLeaks(), "leaks of threads"); });
  WithThreads(true, [] {
    SharedSignalStack::Mark();
    Require(HeapLeakChecker::NoGlobalLeaks(), "leaks of threads that share a stack");
    Require(SharedSignalStack::IsUntouched(), "the handler runs on the shared stack");
  });
  return 0;
}
