// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Threads fill a limited address space with small blocks of many sizes, free them and end. What
// they leave waiting must not keep the memory from others. The environment sets the mode.

#include <barrier>
#include <cstddef>
#include <cstdlib>
#include <thread>
#include <vector>

#include "integration/limits/address_limit.h"
#include "integration/limits/address_space_in_use.h"
#include "integration/limits/kept_blocks.h"
#include "integration/limits/require.h"

namespace tcmalloc::testing {
namespace {

constexpr int kThreads = 4;
constexpr Size kRoom = 16 * kMiB;  // for all blocks
constexpr Size kOther = 64 * kKiB;

// Returns the bytes that all threads had together.
Size FillInThreads() {
  std::barrier all(kThreads + 1);
  std::vector<KeptBlocks> blocks(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      all.arrive_and_wait();
      for (Size i = 0; blocks[t].Grow(16 + (i * 7919) % 3000); ++i) {
      }
      all.arrive_and_wait();
      blocks[t].FreeAll();
    });
  }
  LimitAddressSpace(AddressSpaceInUse() + kRoom);
  all.arrive_and_wait();
  all.arrive_and_wait();
  Size bytes = 0;
  for (int t = 0; t < kThreads; ++t) {
    threads[t].join();
    bytes += blocks[t].bytes();
  }
  return bytes;
}

void Run() {
  const Size filled = FillInThreads();
  Require(filled >= kRoom / 2, "bytes of the threads", filled, kRoom / 2);
  KeptBlocks others;
  while (others.Grow(kOther)) {
  }
  Require(others.bytes() >= filled / 5 * 3, "bytes after the threads", others.bytes(), filled);
  others.FreeAll();
}

}  // namespace
}  // namespace tcmalloc::testing

int main() {
  tcmalloc::testing::Run();
  return 0;
}
