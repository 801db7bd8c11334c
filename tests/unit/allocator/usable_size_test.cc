// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "allocator/usable_size.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "allocator/allocate.h"
#include "allocator/deallocate.h"

namespace tcmalloc::testing {
namespace {

constexpr size_t kAskedSizes[] = {1,      16, 24, 100, 1000, 5000, kMaxSmallSize, kMaxSmallSize + 1,
                                  5 << 20};

char* AddressIn(void* block, size_t bytes) { return static_cast<char*>(block) + bytes; }

std::string Naming(const std::string& what, const void* block) {
  std::ostringstream message;
  message << "tcmalloc: " << what << block << "[ :]";
  return message.str();
}

// What a block of `size` bytes has, which no table of the library says.
size_t LeastBytes(size_t size) { return size > kMaxSmallSize ? AlignUp(size, kPageSize) : size; }

TEST(UsableSizeTest, NullHasNone) {
  EXPECT_EQ(UsableSize(nullptr), 0u);
  EXPECT_EQ(UsableSizeInUse(nullptr), 0u);
}

TEST(UsableSizeTest, BlocksInUseHaveTheSizeOfTheirClassOrPages) {
  for (const size_t size : kAskedSizes) {
    // Neighbours, so that some do not begin with a page.
    std::vector<void*> blocks;
    for (int i = 0; i < 20; ++i) blocks.push_back(Allocate(size));
    for (void* block : blocks) {
      std::memset(block, 0xab, size);
      ASSERT_GE(UsableSizeInUse(block), LeastBytes(size));
      ASSERT_LE(UsableSizeInUse(block), LeastBytes(size) + size / 8 + 16);
      ASSERT_EQ(UsableSizeInUse(block), UsableSize(block));
    }
    for (void* block : blocks) Deallocate(block);
  }
}

TEST(UsableSizeTest, ContentsThatLookFreeDoNoHarm) {
  void* other = Allocate(64);
  void* block = Allocate(64);
  const ObjectReference references[] = {ReferenceTo(other),   ReferenceTo(block),  heap.codec().end,
                                        ReferenceTo(nullptr), ReferenceTo(&other), 0};
  for (const ObjectReference reference : references) {
    heap.codec().Link(block, reference);
    EXPECT_EQ(UsableSizeInUse(block), 64u);
  }
  for (const uint64_t word : {uint64_t{0}, uint64_t{1} << 63, UINT64_MAX}) {
    LinkWord(block) = word;
    EXPECT_EQ(UsableSizeInUse(block), 64u);
  }
  Deallocate(block);
  Deallocate(other);
}

TEST(UsableSizeDeathTest, BlocksThatAreFree) {
  for (const size_t size : kAskedSizes) {
    void* block = Allocate(size);
    Deallocate(block);
    // Where a sanitizer occupies the addresses of the window, links do not tell what is free.
    if (size <= kMaxSmallSize && !heap.codec().InWindow(ReferenceTo(block))) continue;
    EXPECT_DEATH(UsableSizeInUse(block), "(double|invalid) free of .*malloc_usable_size") << size;
  }
}

TEST(UsableSizeDeathTest, AddressesAtWhichNoBlockBegins) {
  for (const size_t size : kAskedSizes) {
    if (size < 24) continue;
    void* block = Allocate(size);
    EXPECT_DEATH(UsableSizeInUse(AddressIn(block, 4)),
                 Naming("misaligned free of ", AddressIn(block, 4)));
    EXPECT_DEATH(UsableSizeInUse(AddressIn(block, 16)),
                 Naming("invalid free of ", AddressIn(block, 16)));
    Deallocate(block);
  }
  alignas(16) static uint64_t global[2] = {};
  EXPECT_DEATH(UsableSizeInUse(global), Naming("invalid free of ", global));
  EXPECT_DEATH(UsableSizeInUse(reinterpret_cast<void*>(uintptr_t{1} << 63)), "invalid free of 0x8");
}

}  // namespace
}  // namespace tcmalloc::testing
