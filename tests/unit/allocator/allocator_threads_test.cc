// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Several threads at once, for the thread sanitizer, for the invariants and for the count of locks.

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "allocator/allocate.h"
#include "allocator/deallocate.h"
#include "allocator/reallocate.h"
#include "base/check.h"
#include "base/spin_lock.h"
#include "fakes/current_cache.h"
#include "heap/heap.h"

namespace tcmalloc::testing {
namespace {

constexpr int kThreads = 4;

template <typename F>
void RunThreads(F f) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(f, static_cast<uint64_t>(i) + 1);
  for (std::thread& thread : threads) thread.join();
}

struct Block {
  uint64_t* start = nullptr;
  size_t size = 0;

  void Stamp() const { *start = *Last() = reinterpret_cast<uint64_t>(start); }
  void Check() const {
    ASSERT_EQ(*start, reinterpret_cast<uint64_t>(start));
    ASSERT_EQ(*Last(), reinterpret_cast<uint64_t>(start));
  }

 private:
  uint64_t* Last() const { return start + (size - 1) / 8; }
};

// Blocks that any thread may free.
class Exchange {
 public:
  // Puts `block` and takes another, which is empty while there are few.
  Block Swap(Block block, uint64_t random) {
    std::lock_guard<std::mutex> guard(mutex_);
    if (blocks_.size() < kBlocks) {
      blocks_.push_back(block);
      return {};
    }
    std::swap(blocks_[random % blocks_.size()], block);
    return block;
  }
  std::vector<Block> TakeAll() { return std::move(blocks_); }

 private:
  static constexpr size_t kBlocks = 2000;

  std::mutex mutex_;
  std::vector<Block> blocks_;
};

TEST(AllocatorThreads, BlocksAreFreedByAnybody) {
  Exchange exchange;
  RunThreads([&](uint64_t thread) {
    std::mt19937_64 random(thread);
    for (int i = 0; i < 20'000; ++i) {
      const size_t size = 8 + random() % (random() % 64 == 0 ? size_t{1} << 19 : 2000);
      Block block{static_cast<uint64_t*>(Allocate(size)), size};
      ASSERT_NE(block.start, nullptr);
      block.Stamp();
      block = exchange.Swap(block, random());
      if (block.start == nullptr) continue;
      block.Check();
      Deallocate(block.start);
    }
  });
  for (const Block& block : exchange.TakeAll()) {
    block.Check();
    Deallocate(block.start);
  }
  heap.budget().CheckInvariants();
  heap.page_heaps().CheckInvariants();
  EXPECT_EQ(heap.caches().stats().caches, current_thread->size_limit != 0 ? 1u : 0u);
}

TEST(AllocatorThreads, EndedThreadsLeaveNothing) {
  RunThreads([](uint64_t thread) {
    std::mt19937_64 random(thread);
    std::vector<void*> blocks;
    for (int i = 0; i < 5000; ++i) blocks.push_back(Allocate(random() % 20'000));
    for (void* block : blocks) Deallocate(block);
  });
  // The main thread has a cache from the other test, or none.
  if (!current_thread->closed()) {
    CurrentCache()->Close();
    CurrentCache()->Flush();
    CurrentCache()->Open();
  }
  heap.Shed(nullptr, Length(0));
  // Two threads in need of a span may both get one, of which one stays unused.
  heap.page_heap().ForEachSpan([](const Span& span) {
    if (!span.in_use()) return;
    EXPECT_EQ(span.carved, 0u) << "size class " << int{span.size_class};
  });
}

// Release by time, which takes a few locks in each of its steps, is off. Now and then a thread
// happens to look as if it used one object only, and gets another list; then it may miss, and
// collect. That is one lock for more than a thousand operations. The caches of CPUs grow for some
// hundred rounds, because threads are moved between them in the middle of each. Some growth comes
// later, the more of it the more CPUs there are, and where the heap has grown by a step, the peak
// is counted anew, which takes the lock of every list. So most spans of time have to be quiet, not
// each of them: growth ends, and what takes a lock in every hundredth operation does so in all.
TEST(AllocatorThreads, SteadyStateTakesHardlyAnyLock) {
  if constexpr (!kDebugChecks) GTEST_SKIP() << "locks are counted only in builds with checks";
  heap.EnsureInitialized();
  heap.housekeeping().set_half_life(0);
  constexpr size_t kBlocks = 500;
  constexpr int kWarmRounds = 500;
  constexpr size_t kSpans = 15;
  constexpr uint64_t kRoundsInSpan = 50;
  std::vector<uint64_t> acquisitions;
  std::barrier look(kThreads,
                    [&]() noexcept { acquisitions.push_back(CurrentLockCounts().acquisitions); });
  RunThreads([&](uint64_t thread) {
    std::vector<void*> blocks(kBlocks);
    const auto rounds = [&](uint64_t count) {
      for (; count > 0; --count) {
        std::mt19937_64 random(thread);
        for (void*& block : blocks) block = Allocate(random() % 1000);
        for (void* block : blocks) Deallocate(block);
      }
      look.arrive_and_wait();
    };
    rounds(kWarmRounds);
    for (size_t i = 0; i < kSpans; ++i) rounds(kRoundsInSpan);
  });
  EXPECT_GT(acquisitions.front(), 0u);
  std::adjacent_difference(acquisitions.begin(), acquisitions.end(), acquisitions.begin());
  std::sort(acquisitions.begin() + 1, acquisitions.end());
  EXPECT_LE(acquisitions[1 + kSpans / 2], kRoundsInSpan * kThreads * kBlocks / 1000);
}

}  // namespace
}  // namespace tcmalloc::testing
