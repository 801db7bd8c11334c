// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "allocator/reallocate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "allocator/allocate.h"
#include "allocator/deallocate.h"
#include "allocator/usable_size.h"
#include "heap/heap.h"

namespace tcmalloc::testing {
namespace {

void Fill(void* block, size_t size, uint64_t seed) {
  auto* bytes = static_cast<unsigned char*>(block);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>((i ^ seed) * 31);
}

bool IsFilled(const void* block, size_t size, uint64_t seed) {
  const auto* bytes = static_cast<const unsigned char*>(block);
  for (size_t i = 0; i < size; ++i) {
    if (bytes[i] != static_cast<unsigned char>((i ^ seed) * 31)) return false;
  }
  return true;
}

bool StaysAsItIs(const void* block, size_t size) { return PlanRealloc(block, size).stays; }

class ReallocateTest : public ::testing::Test {
 protected:
  // How often a block moves depends on what earlier tests left free, unless that has been released.
  static void SetUpTestSuite() {
    Deallocate(Allocate(1));  // makes the heap
    heap.housekeeping().set_half_life(0);
  }
};

TEST_F(ReallocateTest, KeepsTheContents) {
  std::mt19937_64 random(1);
  const auto random_size = [&] { return 1 + random() % (size_t{1} << (1 + random() % 21)); };
  size_t size = 1;
  void* block = Allocate(size);
  Fill(block, size, 0);
  for (uint64_t step = 1; step < 3000; ++step) {
    const size_t new_size = random_size();
    block = Reallocate(block, new_size);
    ASSERT_NE(block, nullptr);
    ASSERT_GE(UsableSize(block), new_size);
    ASSERT_TRUE(IsFilled(block, std::min(size, new_size), step - 1)) << size << "->" << new_size;
    size = new_size;
    Fill(block, size, step);
  }
  Deallocate(block);
}

TEST_F(ReallocateTest, AFailureLeavesTheBlock) {
  for (size_t size : {size_t{100}, size_t{1} << 20}) {
    void* block = Allocate(size);
    Fill(block, size, 1);
    EXPECT_EQ(Reallocate(block, SIZE_MAX), nullptr);
    EXPECT_EQ(Reallocate(block, size_t{PTRDIFF_MAX}), nullptr);
    EXPECT_EQ(Reallocate(block, size_t{1} << 50), nullptr);
    EXPECT_TRUE(IsFilled(block, size, 1));
    Deallocate(block);
  }
}

TEST_F(ReallocateTest, GrowingByLittleCopiesSeldom) {
  void* block = Allocate(16);
  int copies = 0;
  for (size_t size = 17; size < size_t{1} << 20; size += 16) {
    void* before = block;
    block = Reallocate(block, size);
    copies += block != before ? 1 : 0;
  }
  EXPECT_LT(copies, 100);
  Deallocate(block);
}

// Returns the bytes of a block of at least `old_bytes` after it has grown by `more` than it has.
size_t BytesAfterGrowth(size_t old_bytes, size_t more) {
  void* block = Allocate(old_bytes);
  block = Reallocate(block, UsableSize(block) + more);
  const size_t bytes = UsableSize(block);
  Deallocate(block);
  return bytes;
}

TEST_F(ReallocateTest, AShortBlockThatGrowsByLittleGetsHalfInAdvance) {
  for (const size_t size : {size_t{1280}, size_t{8} << 10, size_t{56} << 10}) {
    const size_t half = size + size / 2;
    EXPECT_GE(BytesAfterGrowth(size, 16), half);
    EXPECT_GE(BytesAfterGrowth(size, size / 16), half);
    EXPECT_LT(BytesAfterGrowth(size, size / 16 + 1), half) << "it did not grow by a small step";
  }
  EXPECT_LT(BytesAfterGrowth(size_t{64} << 10, 16), size_t{96} << 10) << "it is not short";
}

TEST_F(ReallocateTest, ALongBlockThatGrowsByLittleGrowsInAdvance) {
  constexpr size_t kLong = size_t{8} << 20;
  void* block = Allocate(kLong);
  int grown = 0;
  for (size_t size = kLong; size < 2 * kLong; size += kPageSize) {
    const size_t before = UsableSize(block);
    block = Reallocate(block, size);
    grown += UsableSize(block) != before ? 1 : 0;
  }
  EXPECT_LT(grown, static_cast<int>(kLong / kPageSize / 4));
  EXPECT_LE(UsableSize(block), 2 * kLong + kLong / 2);
  Deallocate(block);
}

// Grows blocks by turns, `step` bytes at a time, to `most` bytes. Returns how often one moved after
// it had reached `least`.
int MovesOf(std::vector<void*> blocks, size_t least, size_t most, size_t step) {
  int moves = 0;
  for (size_t size = step; size <= most; size += step) {
    for (void*& block : blocks) {
      void* old = std::exchange(block, Reallocate(block, size));
      if (size > least && block != old) ++moves;
      static_cast<char*>(block)[size - 1] = 'x';
    }
  }
  for (void* block : blocks) {
    for (size_t end = step; end <= most; end += step) {
      EXPECT_EQ(static_cast<char*>(block)[end - 1], 'x');
    }
    Deallocate(block);
  }
  return moves;
}

TEST_F(ReallocateTest, TheOnlyBlockThatGrowsHardlyEverMoves) {
  EXPECT_LE(MovesOf({Allocate(1)}, 4 << 20, 128 << 20, 64 << 10), 5)
      << "by quarters it would be 15";
}

TEST_F(ReallocateTest, BlocksThatGrowByTurnsMoveWhenTheyHaveDoubled) {
  EXPECT_LE(MovesOf({Allocate(1), Allocate(1)}, 4 << 20, 64 << 20, 64 << 10), 2 * 4 + 2);
}

TEST_F(ReallocateTest, ABlockStaysForAsManyBytesAsItHas) {
  for (const size_t size : {size_t{8}, size_t{100}, size_t{3000}, size_t{100'000}, kMaxSmallSize,
                            kMaxSmallSize + 1, size_t{8} << 20}) {
    void* block = Allocate(size);
    const size_t bytes = UsableSize(block);
    // Where a sanitizer occupies the low addresses, the heap lies beyond those that are looked up
    // at once.
    const bool is_near = heap.page_map().NearEntryOf(PageId::Containing(block)).span() != nullptr;
    EXPECT_EQ(StaysAsItIs(block, bytes), is_near);
    EXPECT_EQ(StaysAsItIs(block, bytes / 2), is_near && KeepsItsLength(bytes, bytes / 2));
    EXPECT_EQ(StaysAsItIs(block, size), is_near);
    EXPECT_FALSE(StaysAsItIs(block, bytes + 1));
    EXPECT_FALSE(StaysAsItIs(block, bytes / 2 - 1));
    EXPECT_FALSE(StaysAsItIs(block, 0));
    Deallocate(block);
  }
}

TEST_F(ReallocateTest, NothingElseStays) {
  static char foreign[64];
  auto* small = static_cast<char*>(Allocate(100));
  auto* large = static_cast<char*>(Allocate(size_t{8} << 20));
  for (void* address :
       {static_cast<void*>(nullptr), static_cast<void*>(foreign), static_cast<void*>(small + 8),
        static_cast<void*>(small + 1), static_cast<void*>(large + 16),
        static_cast<void*>(large + kPageSize), reinterpret_cast<void*>(UINTPTR_MAX - 63)}) {
    for (const size_t size : {size_t{0}, size_t{1}, size_t{64}, size_t{100}, size_t{8} << 20}) {
      EXPECT_FALSE(StaysAsItIs(address, size)) << address;
      EXPECT_EQ(PlanRealloc(address, size).object_bytes, 0u) << address;
    }
  }
  Deallocate(small);
  Deallocate(large);
  EXPECT_FALSE(StaysAsItIs(large, size_t{8} << 20));
}

TEST_F(ReallocateTest, ALongBlockShrinksAndGrowsWhereItIs) {
  constexpr size_t kLong = size_t{8} << 20;
  void* block = Allocate(kLong);
  Fill(block, kLong, 1);
  for (const size_t size : {kLong / 2, kLong / 4, kLong / 2, kLong / 8, kLong / 4}) {
    ASSERT_EQ(Reallocate(block, size), block) << size;
    EXPECT_GE(UsableSize(block), size);
    EXPECT_LT(UsableSize(block), size + kPageSize);
  }
  EXPECT_TRUE(IsFilled(block, kLong / 8, 1));
  Deallocate(block);
}

TEST_F(ReallocateTest, ALongBlockThatLosesLittleStaysWhole) {
  constexpr size_t kLong = size_t{8} << 20;
  void* block = Allocate(kLong);
  EXPECT_EQ(Reallocate(block, kLong - kLong / 4), block);
  EXPECT_EQ(UsableSize(block), kLong);
  Deallocate(block);
}

// As a block does that was aligned, or for which no smaller one could be had.
TEST_F(ReallocateTest, AShortSpanOfItsOwnGrowsWhereItIs) {
  void* block = AllocateAligned(100, size_t{1} << 20);
  ASSERT_EQ(UsableSize(block), kPageSize);
  Fill(block, kPageSize, 2);
  void* grown = Reallocate(block, 3 * kPageSize);
  EXPECT_EQ(grown, block);
  EXPECT_TRUE(IsFilled(grown, kPageSize, 2));
  Deallocate(grown);
}

class FullHeapTest : public ::testing::Test {
 protected:
  ~FullHeapTest() override { SetLimit(Length(0)); }

  static void SetLimit(Length limit) { heap.page_heap().set_limit(limit); }
  // So that nothing can be had that is not in a cache.
  static void Exhaust() {
    const Length committed = heap.page_heap().committed();
    heap.page_heap().ReleaseAtLeast(Length::Max());
    SetLimit(std::min(committed, heap.page_heap().committed()));
  }
};

TEST_F(FullHeapTest, NoBlockFailsToShrink) {
  constexpr size_t kSizes[] = {300, 5000, 100'000, 400'000, size_t{8} << 20};
  for (const size_t size : kSizes) {
    void* block = Allocate(size);
    Fill(block, size, 3);
    Exhaust();
    for (size_t less = size / 3; less > 0; less /= 3) {
      block = Reallocate(block, less);
      ASSERT_NE(block, nullptr) << size << "->" << less;
      ASSERT_GE(UsableSize(block), less);
      ASSERT_TRUE(IsFilled(block, less, 3));
    }
    SetLimit(Length(0));
    Deallocate(block);
  }
}

TEST_F(ReallocateTest, ShrinkingFreesMemory) {
  void* block = Allocate(size_t{8} << 20);
  block = Reallocate(block, 1000);
  EXPECT_LT(UsableSize(block), 4096u);
  Deallocate(block);
}

}  // namespace
}  // namespace tcmalloc::testing
