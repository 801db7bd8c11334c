// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The allocator by its own functions, inlined, while malloc is another one.

#include "allocator/allocate.h"

#include "allocator/deallocate.h"
#include "common/block_benchmarks.h"
#include "common/harness.h"

int main(int argc, char** argv) {
  tcmalloc::bench::Harness harness(argc, argv);
  tcmalloc::bench::RunBlocksBySize(
      harness, "allocator", [](size_t size) { return tcmalloc::Allocate(size); },
      [](void* block) { tcmalloc::Deallocate(block); });
}
