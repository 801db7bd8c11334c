// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Many threads that live briefly: each allocates some blocks, frees most of them, and leaves a few
// for the thread that joins it.
#include <thread>
#include <vector>

#include "common/block.h"
#include "common/options.h"
#include "common/process_memory.h"
#include "common/random.h"
#include "common/report.h"
#include "common/threads.h"

namespace tcmalloc::bench {
namespace {

constexpr uint64_t kLeftPercent = 5;

void Live(std::vector<Block>* blocks, uint64_t max_size, Random random) {
  for (Block& block : *blocks) block = Allocate(random.SkewedUpTo(max_size));
  for (Block& block : *blocks) {
    if (!random.Percent(kLeftPercent)) Release(&block);
  }
}

int Main(int argc, char** argv) {
  uint64_t threads = 2;
  uint64_t lives = 15000;
  uint64_t blocks = 200;
  uint64_t max_size = 4096;
  Options options("thread_churn", "Short-lived threads that each allocate some blocks.");
  options.Number("threads", &threads, 1, kMaxThreads, "threads that live at a time");
  options.Number("lives", &lives, 1, UINT64_MAX, "threads in all");
  options.Number("blocks", &blocks, 1, 1 << 24, "blocks that each thread allocates");
  options.Number("max-size", &max_size, 1, 1 << 30, "bytes in the largest block, most are smaller");
  options.Parse(argc, argv);

  std::vector<std::vector<Block>> thread_blocks(threads, std::vector<Block>(blocks));
  std::vector<std::thread> running(threads);
  const uint64_t rounds = (lives + threads - 1) / threads;
  const Stopwatch stopwatch;
  for (uint64_t round = 0; round < rounds; ++round) {
    for (uint64_t i = 0; i < threads; ++i) {
      running[i] = std::thread(Live, &thread_blocks[i], max_size, Random(round * threads + i));
    }
    for (uint64_t i = 0; i < threads; ++i) {
      running[i].join();
      for (Block& block : thread_blocks[i]) Release(&block);
    }
  }
  const Elapsed elapsed = stopwatch.Read();
  Report(rounds * threads, elapsed).Add("resident_after_bytes", ResidentBytes()).Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
