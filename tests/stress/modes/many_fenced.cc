// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Has more live blocks than can have pages of their own, and starts threads beside them, whose
// stacks need mappings as well. Passes if no request is refused.

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr size_t kBlocks = 50'000;
constexpr size_t kThreads = 50;
constexpr size_t kBytes = 24;

void* AllocateOrFail(size_t i) {
  auto* block = static_cast<char*>(std::malloc(kBytes));
  if (block == nullptr) {
    std::fprintf(stderr, "block %zu was refused\n", i);
    std::exit(1);
  }
  block[kBytes - 1] = 1;
  return block;
}

}  // namespace

int main() {
  std::vector<void*> blocks(kBlocks);
  // Twice, because freed ones keep their pages for some time.
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < kBlocks; ++i) blocks[i] = AllocateOrFail(i);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([] { std::free(AllocateOrFail(kBlocks)); });
    }
    for (std::thread& thread : threads) thread.join();
    for (void* block : blocks) std::free(block);
  }
  return 0;
}
