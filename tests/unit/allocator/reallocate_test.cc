// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "allocator/reallocate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>

#include "allocator/allocate.h"
#include "allocator/deallocate.h"

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

TEST(ReallocateTest, KeepsTheContents) {
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

TEST(ReallocateTest, AFailureLeavesTheBlock) {
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

TEST(ReallocateTest, GrowingByLittleCopiesSeldom) {
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

TEST(ReallocateTest, ShrinkingFreesMemory) {
  void* block = Allocate(size_t{8} << 20);
  block = Reallocate(block, 1000);
  EXPECT_LT(UsableSize(block), 4096u);
  Deallocate(block);
}

}  // namespace
}  // namespace tcmalloc::testing
