// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A program that runs long in a steady state: what it holds stays the same, while sizes and
// lifetimes mix and threads hand blocks to each other. Its resident memory goes up and down, but on
// average the last third of the time must not have two percent more than the second. The argument
// is the number of rounds; sixty take about a second, so 216000 are an hour.

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "stress/threads/workload.h"

namespace {

using tcmalloc::testing::Random;

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kLiveBytes = 96 * kMiB;
constexpr int kThreads = 4;

size_t ResidentBytes() {
  FILE* file = fopen("/proc/self/statm", "r");
  PROGRAM_CHECK(file != nullptr);
  size_t total = 0;
  size_t resident = 0;
  PROGRAM_CHECK(fscanf(file, "%zu %zu", &total, &resident) == 2);
  fclose(file);
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

struct Block {
  void* start = nullptr;
  size_t size = 0;
};

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
      memset(block.start, 1, block.size);
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
  constexpr size_t kOperations = 40'000;
  std::vector<Pool> pools;
  for (uint64_t i = 0; i < kThreads; ++i) pools.emplace_back(i + 1);
  double sums[3] = {};  // of resident bytes, in each third
  for (int round = 0; round < 3 * (rounds / 3); ++round) {
    std::vector<std::thread> threads;
    // Each round other threads have the pools, and so free what others allocated.
    for (Pool& pool : pools) threads.emplace_back([&pool] { pool.Run(kOperations); });
    for (std::thread& thread : threads) thread.join();
    sums[round / (rounds / 3)] += static_cast<double>(ResidentBytes());
  }
  dprintf(STDERR_FILENO, "resident in the last third: %.3f of the second\n", sums[2] / sums[1]);
  PROGRAM_CHECK(sums[2] <= 1.02 * sums[1]);
  return 0;
}
