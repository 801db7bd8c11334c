// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// malloc and free of one block, over and over: what a pair costs when everything hits.
#include "common/block.h"
#include "common/options.h"
#include "common/report.h"
#include "common/threads.h"

namespace tcmalloc::bench {
namespace {

int Main(int argc, char** argv) {
  uint64_t threads = 1;
  uint64_t size = 64;
  uint64_t ops = 50000000;
  Options options("tight", "Each thread allocates and frees one block in a loop.");
  options.Number("threads", &threads, 1, kMaxThreads, "threads");
  options.Number("size", &size, 1, 1 << 30, "bytes in the block");
  options.Number("ops", &ops, 1, UINT64_MAX, "pairs in all threads together");
  options.Parse(argc, argv);

  const uint64_t thread_ops = (ops + threads - 1) / threads;
  const Elapsed elapsed = RunThreads(threads, [&](size_t) {
    for (uint64_t op = 0; op < thread_ops; ++op) {
      Block block = Allocate(size);
      Release(&block);
    }
  });
  Report(thread_ops * threads, elapsed).Print();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) { return tcmalloc::bench::Main(argc, argv); }
