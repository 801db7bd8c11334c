// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The release rate changes, to 0 and back, while other threads allocate: none of them may act on
// two readings of it that differ. A short half-life makes them act on it all the time.

#include <gperftools/malloc_extension_c.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include "stress/threads/workload.h"

namespace {

using tcmalloc::testing::Random;

constexpr int kChanges = 500'000;
constexpr int kThreads = 2;

}  // namespace

int main() {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&stop, i] {
      Random random(i + 1);
      while (!stop) free(malloc(300'000 + random.Below(100'000)));
    });
  }
  for (int i = 0; i < kChanges; ++i) {
    MallocExtension_SetMemoryReleaseRate(10);
    // So that the threads look at the rate between two changes.
    for (int spin = 0; spin < 200; ++spin) asm volatile("");
    MallocExtension_SetMemoryReleaseRate(0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  PROGRAM_CHECK(MallocExtension_GetMemoryReleaseRate() == 0);
  return 0;
}
