// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Blocks grow by realloc, a step at a time, as buffers do in programs that append to them. Several
// grow in turn, so that none is alone at the end of the heap. Steps of a page or more are filled.
#include <algorithm>
#include <vector>

#include "common/block.h"
#include "common/options.h"
#include "common/report.h"
#include "common/threads.h"

namespace tcmalloc::bench {
namespace {

struct Settings {
  uint64_t threads = 1;
  uint64_t blocks = 1;
  uint64_t step = 16;
  uint64_t max_size = 16384;
  uint64_t ops = 10000000;
};

// Returns the number of steps that were taken, at least `ops`.
uint64_t Grow(const Settings& settings, uint64_t ops, std::vector<Block>* blocks) {
  uint64_t steps = 0;
  while (steps < ops) {
    for (Block& block : *blocks) block = Allocate(settings.step);
    for (size_t size = settings.step; size < settings.max_size;) {
      const size_t old_size = size;
      size = std::min(size + settings.step, settings.max_size);
      for (Block& block : *blocks) {
        block = Reallocate(block, size);
        if (settings.step >= kBenchPage) TouchPages(block, old_size);
      }
      steps += blocks->size();
    }
    for (Block& block : *blocks) Release(&block);
  }
  return steps;
}

int Main(int argc, char** argv) {
  Settings settings;
  Options options("realloc_steps", "Blocks grow by realloc, a step at a time.");
  options.Number("threads", &settings.threads, 1, kMaxThreads, "threads");
  options.Number("blocks", &settings.blocks, 1, 1 << 20, "blocks that grow in turn in each thread");
  options.Number("step", &settings.step, 1, 1 << 30, "bytes in a step");
  options.Number("max-size", &settings.max_size, 2, 1 << 30, "bytes at which a block is freed");
  options.Number("ops", &settings.ops, 1, UINT64_MAX >> 9, "steps in all threads together");
  options.Parse(argc, argv);
  if (settings.step >= settings.max_size) options.Reject("--step is not below --max-size");

  const uint64_t thread_ops = (settings.ops + settings.threads - 1) / settings.threads;
  std::vector<std::vector<Block>> blocks(settings.threads, std::vector<Block>(settings.blocks));
  std::vector<uint64_t> steps(settings.threads);
  const Elapsed elapsed = RunThreads(settings.threads, [&](size_t index) {
    steps[index] = Grow(settings, thread_ops, &blocks[index]);
  });
  uint64_t all_steps = 0;
  for (const uint64_t taken : steps) all_steps += taken;
  Report(all_steps, elapsed).Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
