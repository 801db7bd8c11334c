// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// However many threads use blocks of however many sizes, their caches together hold no more than
// was set: the total, or the least share of each thread where that is more. Idle threads count, and
// threads that take turns, however fast, hold little more.

#include <gperftools/malloc_extension_c.h>

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "stress/threads/workload.h"

namespace {

using tcmalloc::testing::Random;

constexpr int kThreads = 50;
constexpr int kThreadsInTurn = 6;
// Objects that threads may hold beyond the total until others notice that they are idle.
constexpr size_t kUnnoticed = size_t{2} << 20;
// What a cache may hold beyond its share before others stop taking from that.
constexpr size_t kBeyondShare = size_t{512} << 10;
constexpr size_t kLeastShare = size_t{64} << 10;

size_t Property(const char* name) {
  size_t value = 0;
  PROGRAM_CHECK(MallocExtension_GetNumericProperty(name, &value) != 0);
  return value;
}

void SetProperty(const char* name, size_t value) {
  PROGRAM_CHECK(MallocExtension_SetNumericProperty(name, value) != 0);
}

void UseManySizes(uint64_t seed) {
  Random random(seed);
  std::vector<void*> blocks(400);
  for (int round = 0; round < 4; ++round) {
    for (void*& block : blocks) {
      block = malloc(1 + random.Below(size_t{1} << (3 + random.Below(16))));
      PROGRAM_CHECK(block != nullptr);
    }
    for (void* block : blocks) free(block);
  }
}

void FillOwnCache(size_t bytes) {
  constexpr size_t kSize = 64;
  std::vector<void*> blocks(bytes / kSize);
  for (void*& block : blocks) block = malloc(kSize);
  for (void* block : blocks) free(block);
}

size_t BytesInCaches() { return Property("tcmalloc.current_total_thread_cache_bytes"); }

// Allocates little, as a program does that goes on, until others have given up what is more than
// `most`. Hangs if they keep it.
void WorkUntilCachesHold(size_t most) {
  while (BytesInCaches() > most) {
    std::vector<void*> blocks(1000);
    for (void*& block : blocks) block = malloc(2000);
    for (void* block : blocks) free(block);
  }
}

// Lets threads fill their caches one after the other, each of which idles from then on, and checks
// what all of them hold in each turn.
template <typename Check>
void TakeTurns(size_t total, Check check) {
  std::barrier all(kThreadsInTurn);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreadsInTurn; ++i) {
    threads.emplace_back([&all, &check, i, total] {
      for (int turn = 0; turn < kThreadsInTurn; ++turn) {
        if (turn == i) {
          FillOwnCache(total);
          check();
        }
        all.arrive_and_wait();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void CheckBytesInCaches(size_t most) {
  const size_t held = BytesInCaches();
  if (held > most) printf("%zu bytes in caches, at most %zu allowed\n", held, most);
  PROGRAM_CHECK(held <= most);
}

// Returns the bytes in the caches when every thread has freed all that it had.
size_t BytesHeld() {
  std::barrier all(kThreads + 1);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&all, i] {
      UseManySizes(static_cast<uint64_t>(i) + 1);
      all.arrive_and_wait();
      all.arrive_and_wait();
    });
  }
  all.arrive_and_wait();
  const size_t bytes = BytesInCaches();
  all.arrive_and_wait();
  for (std::thread& thread : threads) thread.join();
  return bytes;
}

}  // namespace

int main() {
  const size_t whole = Property("tcmalloc.max_total_thread_cache_bytes");
  TakeTurns(whole, [=] { CheckBytesInCaches(whole + kUnnoticed + kThreadsInTurn * kBeyondShare); });
  TakeTurns(whole, [=] { WorkUntilCachesHold(whole + kUnnoticed); });
  // The first thread has a large share when the others come.
  UseManySizes(0);
  SetProperty("tcmalloc.min_per_thread_cache_bytes", kLeastShare);
  SetProperty("tcmalloc.max_total_thread_cache_bytes", 0);
  const size_t total = Property("tcmalloc.max_total_thread_cache_bytes");
  const size_t most = std::max(total, (kThreads + 1) * kLeastShare);
  for (int round = 0; round < 2; ++round) {
    const size_t held = BytesHeld();
    printf("round %d: %zu bytes in caches, at most %zu allowed\n", round, held, most);
    PROGRAM_CHECK(held > 0 && held <= most);
  }
  return 0;
}
