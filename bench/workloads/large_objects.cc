// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Large buffers that come and go, a part of which grow by realloc as they are filled.
#include <algorithm>
#include <cstring>
#include <vector>

#include "common/block.h"
#include "common/options.h"
#include "common/random.h"
#include "common/report.h"
#include "common/threads.h"

namespace tcmalloc::bench {
namespace {

constexpr uint64_t kGrowPercent = 30;

struct Settings {
  uint64_t threads = 1;
  uint64_t min_size = uint64_t{64} << 10;
  uint64_t max_size = uint64_t{8} << 20;
  uint64_t blocks = 16;
  uint64_t ops = 24000;
};

// Grows a buffer by halves, as a growing array does. Returns the number of reallocations.
uint64_t Grow(Block* block, size_t size) {
  uint64_t steps = 0;
  while (block->size < size) {
    const size_t old_size = block->size;
    *block = Reallocate(*block, std::min(size, old_size + old_size / 2 + 1));
    TouchPages(*block, old_size);
    ++steps;
  }
  return steps;
}

uint64_t Run(const Settings& settings, uint64_t ops, std::vector<Block>* blocks, Random random) {
  uint64_t done = 0;
  while (done < ops) {
    Block& block = (*blocks)[random.Below(blocks->size())];
    // Skewed to the smaller buffers, so that most are not of the largest size.
    const size_t size =
        settings.min_size + random.SkewedUpTo(settings.max_size - settings.min_size + 1) - 1;
    if (block.address != nullptr && block.size < size && random.Percent(kGrowPercent)) {
      done += Grow(&block, size);
      continue;
    }
    Release(&block);
    block = Allocate(size);
    TouchPages(block, 0);
    ++done;
  }
  for (Block& block : *blocks) Release(&block);
  return done;
}

int Main(int argc, char** argv) {
  Settings settings;
  Options options("large_objects", "Large buffers come, grow by realloc and go.");
  options.Number("threads", &settings.threads, 1, kMaxThreads, "threads");
  options.Number("min-size", &settings.min_size, 1, 1 << 30, "bytes in the smallest buffer");
  options.Number("max-size", &settings.max_size, 1, 1 << 30, "bytes in the largest buffer");
  options.Number("blocks", &settings.blocks, 1, 1 << 16, "live buffers in each thread");
  options.Number("ops", &settings.ops, 1, UINT64_MAX, "allocations in all threads together");
  options.Parse(argc, argv);
  if (settings.min_size > settings.max_size) options.Reject("--min-size is above --max-size");

  const uint64_t thread_ops = (settings.ops + settings.threads - 1) / settings.threads;
  std::vector<std::vector<Block>> blocks(settings.threads, std::vector<Block>(settings.blocks));
  std::vector<uint64_t> done(settings.threads, 0);
  const Elapsed elapsed = RunThreads(settings.threads, [&](size_t index) {
    done[index] = Run(settings, thread_ops, &blocks[index], Random(index));
  });
  uint64_t total = 0;
  for (const uint64_t count : done) total += count;
  Report(total, elapsed).Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
