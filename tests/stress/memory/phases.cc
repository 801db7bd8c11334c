// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What the heap holds for a program that fills as much memory in each of its phases, with blocks of
// one size, and frees it before the next: a share more than lives at a time, not the sum of the
// phases. The arguments are the order of frees, forward or random, the most that may be held, in
// percent of what lives, and "one-cpu" if the program shall not move: paranoid builds divide the
// lists of each class among CPUs at once, and what a thread left on one it does not find on
// another.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include "conformance/malloc_api.h"
#include "fakes/one_cpu.h"
#include "figures.h"

namespace tcmalloc::testing {
namespace {

constexpr size_t kBytes = size_t{8} << 20;
constexpr size_t kSizes[] = {48, 200, 1000, 5000, 32, 100, 3000, 500};

// Returns the bytes that the heap holds for blocks of `size` bytes in all.
size_t FillAndFree(size_t size, bool at_random, std::vector<void*>* blocks) {
  blocks->resize(kBytes / size);
  for (void*& block : *blocks) {
    block = Api().malloc(size);
    if (block == nullptr) std::exit(1);
    std::memset(block, 1, size);
  }
  const size_t held = Figure("physical");
  if (at_random) std::shuffle(blocks->begin(), blocks->end(), std::mt19937(7));
  for (void* block : *blocks) Api().free(block);
  return held;
}

int Run(bool at_random, size_t most_percent) {
  std::vector<void*> blocks;
  blocks.reserve(kBytes / *std::min_element(std::begin(kSizes), std::end(kSizes)));
  const size_t most = kBytes / 100 * most_percent + blocks.capacity() * sizeof(void*);
  for (const size_t size : kSizes) {
    const size_t held = FillAndFree(size, at_random, &blocks);
    if (held <= most) continue;
    std::fprintf(stderr, "blocks of %zu bytes: the heap holds %zu, more than %zu\n", size, held,
                 most);
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  const bool stays = argc == 4 && std::string_view(argv[3]) == "one-cpu";
  if (argc != (stays ? 4 : 3)) return 2;
  if (stays && !tcmalloc::testing::StayOnThisCpu()) return 2;
  return tcmalloc::testing::Run(std::string_view(argv[1]) == "random",
                                strtoul(argv[2], nullptr, 10));
}
