// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The view of a signal handler that interrupts the allocator. The tests stand in the slow path
// themselves instead of waiting for a signal to hit it.

#include "allocator/slow_path.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

#include "allocator/allocate.h"
#include "allocator/deallocate.h"
#include "allocator/reallocate.h"
#include "allocator/usable_size.h"
#include "fakes/current_cache.h"

namespace tcmalloc::testing {
namespace {

TEST(SlowPathTest, ClosesTheThreadsCache) {
  const SlowPath slow_path;
  EXPECT_FALSE(slow_path.reentrant());
  EXPECT_TRUE(current_thread->closed());
  const SlowPath inner;
  EXPECT_TRUE(inner.reentrant());
}

TEST(SlowPathTest, KeepsErrno) {
  errno = 4711;
  {
    const SlowPath slow_path;
    errno = 1;
  }
  EXPECT_EQ(errno, 4711);
}

TEST(SlowPathTest, InsideItMemoryComesFromTheEmergencyArena) {
  std::vector<void*> blocks;
  {
    const SlowPath slow_path;
    for (size_t size : {0, 1, 100, 5000}) {
      void* block = Allocate(size);
      ASSERT_NE(block, nullptr);
      EXPECT_TRUE(heap.emergency().Owns(block));
      EXPECT_GE(UsableSize(block), size);
      std::memset(block, 0xab, size);
      blocks.push_back(block);
    }
    void* aligned = AllocateAligned(100, 1024);
    EXPECT_TRUE(heap.emergency().Owns(aligned));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(aligned) % 1024, 0u);
    blocks.push_back(aligned);
    void* large = Allocate(size_t{10} << 20);
    EXPECT_TRUE(heap.emergency().Owns(large));
    large = Reallocate(large, size_t{12} << 20);
    EXPECT_TRUE(heap.emergency().Owns(large));
    blocks.push_back(large);
  }
  // They are freed by anybody at any time.
  for (void* block : blocks) Deallocate(block);
}

TEST(SlowPathTest, EmergencyMemoryIsZeroedAndReallocated) {
  void* block = nullptr;
  {
    const SlowPath slow_path;
    block = Allocate(64);
    std::memset(block, 0xab, 64);
    Deallocate(block);
    block = AllocateZeroed(64);
    for (size_t i = 0; i < 64; ++i) ASSERT_EQ(static_cast<char*>(block)[i], 0);
    std::strcpy(static_cast<char*>(block), "contents");
    block = Reallocate(block, 1000);
    EXPECT_STREQ(static_cast<char*>(block), "contents");
  }
  block = Reallocate(block, 3000);
  EXPECT_FALSE(heap.emergency().Owns(block));
  EXPECT_STREQ(static_cast<char*>(block), "contents");
  Deallocate(block);
}

TEST(SlowPathTest, BlocksFreedInsideItAreFreedAfterwards) {
  void* small = Allocate(64);
  void* large = Allocate(size_t{1} << 20);
  const Length in_use = heap.page_heap().stats().in_use();
  {
    const SlowPath slow_path;
    Deallocate(small);
    Deallocate(large);
    EXPECT_FALSE(heap.deferred().empty());
    EXPECT_EQ(heap.page_heap().stats().in_use(), in_use);
  }
  EXPECT_TRUE(heap.deferred().empty());
  EXPECT_LT(heap.page_heap().stats().in_use(), in_use);
  const Chain freed = heap.transfer(SizeClassFor(64)).Fetch(1);
  EXPECT_EQ(ObjectAt(freed.head), small);
  heap.transfer(SizeClassFor(64)).Insert(freed);
}

TEST(SlowPathTest, DeferredBlocksGoPastTheListsOfTheThread) {
  void* a = Allocate(64);
  void* b = Allocate(64);
  const size_t listed = CurrentCache()->CountObjects(SizeClassFor(64));
  {
    const SlowPath slow_path;
    Deallocate(a);
    Deallocate(b);
  }
  EXPECT_EQ(CurrentCache()->CountObjects(SizeClassFor(64)), listed);
  CurrentCache()->CheckInvariants();
}

}  // namespace
}  // namespace tcmalloc::testing
