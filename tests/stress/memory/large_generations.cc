// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// How much the heap holds for large blocks of one size after another: blocks that grow by a little
// each time, and generations of blocks of other sizes. The heap may hold a tenth more than lived at
// most.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "conformance/malloc_api.h"

namespace tcmalloc::testing {
namespace {

using Size = std::size_t;

constexpr Size kMiB = Size{1} << 20;

// Returns the bytes of the heap that may be resident.
Size HeapSize() {
  static int (*const property)(const char*, Size*) = Symbol("MallocExtension_GetNumericProperty");
  Size bytes = 0;
  if (property == nullptr || property("generic.heap_size", &bytes) == 0) {
    std::fprintf(stderr, "the heap's size is unknown\n");
    std::exit(1);
  }
  return bytes;
}

void RequireHeld(Size lived, const char* what) {
  const Size held = HeapSize();
  if (held <= lived + lived / 10) return;
  std::fprintf(stderr, "%s: the heap holds %zu bytes for %zu\n", what, held, lived);
  std::exit(1);
}

void GrowingBlocks() {
  constexpr Size kFirst = 100 * kMiB;
  constexpr Size kLast = 500 * kMiB;
  for (int pass = 0; pass < 3; ++pass) {
    for (Size size = kFirst; size < kLast; size += 300'000) {
      void* const block = Api().malloc(size);
      if (block == nullptr) std::exit(1);
      Api().free(block);
      RequireHeld(pass == 0 ? size : kLast, "growing blocks");
    }
  }
}

struct Sizes {
  Size least;
  Size most;
};

void TwoGenerations(Sizes first, Sizes second) {
  constexpr Size kTotal = 500 * kMiB;
  std::mt19937_64 random(7);
  for (const Sizes sizes : {first, second}) {
    std::vector<void*> blocks;
    for (Size live = 0; true;) {
      const Size size = sizes.least + random() % (sizes.most - sizes.least + 1);
      live += size;
      if (live > kTotal) break;
      blocks.push_back(Api().malloc(size));
      if (blocks.back() == nullptr) std::exit(1);
      RequireHeld(kTotal, "a generation of blocks");
    }
    std::shuffle(blocks.begin(), blocks.end(), random);
    for (void* block : blocks) Api().free(block);
  }
}

// Each in a process of its own, whose heap is empty at first.
int Run(int which) {
  switch (which) {
    case 0:
      GrowingBlocks();
      break;
    case 1:
      TwoGenerations({kMiB, 4 * kMiB}, {2 * kMiB, 20 * kMiB});
      break;
    case 2:
      TwoGenerations({300'000, 4 * kMiB}, {4 * kMiB, 40 * kMiB});
      break;
    case 3:
      TwoGenerations({2'200'000, 2'200'000}, {14 * kMiB, 14 * kMiB});
      break;
    case 4:
      TwoGenerations({kMiB, kMiB}, {490 * kMiB, 490 * kMiB});
      break;
    default:
      return 2;
  }
  return 0;
}

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) { return tcmalloc::testing::Run(argc == 2 ? atoi(argv[1]) : -1); }
