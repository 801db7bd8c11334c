// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Many threads that are alive at once: each allocates a little, or works through many blocks and
// frees them all, and then waits. What the threads leave resident is what their caches cost.
#include <barrier>
#include <cstddef>
#include <thread>
#include <vector>

#include "common/block.h"
#include "common/options.h"
#include "common/process_memory.h"
#include "common/random.h"
#include "common/report.h"

namespace tcmalloc::bench {
namespace {

constexpr size_t kBlocksAtOnce = 32;

// Allocates `bytes` in all, a few blocks at a time.
void Churn(uint64_t bytes, uint64_t max_size, Random random) {
  for (uint64_t done = 0; done < bytes;) {
    Block blocks[kBlocksAtOnce];
    for (Block& block : blocks) {
      const size_t size = random.SkewedUpTo(max_size);
      block = Allocate(size);
      done += size;
    }
    for (Block& block : blocks) Release(&block);
  }
}

int Main(int argc, char** argv) {
  uint64_t threads = 1000;
  uint64_t bytes = 0;
  uint64_t max_size = 8192;
  Options options("many_threads", "Threads that have allocated and wait.");
  options.Number("threads", &threads, 1, 100000, "threads alive at once");
  options.Number("bytes", &bytes, 0, UINT64_MAX, "that each allocates and frees; 0: one block");
  options.Number("max-size", &max_size, 1, 1 << 30, "bytes in the largest block, most are smaller");
  options.Parse(argc, argv);

  std::vector<std::thread> running;
  running.reserve(threads);
  std::barrier<> worked(static_cast<std::ptrdiff_t>(threads + 1));
  std::barrier<> measured(static_cast<std::ptrdiff_t>(threads + 1));
  const Stopwatch stopwatch;
  for (uint64_t i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      Block block = Allocate(64);
      Churn(bytes, max_size, Random(i));
      worked.arrive_and_wait();
      measured.arrive_and_wait();
      Release(&block);
    });
  }
  worked.arrive_and_wait();
  const Elapsed elapsed = stopwatch.Read();
  const uint64_t alive = ResidentBytes();
  measured.arrive_and_wait();
  for (std::thread& thread : running) thread.join();
  Report(threads, elapsed)
      .Add("alive_bytes", alive)
      .Add("resident_after_bytes", ResidentBytes())
      .Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
