// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A server in which each connection is served by a thread that replaces blocks at random, then
// hands all that it holds to a new thread and ends. Blocks outlive the thread that allocated them
// and are freed by others.
#include <latch>
#include <thread>
#include <vector>

#include "common/block.h"
#include "common/options.h"
#include "common/random.h"
#include "common/report.h"
#include "common/threads.h"

namespace tcmalloc::bench {
namespace {

struct Settings {
  uint64_t chains = 2;
  uint64_t blocks = 1000;
  uint64_t min_size = 8;
  uint64_t max_size = 1000;
  uint64_t generations = 40;
  uint64_t ops = 50000;
};

// Blocks that one thread hands to the next.
struct Chain {
  std::vector<Block> blocks;
  Random random;
  uint64_t generation = 0;
};

void Serve(const Settings& settings, Chain* chain) {
  for (uint64_t op = 0; op < settings.ops; ++op) {
    Block& block = chain->blocks[chain->random.Below(chain->blocks.size())];
    Release(&block);
    block = Allocate(chain->random.Between(settings.min_size, settings.max_size));
  }
}

void ServeAndHandOver(const Settings& settings, Chain* chain, std::latch* finished) {
  Serve(settings, chain);
  if (++chain->generation < settings.generations) {
    std::thread(ServeAndHandOver, std::cref(settings), chain, finished).detach();
    return;
  }
  for (Block& block : chain->blocks) Release(&block);
  finished->count_down();
}

int Main(int argc, char** argv) {
  Settings settings;
  Options options("larson", "Threads replace blocks at random and hand them to a new thread.");
  options.Number("threads", &settings.chains, 1, kMaxThreads, "threads that live at a time");
  options.Number("blocks", &settings.blocks, 1, 1 << 24, "live blocks for each thread");
  options.Number("min-size", &settings.min_size, 1, 1 << 30, "bytes in the smallest block");
  options.Number("max-size", &settings.max_size, 1, 1 << 30, "bytes in the largest block");
  options.Number("generations", &settings.generations, 1, 1 << 20, "threads one after another");
  options.Number("ops", &settings.ops, 1, UINT64_MAX, "blocks that each thread replaces");
  options.Parse(argc, argv);
  if (settings.min_size > settings.max_size) options.Reject("--min-size is above --max-size");

  std::vector<Chain> chains;
  for (uint64_t i = 0; i < settings.chains; ++i) {
    chains.push_back(Chain{std::vector<Block>(settings.blocks), Random(i)});
  }
  std::latch finished(static_cast<std::ptrdiff_t>(settings.chains));
  const Stopwatch stopwatch;
  for (Chain& chain : chains) {
    std::thread(ServeAndHandOver, std::cref(settings), &chain, &finished).detach();
  }
  finished.wait();
  const Elapsed elapsed = stopwatch.Read();
  Report(settings.chains * settings.generations * settings.ops, elapsed).Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
