// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "thread/deferred_frees.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace tcmalloc::testing {
namespace {

struct Block {
  void* word = nullptr;
  std::atomic<int> drained{0};
};

TEST(DeferredFrees, DrainGivesEveryBlockOnceWithAZeroWord) {
  DeferredFrees deferred;
  EXPECT_TRUE(deferred.empty());
  std::array<Block, 10> blocks;
  for (Block& block : blocks) deferred.Push(&block);
  EXPECT_FALSE(deferred.empty());
  deferred.Drain([](void* pointer) {
    auto* block = static_cast<Block*>(pointer);
    EXPECT_EQ(block->word, nullptr);
    ++block->drained;
  });
  EXPECT_TRUE(deferred.empty());
  for (const Block& block : blocks) EXPECT_EQ(block.drained, 1);
  deferred.Drain([](void*) { FAIL() << "nothing is left"; });
}

TEST(DeferredFrees, ABlockMayBePushedWhileOthersAreDrained) {
  DeferredFrees deferred;
  std::array<Block, 3> blocks;
  deferred.Push(&blocks[0]);
  deferred.Push(&blocks[1]);
  deferred.Drain([&](void* pointer) {
    ++static_cast<Block*>(pointer)->drained;
    if (pointer == &blocks[0]) deferred.Push(&blocks[2]);
  });
  EXPECT_FALSE(deferred.empty());
  deferred.Drain([&](void* pointer) { EXPECT_EQ(pointer, &blocks[2]); });
}

TEST(DeferredFrees, Threads) {
  constexpr size_t kThreads = 4;
  constexpr size_t kBlocks = 5000;
  DeferredFrees deferred;
  std::vector<std::vector<Block>> blocks(kThreads);
  std::vector<std::thread> threads;
  const auto drain = [&] {
    deferred.Drain([](void* pointer) { ++static_cast<Block*>(pointer)->drained; });
  };
  for (std::vector<Block>& own : blocks) {
    own = std::vector<Block>(kBlocks);
    threads.emplace_back([&] {
      for (size_t i = 0; i < kBlocks; ++i) {
        deferred.Push(&own[i]);
        if (i % 100 == 0) drain();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  drain();
  for (const std::vector<Block>& own : blocks) {
    for (const Block& block : own) ASSERT_EQ(block.drained, 1);
  }
}

}  // namespace
}  // namespace tcmalloc::testing
