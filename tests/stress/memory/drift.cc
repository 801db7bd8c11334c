// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A program that runs long in a steady state: what it holds stays the same, while sizes and
// lifetimes mix and threads hand blocks to each other. What the heap has of physical memory goes up
// and down, but on average the last third of the rounds must not have two percent more than the
// second. The argument is the number of rounds.
//
// Threads run in turns, so that counts alone decide what happens, however busy the machine is. For
// the same reason nothing may be released by time, and the front end is the program's to choose:
// the per-CPU one needs some percent less, and when the default goes over to it is up to the
// scheduler.

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "stress/memory/figures.h"
#include "stress/threads/workload.h"

namespace {

using tcmalloc::testing::Figure;
using tcmalloc::testing::Random;

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kLiveBytes = 96 * kMiB;
constexpr int kThreads = 4;

// Whose turn it is among kThreads.
class Turns {
 public:
  void Await(int thread) {
    std::unique_lock lock(mutex_);
    passed_.wait(lock, [&] { return turn_ == thread; });
  }
  void Pass() {
    const std::lock_guard lock(mutex_);
    turn_ = (turn_ + 1) % kThreads;
    passed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable passed_;
  int turn_ = 0;
};

struct Block {
  void* start = nullptr;
  size_t size = 0;
};

// A block takes physical memory by its pages; filling it would take most of the test's time.
void TouchPages(const Block& block) {
  constexpr size_t kPage = 4096;
  auto* bytes = static_cast<volatile char*>(block.start);
  for (size_t i = 0; i < block.size; i += kPage) bytes[i] = 1;
  bytes[block.size - 1] = 1;
}

// The blocks of one thread. Most die young: a new one replaces one of the last few. Now and then it
// replaces any other.
class Pool {
 public:
  explicit Pool(uint64_t seed) : random_(seed), blocks_(1) {}

  void Run(size_t operations) {
    for (size_t i = 0; i < operations; ++i) {
      Block block{nullptr, random_.Size()};
      block.start = malloc(block.size);
      PROGRAM_CHECK(block.start != nullptr);
      TouchPages(block);
      held_ += block.size;
      while (held_ > kLiveBytes / kThreads) FreeOne();
      blocks_.push_back(block);
    }
  }

 private:
  static constexpr size_t kYoung = 64;

  void FreeOne() {
    const size_t range = random_.Below(8) == 0 ? blocks_.size() : std::min(kYoung, blocks_.size());
    std::swap(blocks_[blocks_.size() - 1 - random_.Below(range)], blocks_.back());
    free(blocks_.back().start);
    held_ -= blocks_.back().size;
    blocks_.pop_back();
  }

  Random random_;
  std::vector<Block> blocks_;
  size_t held_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(atoi(argv[1]), 3) : 99;
  constexpr int kTurns = 40;
  constexpr size_t kOperations = 1000;
  Turns turns;
  std::vector<Pool> pools;
  for (uint64_t i = 0; i < kThreads; ++i) pools.emplace_back(i + 1);
  double sums[3] = {};  // of physical bytes, in each third
  for (int round = 0; round < 3 * (rounds / 3); ++round) {
    std::vector<std::thread> threads;
    // Each round other threads have the pools, and so free what others allocated.
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&turns, &pool = pools[static_cast<size_t>(i)], i] {
        for (int turn = 0; turn < kTurns; ++turn) {
          turns.Await(i);
          pool.Run(kOperations);
          turns.Pass();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    sums[round / (rounds / 3)] += static_cast<double>(Figure("physical"));
  }
  dprintf(STDERR_FILENO, "physical in the last third: %.4f of the second\n", sums[2] / sums[1]);
  PROGRAM_CHECK(sums[2] <= 1.02 * sums[1]);
  return 0;
}
