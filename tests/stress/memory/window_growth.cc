// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Threads allocate and free small blocks of each other while the heap outgrows its address window
// again and again, because large blocks that nobody touches push it upwards.

#include <barrier>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kThreads = 4;
constexpr std::size_t kBlocks = 10'000;
constexpr std::size_t kRounds = 24;
constexpr std::size_t kLargeBlocks = 4;  // in each round
constexpr std::size_t kLargeBytes = std::size_t{1} << 30;
constexpr int kSkipped = 77;

struct Block {
  unsigned char* start = nullptr;
  std::size_t bytes = 0;
  unsigned char fill = 0;
};

std::vector<Block> blocks[kThreads];

void Fail(const char* what) {
  std::fprintf(stderr, "failed: %s\n", what);
  std::_Exit(1);
}

void Fill(std::vector<Block>& mine, std::minstd_rand& random) {
  for (Block& block : mine) {
    block.bytes = random() % 2000 + 1;
    block.fill = static_cast<unsigned char>(random());
    block.start = static_cast<unsigned char*>(std::malloc(block.bytes));
    if (block.start == nullptr) Fail("malloc");
    std::memset(block.start, block.fill, block.bytes);
  }
}

void FreeAll(std::vector<Block>& others) {
  for (Block& block : others) {
    if (block.start[0] != block.fill || block.start[block.bytes - 1] != block.fill) {
      Fail("contents of a block");
    }
    std::free(block.start);
  }
}

// False where the kernel does not give so many addresses.
bool PushUpwards(std::vector<void*>& large) {
  for (std::size_t i = 0; i < kLargeBlocks; ++i) {
    void* const block = std::malloc(kLargeBytes);
    if (block == nullptr) return false;
    large.push_back(block);
  }
  return true;
}

void Run(std::size_t id, std::barrier<>& phase) {
  std::minstd_rand random(static_cast<unsigned>(id + 1));
  std::vector<void*> large;
  for (std::size_t round = 0; round < kRounds; ++round) {
    Fill(blocks[id], random);
    phase.arrive_and_wait();
    FreeAll(blocks[(id + round) % kThreads]);
    phase.arrive_and_wait();
    // The others go on meanwhile.
    if (id == 0 && !PushUpwards(large)) {
      std::puts("skipped: no addresses");
      std::_Exit(kSkipped);
    }
  }
  for (void* block : large) std::free(block);
}

}  // namespace

int main() {
  std::barrier<> phase(kThreads);
  std::vector<std::thread> threads;
  for (std::vector<Block>& each : blocks) each.resize(kBlocks);
  for (std::size_t id = 0; id < kThreads; ++id)
    threads.emplace_back([=, &phase] { Run(id, phase); });
  for (std::thread& thread : threads) thread.join();
}
