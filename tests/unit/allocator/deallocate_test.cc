// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "allocator/deallocate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "allocator/allocate.h"
#include "allocator/usable_size.h"
#include "fakes/current_cache.h"

namespace tcmalloc::testing {
namespace {

void* Plus(void* block, size_t bytes) { return static_cast<char*>(block) + bytes; }

TEST(DeallocateTest, NullIsNothing) {
  // Of a constant the compiler would warn that the fast path reads through it.
  void* volatile null = nullptr;
  Deallocate(null);
  DeallocateSized(null, 0, current_thread);
  DeallocateSized(null, size_t{1} << 30, current_thread);
}

TEST(DeallocateTest, FreedBlocksAreReused) {
  void* block = Allocate(64);
  Deallocate(block);
  EXPECT_EQ(Allocate(64), block);
  Deallocate(block);
}

TEST(DeallocateTest, ContentsThatLookLikeALinkDoNoHarm) {
  void* other = Allocate(64);
  void* block = Allocate(64);
  const ObjectReference references[] = {ReferenceTo(other), ReferenceTo(block), heap.codec().end,
                                        ReferenceTo(nullptr), 0};
  for (ObjectReference reference : references) {
    heap.codec().Link(block, reference);
    Deallocate(block);
    block = Allocate(64);
  }
  Deallocate(block);
  Deallocate(other);
}

TEST(DeallocateTest, SizedWithTheSizeAskedFor) {
  for (size_t size :
       {size_t{0}, size_t{1}, size_t{100}, kMaxSmallSize, kMaxSmallSize + 1, size_t{5} << 20}) {
    DeallocateSized(Allocate(size), size, current_thread);
  }
}

// operator delete may get any size that is rounded up to the same block.
TEST(DeallocateTest, DeletedWithTheSizeAskedForOrARoundedOne) {
  for (size_t size = 0; size < (size_t{2} << 20); size += 1 + size / 40) {
    void* block = Allocate(size);
    CheckDeletedSize(block, UsableSize(block));
    DeleteChecked(block, size);
  }
}

// A handler of a signal that came when a fast path had changed the room of a list without objects
// gets an object of a larger class, which it deletes with the size that it asked for.
TEST(DeallocateTest, DeletedWithTheSizeForWhichALargerClassServed) {
  for (size_t size : {64, 1024, 2048, 4096, 8192, 65536}) {
    const uint8_t c = SizeClassFor(size);
    CurrentCache()->Close();
    CurrentCache()->Flush();
    CurrentCache()->Open();
    ++current_thread.lists()->room[c];
    void* block = Allocate(size);
    --current_thread.lists()->room[c];
    EXPECT_GT(UsableSize(block), kSizeClasses[c].size);
    CheckDeletedSize(block, size);
    DeleteChecked(block, size);
  }
}

class DeallocateDeathTest : public ::testing::Test {
 protected:
  static std::string Naming(const std::string& what, const void* block) {
    std::ostringstream message;
    message << "tcmalloc: " << what << block << "[ :]";
    return message.str();
  }
  // Where a sanitizer occupies the addresses of the window, links do not tell what is free.
  static bool LinksAreRecognized() {
    void* block = Allocate(64);
    Deallocate(block);
    return heap.codec().InWindow(ReferenceTo(block));
  }
};

TEST_F(DeallocateDeathTest, MisalignedPointers) {
  for (size_t size : {64, 1 << 20}) {
    void* block = Allocate(size);
    for (size_t offset : {1, 4, 7}) {
      EXPECT_DEATH(Deallocate(Plus(block, offset)),
                   Naming("misaligned free of ", Plus(block, offset)));
    }
    Deallocate(block);
  }
}

TEST_F(DeallocateDeathTest, InteriorPointersOfLargeBlocks) {
  void* block = Allocate(size_t{1} << 20);
  for (size_t offset : {size_t{8}, size_t{16}, kPageSize, 3 * kPageSize}) {
    EXPECT_DEATH(Deallocate(Plus(block, offset)), Naming("invalid free of ", Plus(block, offset)));
  }
  Deallocate(block);
}

// The page map still has entries of the blocks that were there before.
TEST_F(DeallocateDeathTest, InteriorPointersWhereOtherBlocksWere) {
  constexpr size_t kSize = size_t{300} << 10;
  std::vector<void*> before(64);
  for (void*& block : before) block = Allocate(kSize);
  for (void* block : before) Deallocate(block);
  constexpr size_t kLarge = 32 * kSize;
  void* block = Allocate(kLarge);
  const auto is_inside = [&](void* other) { return other > block && other < Plus(block, kLarge); };
  const auto inside = std::find_if(before.begin(), before.end(), is_inside);
  ASSERT_NE(inside, before.end());
  EXPECT_DEATH(Deallocate(*inside), "invalid free of .*: it points into the block at");
  Deallocate(block);
}

TEST_F(DeallocateDeathTest, ForeignMemory) {
  alignas(16) static uint64_t global[2] = {};
  alignas(16) uint64_t local[2] = {};
  EXPECT_DEATH(Deallocate(global), Naming("invalid free of ", global));
  EXPECT_DEATH(Deallocate(local), Naming("invalid free of ", local));
  EXPECT_DEATH(Deallocate(OpaqueToOptimizer(reinterpret_cast<char*>(16))), "invalid free of 0x10");
  EXPECT_DEATH(Deallocate(OpaqueToOptimizer(reinterpret_cast<char*>(uintptr_t{1} << 63))),
               "invalid free of 0x8");
}

TEST_F(DeallocateDeathTest, SmallBlocksTwice) {
  if (!LinksAreRecognized()) GTEST_SKIP() << "the heap is outside of the window";
  // The first of a list, one inside, and its last.
  std::vector<void*> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(Allocate(64));
  for (void* block : blocks) Deallocate(block);
  for (void* block : blocks) EXPECT_DEATH(Deallocate(block), Naming("double free of ", block));
}

TEST_F(DeallocateDeathTest, BlocksTwiceThatHaveLeftTheCache) {
  if (!LinksAreRecognized()) GTEST_SKIP() << "the heap is outside of the window";
  std::vector<void*> blocks;
  for (int i = 0; i < 2000; ++i) blocks.push_back(Allocate(64));
  for (void* block : blocks) Deallocate(block);
  CurrentCache()->Close();
  CurrentCache()->Flush();
  CurrentCache()->Open();
  for (size_t i = 0; i < blocks.size(); i += 99) {
    EXPECT_DEATH(Deallocate(blocks[i]), "double free of |invalid free of ");
  }
}

TEST_F(DeallocateDeathTest, LargeBlocksTwice) {
  void* block = Allocate(size_t{1} << 20);
  Deallocate(block);
  EXPECT_DEATH(Deallocate(block), "double free of |invalid free of ");
}

TEST_F(DeallocateDeathTest, LargeBlocksWithAWrongSize) {
  void* block = Allocate(size_t{1} << 20);
  EXPECT_DEATH(DeallocateSized(block, size_t{2} << 20, current_thread),
               Naming("sized delete of ", block));
  Deallocate(block);
}

TEST_F(DeallocateDeathTest, DeletesWithAWrongSize) {
  for (const size_t size : {size_t{100}, size_t{4096}, size_t{64} << 10, size_t{1} << 20}) {
    void* block = Allocate(size);
    EXPECT_DEATH(CheckDeletedSize(block, size / 2), Naming("sized delete of ", block));
    EXPECT_DEATH(DeleteChecked(block, 2 * size), Naming("sized delete of ", block));
    DeleteChecked(block, size);
  }
}

TEST_F(DeallocateDeathTest, WritesAfterFree) {
  for (uint64_t value : {uint64_t{0}, uint64_t{1}, UINT64_MAX, uint64_t{0x4141414141414141}}) {
    void* block = Allocate(64);
    Deallocate(block);
    const uint64_t link = LinkWord(block);
    LinkWord(block) = value;
    EXPECT_DEATH(Allocate(64), Naming("corrupted free list: object at ", block));
    LinkWord(block) = link;
  }
}

}  // namespace
}  // namespace tcmalloc::testing
