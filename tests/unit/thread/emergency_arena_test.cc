// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "thread/emergency_arena.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "system/system_calls.h"

namespace tcmalloc::testing {
namespace {

// Without memory of the system's beyond the first part.
class EmergencyArenaTest : public ::testing::Test {
 protected:
  EmergencyArenaTest() {
    system_calls.mmap = [](void*, size_t, int, int, int, off_t) { return MAP_FAILED; };
  }
  ~EmergencyArenaTest() override { system_calls = real_system_calls; }

  // Fills the arena; returns the blocks.
  std::vector<void*> Exhaust(size_t bytes) {
    std::vector<void*> blocks;
    while (void* block = arena_->Allocate(bytes, 16)) blocks.push_back(block);
    return blocks;
  }
  void FreeAll(const std::vector<void*>& blocks) {
    for (void* block : blocks) arena_->Free(block);
  }

  std::unique_ptr<EmergencyMemory> memory_ = std::make_unique<EmergencyMemory>();
  std::unique_ptr<EmergencyArena> arena_ = std::make_unique<EmergencyArena>(*memory_);
};

TEST_F(EmergencyArenaTest, BlocksAreAlignedAndKnowTheirSize) {
  for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
    for (size_t bytes : {0, 1, 8, 15, 16, 17, 1000}) {
      void* block = arena_->Allocate(bytes, alignment);
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % std::max<size_t>(alignment, 16), 0u);
      EXPECT_TRUE(arena_->Owns(block));
      EXPECT_GE(EmergencyArena::SizeOf(block), std::max<size_t>(bytes, 1));
      EXPECT_LT(EmergencyArena::SizeOf(block), bytes + 32);
      arena_->Free(block);
    }
  }
}

TEST_F(EmergencyArenaTest, BlocksDoNotOverlap) {
  std::mt19937_64 random(1);
  std::vector<std::pair<unsigned char*, size_t>> blocks;
  while (true) {
    const size_t bytes = 1 + random() % 3000;
    void* block = arena_->Allocate(bytes, size_t{1} << random() % 9);
    if (block == nullptr) break;
    const size_t size = EmergencyArena::SizeOf(block);
    std::memset(block, static_cast<int>(blocks.size() % 255), size);
    blocks.emplace_back(static_cast<unsigned char*>(block), size);
  }
  EXPECT_GT(blocks.size(), 50u);
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto [start, size] = blocks[i];
    ASSERT_EQ(EmergencyArena::SizeOf(start), size);
    ASSERT_EQ(std::count(start, start + size, i % 255), static_cast<long>(size));
  }
}

TEST_F(EmergencyArenaTest, OwnsNothingElse) {
  EXPECT_FALSE(arena_->Owns(nullptr));
  EXPECT_FALSE(arena_->Owns(&arena_));
  const auto begin = reinterpret_cast<uintptr_t>(memory_->bytes);
  EXPECT_FALSE(arena_->Owns(reinterpret_cast<void*>(begin - 1)));
  EXPECT_TRUE(arena_->Owns(reinterpret_cast<void*>(begin)));
  EXPECT_FALSE(arena_->Owns(reinterpret_cast<void*>(begin + sizeof(EmergencyMemory))));
  EXPECT_FALSE(arena_->Owns(reinterpret_cast<void*>(UINTPTR_MAX)));
}

