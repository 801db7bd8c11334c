// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "allocator/allocate.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

#include "allocator/deallocate.h"
#include "allocator/usable_size.h"
#include "fakes/current_cache.h"
#include "fakes/filled.h"

namespace tcmalloc::testing {
namespace {

std::vector<size_t> Sizes() {
  std::vector<size_t> sizes;
  for (size_t size = 0; size < 2048; ++size) sizes.push_back(size);
  for (size_t size = 2048; size <= size_t{4} << 20; size += size / 7 + 1) sizes.push_back(size);
  sizes.insert(sizes.end(), {kMaxSmallSize - 1, kMaxSmallSize, kMaxSmallSize + 1});
  return sizes;
}

TEST(AllocateTest, EverySizeIsUsableAndAligned) {
  for (size_t size : Sizes()) {
    void* block = Allocate(size);
    ASSERT_NE(block, nullptr);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(block) % (size <= 8 ? 8 : 16), 0u) << size;
    ASSERT_GE(UsableSize(block), size);
    std::memset(block, 0xab, UsableSize(block));
    Deallocate(block);
  }
}

TEST(AllocateTest, BlocksInUseAreDistinct) {
  std::set<void*> blocks;
  for (int round = 0; round < 5; ++round) {
    for (size_t size : Sizes()) ASSERT_TRUE(blocks.insert(Allocate(size)).second);
  }
  for (void* block : blocks) Deallocate(block);
}

TEST(AllocateTest, EmptyBlocksAreDistinct) {
  void* a = Allocate(0);
  void* b = Allocate(0);
  EXPECT_NE(a, b);
  Deallocate(a);
  Deallocate(b);
}

TEST(AllocateTest, AlignedBlocks) {
  for (size_t alignment = 1; alignment <= size_t{1} << 22; alignment *= 2) {
    for (size_t size : {size_t{0}, size_t{1}, size_t{24}, size_t{1000}, kPageSize, size_t{100'000},
                        size_t{1} << 20}) {
      std::vector<void*> blocks;
      for (int i = 0; i < 3; ++i) {
        void* block = AllocateAligned(size, alignment);
        ASSERT_NE(block, nullptr);
        ASSERT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0u);
        ASSERT_GE(UsableSize(block), size);
        std::memset(block, 0xab, size);
        blocks.push_back(block);
      }
      for (void* block : blocks) Deallocate(block);
    }
  }
}

TEST(AllocateTest, ZeroedBlocks) {
  for (int round = 0; round < 3; ++round) {
    for (size_t size : {size_t{1}, size_t{64}, size_t{1024}, size_t{5000}, kMaxSmallSize,
                        kMaxSmallSize + 1, size_t{3} << 20}) {
      void* block = AllocateZeroed(size);
      ASSERT_NE(block, nullptr);
      ASSERT_TRUE(IsZero(block, size)) << size;
      std::memset(block, 0xab, UsableSize(block));
      Deallocate(block);
    }
  }
}

TEST(AllocateTest, WhatNoAddressSpaceHoldsIsRefused) {
  for (size_t size : {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - kPageSize, size_t{PTRDIFF_MAX},
                      size_t{PTRDIFF_MAX} + 1, size_t{1} << 62, size_t{1} << 48}) {
    EXPECT_EQ(Allocate(size), nullptr);
    EXPECT_EQ(AllocateZeroed(size), nullptr);
    for (size_t alignment : {size_t{16}, size_t{4096}, size_t{1} << 40, size_t{1} << 63}) {
      EXPECT_EQ(AllocateAligned(size, alignment), nullptr);
    }
  }
  EXPECT_EQ(AllocateAligned(1, size_t{1} << 63), nullptr);
}

TEST(AllocateTest, ErrnoStaysAsItWas) {
  errno = 4711;
  std::vector<void*> blocks;
  for (size_t size : Sizes()) blocks.push_back(Allocate(size));
  for (void* block : blocks) Deallocate(block);
  EXPECT_EQ(Allocate(SIZE_MAX), nullptr);
  EXPECT_EQ(errno, 4711);
}

TEST(AllocateTest, AllClassesGiveTheirMemoryBack) {
  std::vector<void*> blocks;
  for (size_t size : Sizes()) blocks.push_back(Allocate(size));
  for (void* block : blocks) Deallocate(block);
  CurrentCache()->Close();
  CurrentCache()->Flush();
  CurrentCache()->CheckInvariants();
  CurrentCache()->Open();
  heap.Shed(nullptr, Length(0));
  EXPECT_EQ(heap.page_heap().stats().in_use(), Length(0));
}

}  // namespace
}  // namespace tcmalloc::testing
