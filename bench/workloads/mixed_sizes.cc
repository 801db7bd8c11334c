// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Threads that run through a table of sizes, small ones more often, and keep blocks in a ring:
// those of a burst are freed newest first, oldest first, or not until the ring comes round again.
#include <vector>

#include "common/block.h"
#include "common/options.h"
#include "common/random.h"
#include "common/report.h"
#include "common/threads.h"

namespace tcmalloc::bench {
namespace {

struct SizeShare {
  size_t size;
  uint64_t count;
};

// How many blocks of which size a burst holds: counts fall as sizes grow.
constexpr SizeShare kBurst[] = {{8, 24},   {16, 32},  {24, 24},  {40, 20},  {64, 16},
                                {96, 12},  {144, 8},  {240, 6},  {400, 4},  {640, 3},
                                {1000, 3}, {1600, 2}, {2500, 2}, {4000, 1}, {10000, 1}};

enum class Fate { kNewestFirst, kOldestFirst, kKept };

constexpr size_t BlocksInBurst() {
  size_t count = 0;
  for (const SizeShare& share : kBurst) count += share.count;
  return count;
}

void AllocateBurst(Block* blocks, Random* random) {
  for (const SizeShare& share : kBurst) {
    for (uint64_t i = 0; i < share.count; ++i) {
      *blocks++ = Allocate(random->Between(share.size / 2 + 1, share.size));
    }
  }
}

void ReleaseBurst(Block* blocks, Fate fate) {
  constexpr size_t kCount = BlocksInBurst();
  if (fate == Fate::kNewestFirst) {
    for (size_t i = kCount; i > 0; --i) Release(&blocks[i - 1]);
  } else {
    for (size_t i = 0; i < kCount; ++i) Release(&blocks[i]);
  }
}

void Run(uint64_t bursts, std::vector<Block>* ring, Random random) {
  const size_t slots = ring->size() / BlocksInBurst();
  for (uint64_t burst = 0; burst < bursts; ++burst) {
    Block* blocks = &(*ring)[burst % slots * BlocksInBurst()];
    ReleaseBurst(blocks, Fate::kOldestFirst);
    AllocateBurst(blocks, &random);
    const auto fate = static_cast<Fate>(random.Below(3));
    if (fate != Fate::kKept) ReleaseBurst(blocks, fate);
  }
  for (Block& block : *ring) Release(&block);
}

int Main(int argc, char** argv) {
  uint64_t threads = 1;
  uint64_t bursts = 100000;
  uint64_t slots = 32;
  Options options("mixed_sizes", "Each thread allocates bursts of mixed sizes and lifetimes.");
  options.Number("threads", &threads, 1, kMaxThreads, "threads");
  options.Number("bursts", &bursts, 1, UINT64_MAX >> 8, "bursts in all threads together");
  options.Number("slots", &slots, 1, 1 << 16, "bursts that may live at a time in each thread");
  options.Parse(argc, argv);

  const uint64_t thread_bursts = (bursts + threads - 1) / threads;
  std::vector<std::vector<Block>> rings(threads, std::vector<Block>(slots * BlocksInBurst()));
  const Elapsed elapsed =
      RunThreads(threads, [&](size_t index) { Run(thread_bursts, &rings[index], Random(index)); });
  Report(thread_bursts * threads * BlocksInBurst(), elapsed).Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
