// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Threads that visit slots at random: an empty one gets a block of random size, a block is resized
// or freed. Sizes are uniform, so that most size classes are in use, or mostly small.
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
  uint64_t slots = 1000;
  uint64_t min_size = 1;
  uint64_t max_size = 1024;
  uint64_t realloc_percent = 0;
  uint64_t ops = 10000000;
  std::string sizes = "uniform";
};

size_t DrawSize(const Settings& settings, Random* random) {
  if (settings.sizes == "uniform") return random->Between(settings.min_size, settings.max_size);
  const size_t size = random->SkewedUpTo(settings.max_size);
  return size < settings.min_size ? settings.min_size : size;
}

void Run(const Settings& settings, uint64_t ops, std::vector<Block>* slots, Random random) {
  for (uint64_t op = 0; op < ops; ++op) {
    Block& block = (*slots)[random.Below(slots->size())];
    if (block.address == nullptr) {
      block = Allocate(DrawSize(settings, &random));
    } else if (random.Percent(settings.realloc_percent)) {
      block = Reallocate(block, DrawSize(settings, &random));
    } else {
      Release(&block);
    }
  }
  for (Block& block : *slots) Release(&block);
}

int Main(int argc, char** argv) {
  Settings settings;
  Options options("random_blocks", "Threads fill, resize and empty slots at random.");
  options.Number("threads", &settings.threads, 1, kMaxThreads, "threads");
  options.Number("slots", &settings.slots, 1, 1 << 24, "slots of each thread");
  options.Number("min-size", &settings.min_size, 1, 1 << 30, "bytes in the smallest block");
  options.Number("max-size", &settings.max_size, 1, 1 << 30, "bytes in the largest block");
  options.Number("realloc-percent", &settings.realloc_percent, 0, 100,
                 "visits to a block that resize it; the others free it");
  options.Number("ops", &settings.ops, 1, UINT64_MAX >> 9, "visits by all threads together");
  options.Choice("sizes", &settings.sizes, {"uniform", "skewed"}, "how sizes are distributed");
  options.Parse(argc, argv);
  if (settings.min_size > settings.max_size) options.Reject("--min-size is above --max-size");

  const uint64_t thread_ops = (settings.ops + settings.threads - 1) / settings.threads;
  std::vector<std::vector<Block>> slots(settings.threads, std::vector<Block>(settings.slots));
  const Elapsed elapsed = RunThreads(settings.threads, [&](size_t index) {
    Run(settings, thread_ops, &slots[index], Random(index));
  });
  Report(thread_ops * settings.threads, elapsed).Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
