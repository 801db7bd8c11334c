// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Starts many threads one after the other, more than can have a pool at a time: some that free one
// block of another thread, and some that allocate and free. In each of these a freed block must
// wait for others before it comes back, as it does where a thread has a pool.

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

constexpr int kThreads = 30;
constexpr int kBlocks = 3000;
constexpr std::size_t kSize = 32;
// The blocks that wait at least; docs/subsystems/hardened.md.
constexpr int kWaiting = 16;

// Returns how many of a thread's blocks came back too soon.
int CountEarlyBlocks() {
  void* last[kWaiting] = {};
  int early = 0;
  for (int i = 0; i < kBlocks; ++i) {
    void* const block = std::malloc(kSize);
    if (block == nullptr) std::abort();
    for (void* const other : last) early += block == other ? 1 : 0;
    last[i % kWaiting] = block;
    std::free(block);
  }
  return early;
}

}  // namespace

int main() {
  for (int t = 0; t < kThreads; ++t) std::thread(std::free, std::malloc(kSize)).join();
  int failed = 0;
  for (int t = 0; t < kThreads; ++t) {
    int early = 0;
    std::thread([&] { early = CountEarlyBlocks(); }).join();
    if (early == 0) continue;
    std::printf("thread %d: %d of %d blocks came back too soon\n", t, early, kBlocks);
    failed = 1;
  }
  return failed;
}
