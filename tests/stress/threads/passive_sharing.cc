// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Passive false sharing: a first thread allocates small objects side by side and gives one to each
// of the others, which free it and then allocate and free one of the same size over and over. For
// how long do two of them have objects in one cache line? Once with threads that are new to malloc,
// once with threads that have done the same with objects of their own before.
//
//   passive_sharing THREADS [pinned]
//
// Counts in bytes that a thread has allocated, not in time. Pinned: one thread on each CPU, for
// caches of CPUs; THREADS is the most of them.

#include <sched.h>

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "fakes/one_cpu.h"

namespace {

using ::tcmalloc::testing::RunOnCpu;

constexpr uintptr_t kLineBytes = 64;
constexpr size_t kPairsInRound = 1000;
// Bytes that a thread allocates in the whole, and while it may still share a line.
constexpr size_t kBytes = size_t{4} << 20;
constexpr size_t kBytesShared = size_t{1} << 20;

std::vector<int> UsableCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

void* AllocateAndWrite(size_t size) {
  void* object = std::malloc(size);
  if (object == nullptr) std::abort();
  std::memset(object, 1, size);
  return object;
}

struct Case {
  size_t size;
  bool warm;
};

// Observations of one case.
struct Outcome {
  size_t rounds = 0;
  size_t shared_rounds = 0;
  size_t last_shared = 0;  // counted from 1
};

class Sharing {
 public:
  Sharing(Case tested, std::vector<int> cpus, size_t threads)
      : size_(tested.size),
        warm_(tested.warm),
        cpus_(std::move(cpus)),
        held_(threads),
        sync_(Count(threads), Check{this}) {
    outcome_.rounds = kBytes / (kPairsInRound * size_) + 1;
  }

  Outcome Run() {
    for (void*& object : held_) object = AllocateAndWrite(size_);
    std::vector<std::thread> threads;
    threads.reserve(held_.size());
    for (size_t i = 0; i < held_.size(); ++i) threads.emplace_back([this, i] { RunThread(i); });
    for (std::thread& thread : threads) thread.join();
    return outcome_;
  }

 private:
  // Runs while all threads wait.
  struct Check {
    Sharing* sharing;
    void operator()() noexcept { sharing->CheckRound(); }
  };

  static std::ptrdiff_t Count(size_t threads) { return static_cast<std::ptrdiff_t>(threads); }

  void RunThread(size_t index) {
    if (!cpus_.empty()) RunOnCpu(cpus_[index]);
    if (warm_) UseOne(kBytes / size_);
    std::free(held_[index]);
    for (size_t round = 0; round < outcome_.rounds; ++round) {
      UseOne(kPairsInRound);
      held_[index] = AllocateAndWrite(size_);
      sync_.arrive_and_wait();
      std::free(held_[index]);
      // Nobody gets an object of a line that is still being looked at.
      sync_.arrive_and_wait();
    }
  }

  void UseOne(size_t pairs) const {
    for (; pairs > 0; --pairs) std::free(AllocateAndWrite(size_));
  }

  void CheckRound() {
    looking_ = !looking_;
    if (!looking_) return;
    ++round_;
    if (!AnyLineIsShared()) return;
    ++outcome_.shared_rounds;
    outcome_.last_shared = round_;
  }

  bool AnyLineIsShared() const {
    for (size_t i = 0; i < held_.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const auto a = reinterpret_cast<uintptr_t>(held_[i]);
        const auto b = reinterpret_cast<uintptr_t>(held_[j]);
        if (std::max(a, b) / kLineBytes <= (std::min(a, b) + size_ - 1) / kLineBytes) return true;
      }
    }
    return false;
  }

  const size_t size_;
  const bool warm_;
  const std::vector<int> cpus_;
  std::vector<void*> held_;
  Outcome outcome_;
  size_t round_ = 0;
  bool looking_ = false;
  std::barrier<Check> sync_;
};

}  // namespace

int main(int argc, char** argv) {
  const bool pinned = argc > 2 && std::strcmp(argv[2], "pinned") == 0;
  size_t threads = argc > 1 ? static_cast<size_t>(std::atoi(argv[1])) : 8;
  const std::vector<int> cpus = pinned ? UsableCpus() : std::vector<int>();
  if (pinned) threads = std::min(threads, cpus.size());
  if (threads < 2) {
    std::printf("skipped: one CPU\n");
    return 77;
  }
  bool ends = true;
  for (const bool warm : {false, true}) {
    for (const size_t size : {8, 16, 24, 32, 40, 48, 56}) {
      const Outcome outcome = Sharing({size, warm}, cpus, threads).Run();
      std::printf("%zu bytes, %s threads: %zu of %zu rounds shared a line, the last one was %zu\n",
                  size, warm ? "warm" : "new", outcome.shared_rounds, outcome.rounds,
                  outcome.last_shared);
      ends = ends && outcome.last_shared * kPairsInRound * size <= kBytesShared;
    }
  }
  return ends ? 0 : 1;
}