TEST_F(EmergencyArenaTest, WhatDoesNotFitIsRefused) {
  EXPECT_EQ(arena_->Allocate(sizeof(EmergencyMemory), 16), nullptr);
  EXPECT_EQ(arena_->Allocate(SIZE_MAX, 16), nullptr);
  EXPECT_EQ(arena_->Allocate(SIZE_MAX - 64, 16), nullptr);
  EXPECT_EQ(arena_->Allocate(1, size_t{1} << 40), nullptr);
  EXPECT_EQ(arena_->Allocate(1, size_t{1} << 63), nullptr);
  EXPECT_NE(arena_->Allocate(100'000, 16), nullptr);
}

TEST_F(EmergencyArenaTest, GrowsByChunksThatStay) {
  system_calls = real_system_calls;
  std::vector<void*> blocks;
  for (size_t bytes = 1000; bytes < size_t{64} << 20; bytes *= 3) {
    void* block = arena_->Allocate(bytes, 4096);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 4096, 0u);
    EXPECT_TRUE(arena_->Owns(block));
    std::memset(block, 1, bytes);
    blocks.push_back(block);
  }
  void* const last = blocks.back();
  EXPECT_FALSE(arena_->Owns(&last));
  FreeAll(blocks);
  EXPECT_TRUE(arena_->Owns(last));
}

TEST_F(EmergencyArenaTest, StartsOverWhenItsLastBlockIsFreed) {
  const std::vector<void*> blocks = Exhaust(1000);
  ASSERT_GT(blocks.size(), 100u);
  EXPECT_EQ(arena_->Allocate(1000, 16), nullptr);
  FreeAll(blocks);
  EXPECT_EQ(Exhaust(1000), blocks);
}

TEST_F(EmergencyArenaTest, AChunkThatStartsOverGivesItsPagesBack) {
  static size_t dropped;
  dropped = 0;
  Exhaust(16);  // the static parts
  system_calls = real_system_calls;
  system_calls.madvise = [](void*, size_t bytes, int) {
    dropped += bytes;
    return 0;
  };
  std::vector<void*> blocks;
  for (int i = 0; i < 500; ++i) blocks.push_back(arena_->Allocate(1000, 16));
  void* const last = blocks.back();
  blocks.pop_back();
  FreeAll(blocks);
  EXPECT_EQ(dropped, 0u);
  arena_->Free(last);
  EXPECT_GE(dropped, 490'000u);
  EXPECT_EQ(arena_->Allocate(1000, 16), blocks[0]);
}

// A thread that does not get on holds a block for long.
TEST_F(EmergencyArenaTest, ABlockHoldsUpNoMoreThanItsPart) {
  void* const held = arena_->Allocate(1000, 16);
  for (int i = 0; i < 10'000; ++i) {
    void* const block = arena_->Allocate(4000, 16);
    ASSERT_NE(block, nullptr);
    ASSERT_NE(block, held);
    arena_->Free(block);
  }
  arena_->Free(held);
  EXPECT_EQ(arena_->Allocate(1000, 16), held);
}

TEST_F(EmergencyArenaTest, NoPartStartsOverBeforeItsLastBlockIsFreed) {
  std::vector<void*> blocks = Exhaust(1000);
  std::vector<void*> kept;
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (i % 8 == 0) {
      kept.push_back(blocks[i]);
    } else {
      arena_->Free(blocks[i]);
    }
  }
  EXPECT_EQ(arena_->Allocate(1000, 16), nullptr) << "one block in eight is still in use";
  FreeAll(kept);
  EXPECT_EQ(Exhaust(1000), blocks);
}

TEST_F(EmergencyArenaTest, Threads) {
  std::vector<std::thread> threads;
  for (unsigned char thread = 1; thread <= 4; ++thread) {
    threads.emplace_back([this, thread] {
      std::mt19937_64 random(thread);
      for (int round = 0; round < 5000; ++round) {
        std::vector<unsigned char*> blocks;
        for (int i = 0; i < 4; ++i) {
          void* block = arena_->Allocate(1 + random() % 100, 16);
          if (block == nullptr) continue;
          std::memset(block, thread, EmergencyArena::SizeOf(block));
          blocks.push_back(static_cast<unsigned char*>(block));
        }
        for (unsigned char* block : blocks) {
          const auto size = EmergencyArena::SizeOf(block);
          ASSERT_EQ(std::count(block, block + size, thread), static_cast<long>(size));
          arena_->Free(block);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // All blocks are free, so everything fits again.
  EXPECT_NE(arena_->Allocate(120'000, 16), nullptr);
}

}  // namespace
}  // namespace tcmalloc::testing
