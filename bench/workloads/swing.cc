// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Each thread fills an array with blocks of one size and frees most of them at random, again and
// again, as programs do that fill hash tables and empty them. Nothing is handed to another thread:
// whatever threads wait for, or find in each other's cache lines, is the allocator's.
#include <utility>
#include <vector>

#include "common/block.h"
#include "common/options.h"
#include "common/random.h"
#include "common/report.h"
#include "common/threads.h"

namespace tcmalloc::bench {
namespace {

struct Settings {
  uint64_t threads = 1;
  uint64_t size = 64;
  uint64_t count = 20000;
  uint64_t free_percent = 75;
  uint64_t rounds = 200;

  // The blocks of a thread that a round frees, and the next one allocates again.
  uint64_t Freed() const { return count * free_percent / 100; }
  // The blocks that a thread allocates in all rounds.
  uint64_t Allocated() const { return count + (rounds - 1) * Freed(); }
};

void Swing(const Settings& settings, size_t index) {
  Random random(index);
  std::vector<Block> blocks;
  blocks.reserve(settings.count);
  const size_t least = settings.count - settings.Freed();
  for (uint64_t round = 0; round < settings.rounds; ++round) {
    while (blocks.size() < settings.count) blocks.push_back(Allocate(settings.size));
    while (blocks.size() > least) {
      std::swap(blocks[random.Below(blocks.size())], blocks.back());
      Release(&blocks.back());
      blocks.pop_back();
    }
  }
  for (Block& block : blocks) Release(&block);
}

int Main(int argc, char** argv) {
  Settings settings;
  Options options("swing", "Threads fill arrays of blocks and free most of them at random.");
  options.Number("threads", &settings.threads, 1, kMaxThreads, "threads");
  options.Number("size", &settings.size, 1, 1 << 20, "bytes in a block");
  options.Number("count", &settings.count, 1, UINT32_MAX, "blocks in the array of each thread");
  options.Number("free-percent", &settings.free_percent, 1, 100, "of them that are freed");
  options.Number("rounds", &settings.rounds, 1, UINT64_MAX, "how often each thread does so");
  options.Parse(argc, argv);

  const Elapsed elapsed =
      RunThreads(settings.threads, [&](size_t index) { Swing(settings, index); });
  Report(settings.threads * settings.Allocated(), elapsed).Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
