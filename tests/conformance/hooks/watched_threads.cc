// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Hooks set and removed while other threads allocate: once a hook was added, every block of every
// thread is reported, exactly; and nothing goes wrong in between.

#include <gperftools/malloc_hook.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

#include "stress/threads/workload.h"

namespace tcmalloc::testing {
namespace {

constexpr int kThreads = 3;
constexpr int kRounds = 60;
constexpr uint64_t kCounted = 200;  // pairs of a thread in each round
constexpr size_t kSizes[] = {16, 100, 2000, 30000};

// Calls that a thread heard of itself.
thread_local uint64_t news = 0;
thread_local uint64_t deletes = 0;

void HearNew(const void*, size_t) { ++news; }
void HearDelete(const void*) { ++deletes; }

// Even while threads only keep busy, odd while they count. Release publishes that hooks are set.
std::atomic<int> round_number{0};
std::atomic<int> arrived{0};
std::atomic<bool> stop{false};

void AllocatePair(size_t i) {
  auto* block = static_cast<unsigned char*>(malloc(kSizes[i % std::size(kSizes)]));
  PROGRAM_CHECK(block != nullptr);
  block[0] = static_cast<unsigned char>(i);
  PROGRAM_CHECK(block[0] == static_cast<unsigned char>(i));
  free(block);
}

// Allocates until the number of the round is `number`.
void KeepBusyUntil(int number) {
  for (size_t i = 0; round_number.load(std::memory_order_acquire) != number; ++i) AllocatePair(i);
}

void* CountInRounds(void*) {
  for (int round = 0; round < kRounds; ++round) {
    KeepBusyUntil(2 * round + 1);
    const uint64_t news_before = news;
    const uint64_t deletes_before = deletes;
    for (uint64_t i = 0; i < kCounted; ++i) AllocatePair(i);
    PROGRAM_CHECK(news - news_before == kCounted);
    PROGRAM_CHECK(deletes - deletes_before == kCounted);
    ++arrived;
    KeepBusyUntil(2 * round + 2);
    // Both hooks are gone.
    const uint64_t news_after = news;
    const uint64_t deletes_after = deletes;
    for (uint64_t i = 0; i < kCounted; ++i) AllocatePair(i);
    PROGRAM_CHECK(news == news_after && deletes == deletes_after);
    ++arrived;
  }
  return nullptr;
}

void WaitForAll() {
  while (arrived.load() != kThreads) sched_yield();
  arrived = 0;
}

void CheckExactCounts() {
  pthread_t threads[kThreads];
  for (pthread_t& thread : threads) {
    PROGRAM_CHECK(pthread_create(&thread, nullptr, CountInRounds, nullptr) == 0);
  }
  for (int round = 0; round < kRounds; ++round) {
    PROGRAM_CHECK(MallocHook::AddNewHook(HearNew));
    PROGRAM_CHECK(MallocHook::AddDeleteHook(HearDelete));
    round_number.store(2 * round + 1, std::memory_order_release);
    WaitForAll();
    PROGRAM_CHECK(MallocHook::RemoveNewHook(HearNew));
    PROGRAM_CHECK(MallocHook::RemoveDeleteHook(HearDelete));
    round_number.store(2 * round + 2, std::memory_order_release);
    WaitForAll();
  }
  for (pthread_t thread : threads) PROGRAM_CHECK(pthread_join(thread, nullptr) == 0);
}

// A thread that starts while hooks are set is watched from its first block on.
void CheckNewThreads() {
  PROGRAM_CHECK(MallocHook::AddNewHook(HearNew));
  for (int i = 0; i < 50; ++i) {
    pthread_t thread;
    const auto body = [](void*) -> void* {
      const uint64_t before = news;
      for (uint64_t j = 0; j < kCounted; ++j) AllocatePair(j);
      PROGRAM_CHECK(news - before == kCounted);
      return nullptr;
    };
    PROGRAM_CHECK(pthread_create(&thread, nullptr, body, nullptr) == 0);
    PROGRAM_CHECK(pthread_join(thread, nullptr) == 0);
  }
  PROGRAM_CHECK(MallocHook::RemoveNewHook(HearNew));
}

// Blocks of random sizes that keep what was written, some from realloc and memalign.
void* ChurnBlocks(void* argument) {
  Random random(reinterpret_cast<uintptr_t>(argument), 300000);
  constexpr size_t kSlots = 200;
  struct {
    unsigned char* start;
    size_t size;
  } blocks[kSlots] = {};
  while (!stop.load(std::memory_order_relaxed)) {
    auto& block = blocks[random.Below(kSlots)];
    const auto mark = static_cast<unsigned char>(reinterpret_cast<uintptr_t>(&block) / 16);
    if (block.start != nullptr) {
      PROGRAM_CHECK(block.start[0] == mark && block.start[block.size - 1] == mark);
    }
    const size_t size = random.Size();
    switch (random.Below(4)) {
      case 0:
        free(block.start);
        block.start = static_cast<unsigned char*>(aligned_alloc(64, size));
        break;
      case 1:
        block.start = static_cast<unsigned char*>(realloc(block.start, size));
        break;
      default:
        free(block.start);
        block.start = static_cast<unsigned char*>(malloc(size));
    }
    block.size = size;
    block.start[0] = block.start[size - 1] = mark;
  }
  for (auto& block : blocks) free(block.start);
  return nullptr;
}

void* ToggleHooks(void*) {
  while (!stop.load(std::memory_order_relaxed)) {
    PROGRAM_CHECK(MallocHook::AddNewHook(HearNew));
    free(malloc(32));
    PROGRAM_CHECK(MallocHook::AddDeleteHook(HearDelete));
    sched_yield();
    PROGRAM_CHECK(MallocHook::RemoveNewHook(HearNew));
    PROGRAM_CHECK(MallocHook::RemoveDeleteHook(HearDelete));
  }
  return nullptr;
}

void CheckChurn() {
  constexpr int kTogglers = 2;
  pthread_t threads[kThreads + kTogglers];
  for (int i = 0; i < kThreads + kTogglers; ++i) {
    void* const number = reinterpret_cast<void*>(static_cast<uintptr_t>(i + 1));
    PROGRAM_CHECK(pthread_create(&threads[i], nullptr, i < kThreads ? ChurnBlocks : ToggleHooks,
                                 number) == 0);
  }
  // The main thread's work says how long.
  PROGRAM_CHECK(MallocHook::AddNewHook(HearNew));
  for (size_t i = 0; i < 200000; ++i) AllocatePair(i);
  PROGRAM_CHECK(MallocHook::RemoveNewHook(HearNew));
  stop = true;
  for (pthread_t thread : threads) PROGRAM_CHECK(pthread_join(thread, nullptr) == 0);
}

// Without it a thread may miss a hook that is added while it leaves the slow path.
bool HasFence() {
  const long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  return commands > 0 && (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0;
}

}  // namespace
}  // namespace tcmalloc::testing

int main() {
  using namespace tcmalloc::testing;
  if (HasFence()) CheckExactCounts();
  CheckNewThreads();
  CheckChurn();
}
