// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Processes that fill 200 MiB and free all of it, in several orders, keep little of it resident
// although they do nothing more.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "stress/memory/figures.h"
#include "stress/threads/workload.h"

namespace tcmalloc::testing {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kTotal = 200 * kMiB;
constexpr size_t kMostKept = 32 * kMiB;
constexpr size_t kMixedSizes = 0;
constexpr size_t kSizes[] = {100, 4096, kMixedSizes, kMiB, 16 * kMiB};

enum class Order { kOfAllocation, kReversed, kRandom };
constexpr Order kOrders[] = {Order::kOfAllocation, Order::kReversed, Order::kRandom};

// All powers of two from 16 bytes to 256 KiB are as frequent.
size_t DrawSize(size_t size, Random* random) {
  return size != kMixedSizes ? size : size_t{16} << random->Below(15);
}

// Returns the number of blocks.
size_t Fill(size_t size, Random* random, void** blocks, size_t most) {
  size_t count = 0;
  for (size_t bytes = 0; bytes < kTotal && count < most; ++count) {
    const size_t drawn = DrawSize(size, random);
    blocks[count] = std::malloc(drawn);
    PROGRAM_CHECK(blocks[count] != nullptr);
    std::memset(blocks[count], 1, drawn);
    bytes += drawn;
  }
  return count;
}

void Sort(Order order, Random* random, void** blocks, size_t count) {
  if (order == Order::kReversed) std::reverse(blocks, blocks + count);
  if (order != Order::kRandom) return;
  for (size_t i = count; i > 1; --i) std::swap(blocks[i - 1], blocks[random->Below(i)]);
}

// The array of the addresses is a block, too, and the last one that goes.
size_t KeptAfter(size_t size, Order order) {
  Random random(size);
  const size_t most = kTotal / (size != kMixedSizes ? size : 2048) + 1;
  auto** blocks = static_cast<void**>(std::malloc(most * sizeof(void*)));
  PROGRAM_CHECK(blocks != nullptr);
  const size_t count = Fill(size, &random, blocks, most);
  Sort(order, &random, blocks, count);
  for (size_t i = 0; i < count; ++i) std::free(blocks[i]);
  std::free(blocks);
  return Figure("physical");
}

void CheckInChild(size_t size, Order order) {
  const pid_t child = fork();
  PROGRAM_CHECK(child >= 0);
  if (child == 0) {
    const size_t kept = KeptAfter(size, order);
    std::printf("blocks of %zu bytes, order %d: %zu MiB kept\n", size, static_cast<int>(order),
                kept / kMiB);
    std::fflush(stdout);
    _exit(kept <= kMostKept ? 0 : 1);
  }
  int status = 0;
  PROGRAM_CHECK(waitpid(child, &status, 0) == child);
  PROGRAM_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace tcmalloc::testing

int main() {
  using namespace tcmalloc::testing;
  for (const size_t size : kSizes) {
    for (const Order order : kOrders) CheckInChild(size, order);
  }
  return 0;
}
