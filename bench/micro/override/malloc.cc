// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The malloc that the program runs with: the system's, or the one that LD_PRELOAD names.

#include <cstdlib>

#include "common/block_benchmarks.h"
#include "common/harness.h"

int main(int argc, char** argv) {
  tcmalloc::bench::Harness harness(argc, argv);
  tcmalloc::bench::RunBlocksBySize(
      harness, "malloc", [](size_t size) { return std::malloc(size); },
      [](void* block) { std::free(block); });
}
