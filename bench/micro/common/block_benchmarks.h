// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Benchmarks that run on any allocator.

#ifndef TCMALLOC_BENCH_MICRO_COMMON_BLOCK_BENCHMARKS_H_
#define TCMALLOC_BENCH_MICRO_COMMON_BLOCK_BENCHMARKS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/harness.h"

namespace tcmalloc::bench {

// An operation is `allocate(size)` and `free(block)`: the two alone, and a hundred of each in turn.
template <typename Allocate, typename Free>
void RunBlocksBySize(Harness& harness, const std::string& prefix, Allocate allocate, Free free) {
  constexpr size_t kBatch = 100;
  for (size_t size = 8; size <= size_t{1} << 20; size *= 2) {
    const std::string suffix = "/size:" + std::to_string(size);
    harness.Run(prefix + "/pair" + suffix, [&](uint64_t n) {
      for (uint64_t i = 0; i < n; ++i) {
        void* block = allocate(size);
        Use(block);
        free(block);
      }
    });
    harness.Run(prefix + "/batch_of_100" + suffix, [&](uint64_t n) {
      void* blocks[kBatch];
      for (uint64_t i = 0; i < n; i += kBatch) {
        for (void*& block : blocks) block = allocate(size);
        Use(blocks);
        for (void* block : blocks) free(block);
      }
    });
    harness.RunThreads(prefix + "/pair/threads:2" + suffix, 2, [&](int, uint64_t n) {
      for (uint64_t i = 0; i < n; ++i) {
        void* block = allocate(size);
        Use(block);
        free(block);
      }
    });
  }
}

}  // namespace tcmalloc::bench

#endif  // TCMALLOC_BENCH_MICRO_COMMON_BLOCK_BENCHMARKS_H_
