// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "allocator/allocate.h"
#include "allocator/deallocate.h"
#include "allocator/reallocate.h"
#include "allocator/slow_path.h"
#include "fakes/current_cache.h"
#include "hook/hooks.h"

namespace tcmalloc {
namespace {

thread_local int news = 0;
thread_local int deletes = 0;

void HearNew(const void*, size_t) { ++news; }
void HearDelete(const void*) { ++deletes; }

void CloseThreads() {
  const SlowPath slow_path;
  heap.CloseThreads();
}

// While it lives blocks are watched.
class Watch {
 public:
  Watch() {
    EXPECT_TRUE(hooks.new_block.Add(HearNew));
    EXPECT_TRUE(hooks.delete_block.Add(HearDelete));
    CloseThreads();
  }
  ~Watch() {
    EXPECT_TRUE(hooks.new_block.Remove(HearNew));
    EXPECT_TRUE(hooks.delete_block.Remove(HearDelete));
  }
};

TEST(WatchedBlocksTest, ThreadsStayClosedUntilNobodyWatches) {
  Deallocate(Allocate(100));
  ASSERT_FALSE(current_thread->closed());
  {
    const Watch watch;
    EXPECT_TRUE(current_thread->closed());
    Deallocate(Allocate(100));
    EXPECT_TRUE(current_thread->closed());
  }
  EXPECT_TRUE(current_thread->closed());
  Deallocate(Allocate(100));
  EXPECT_FALSE(current_thread->closed());
}

// A closed thread is outside the slow path all the same: its blocks come from its cache.
TEST(WatchedBlocksTest, ClosedThreadsAreServedAsOtherwise) {
  const Watch watch;
  void* block = Allocate(100);
  EXPECT_FALSE(heap.emergency().Owns(block));
  Deallocate(block);
  EXPECT_EQ(Allocate(100), block);
  Deallocate(block);
  EXPECT_TRUE(heap.deferred().empty());
}

TEST(WatchedBlocksTest, ABlockIsReportedOnce) {
  const Watch watch;
  for (const size_t size : {8, 1024, 100000, 1 << 20}) {
    news = deletes = 0;
    void* block = Allocate(size);
    EXPECT_EQ(news, 1);
    block = Reallocate(block, 2 * size);
    EXPECT_EQ(news, 2);
    EXPECT_EQ(deletes, 1);
    block = Reallocate(block, 2 * size + 1);
    Deallocate(block);
    EXPECT_EQ(news, 3);
    EXPECT_EQ(deletes, 3);
    Deallocate(AllocateAligned(size, 256));
    Deallocate(AllocateAligned(size, 8));
    Deallocate(AllocateZeroed(size));
    EXPECT_EQ(news, 6);
    EXPECT_EQ(deletes, 6);
    DeallocateUnreported(AllocateUnreported(size));
    EXPECT_EQ(news, 6);
    EXPECT_EQ(deletes, 6);
  }
}

// Another thread closes this one between a fast path that fails and the slow path.
TEST(WatchedBlocksTest, AFastPathThatFailedIsUndoneAfterTheThreadWasClosed) {
  constexpr size_t kSize = 64;
  std::vector<void*> blocks = {Allocate(kSize)};
  if (!heap.codec().InWindow(ReferenceTo(blocks[0]))) {
    GTEST_SKIP() << "the heap is outside of the window";
  }
  const auto close = [] { current_thread->CloseListsByOther(); };
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 1000; ++i) {
      void* block = testing::CurrentCache()->TryAllocate(kClassBySize[kSize], kSize);
      if (block == nullptr) {
        close();
        block = AllocateAfterTry<AllocateSlow>(kSize, current_thread.lists());
      }
      blocks.push_back(block);
    }
    testing::CurrentCache()->CheckInvariants();
    for (void* block : blocks) {
      if (testing::CurrentCache()->TryFree(block)) continue;
      close();
      DeallocateAfterTry(block, current_thread.lists());
    }
    blocks.clear();
    testing::CurrentCache()->CheckInvariants();
  }
}

// Fills and empties the lists of a few classes, each in turn.
void Churn(std::atomic<int>* started, const std::atomic<bool>& stop) {
  void* blocks[200] = {Allocate(1)};
  Deallocate(blocks[0]);
  ++*started;
  for (size_t round = 0; !stop.load(std::memory_order_relaxed); ++round) {
    const size_t size = size_t{64} << round % 8;
    for (void*& block : blocks) block = Allocate(size);
    for (void* block : blocks) Deallocate(block);
  }
}

// Where a thread is in its fast path when it is closed, the lengths of its lists stay exact.
TEST(WatchedBlocksTest, ThreadsAreClosedWhileTheyAllocate) {
  constexpr int kThreads = 3;
  std::atomic<int> started{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      Churn(&started, stop);
      testing::CurrentCache()->CheckInvariants();
    });
  }
  while (started != kThreads) std::this_thread::yield();
  for (int i = 0; i < 2000; ++i) {
    const Watch watch;
    Deallocate(Allocate(50));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tcmalloc
