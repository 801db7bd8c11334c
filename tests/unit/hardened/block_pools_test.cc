// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hardened/block_pools.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "heap/heap.h"

namespace tcmalloc {
namespace {

constexpr uint8_t kPart = 1;
constexpr uint8_t kClass = SizeClassFor(64);

void* Numbered(uintptr_t number) { return reinterpret_cast<void*>(number * 16); }

class BlockPoolsTest : public ::testing::Test {
 protected:
  // Adds blocks from `first` on until there is no room. Returns the number after the last one.
  uintptr_t Fill(uintptr_t first) {
    while (pools_->TryAdd(kPart, Numbered(first), kClass)) ++first;
    return first;
  }
  // Takes all blocks out whose turn comes.
  std::vector<void*> TakeWhatHasCome() {
    std::vector<void*> taken;
    for (;;) {
      const BlockPools::Turn turn = pools_->Next(kPart, kClass);
      if (!turn.has_come()) return taken;
      taken.push_back(turn.block());
      turn.Take();
    }
  }

  std::unique_ptr<BlockPools> pools_ = std::make_unique<BlockPools>();
};

TEST_F(BlockPoolsTest, OnlyPartsOfOneThreadArePools) {
  EXPECT_FALSE(BlockPools::IsPool(0));
  EXPECT_TRUE(BlockPools::IsPool(1));
  EXPECT_TRUE(BlockPools::IsPool(Quarantine::kOwnParts));
  EXPECT_FALSE(BlockPools::IsPool(Quarantine::kOwnParts + 1));
  EXPECT_FALSE(BlockPools::IsPool(UINT8_MAX));
}

TEST_F(BlockPoolsTest, EveryBlockComesOutOnceAndNoneSoon) {
  ASSERT_TRUE(pools_->Initialize(heap.arena(), 64 * BlockPools::kMostBlocks, 1));
  std::vector<void*> taken;
  uintptr_t next = 1;
  for (int round = 0; round < 20; ++round) {
    next = Fill(next);
    for (void* block : TakeWhatHasCome()) {
      taken.push_back(block);
      const auto number = reinterpret_cast<uintptr_t>(block) / 16;
      EXPECT_LT(number + BlockPools::kFewestWaiting, next);
    }
  }
  EXPECT_GT(taken.size(), 10 * BlockPools::kMostBlocks);
  EXPECT_FALSE(std::is_sorted(taken.begin(), taken.end()));
  while (void* block = pools_->TakeAny(kPart)) taken.push_back(block);
  EXPECT_EQ(taken.size(), next - 1);
  EXPECT_EQ(std::set<void*>(taken.begin(), taken.end()).size(), taken.size());
}

TEST_F(BlockPoolsTest, AFullListGivesUpABatch) {
  ASSERT_TRUE(pools_->Initialize(heap.arena(), 64 * BlockPools::kMostBlocks, 1));
  const uintptr_t next = Fill(1);
  EXPECT_EQ(next, BlockPools::kMostBlocks + 1);
  std::set<void*> left;
  for (size_t i = pools_->Batch(kPart, kClass); i > 0; --i) {
    const BlockPools::Turn turn = pools_->Next(kPart, kClass);
    ASSERT_NE(turn.block(), nullptr);
    left.insert(turn.block());
    turn.Take();
  }
  EXPECT_EQ(left.size(), pools_->Batch(kPart, kClass));
  EXPECT_TRUE(pools_->TryAdd(kPart, Numbered(next), kClass));
  EXPECT_EQ(pools_->Wanted(kPart, kClass), 0u);
}

TEST_F(BlockPoolsTest, AnEmptyListWantsBlocksUntilOneHasCome) {
  ASSERT_TRUE(pools_->Initialize(heap.arena(), 64 * BlockPools::kMostBlocks, 1));
  const size_t wanted = pools_->Wanted(kPart, kClass);
  ASSERT_GT(wanted, 0u);
  for (uintptr_t i = 1; i <= wanted; ++i) ASSERT_TRUE(pools_->TryAdd(kPart, Numbered(i), kClass));
  EXPECT_EQ(pools_->Wanted(kPart, kClass), 0u);
  EXPECT_TRUE(pools_->Next(kPart, kClass).has_come());
}

TEST_F(BlockPoolsTest, FewPlacesKeepBlocksUntilTheyAreFull) {
  constexpr size_t kPlaces = 3;
  ASSERT_TRUE(pools_->Initialize(heap.arena(), kPlaces * 64, 1));
  EXPECT_EQ(pools_->Wanted(kPart, kClass), 0u);
  EXPECT_EQ(Fill(1), kPlaces + 1);
  EXPECT_FALSE(pools_->Next(kPart, kClass).has_come());
  EXPECT_EQ(pools_->Batch(kPart, kClass), 1u);
  EXPECT_NE(pools_->Next(kPart, kClass).block(), nullptr);
}

TEST_F(BlockPoolsTest, WithoutBytesNothingIsKept) {
  ASSERT_TRUE(pools_->Initialize(heap.arena(), 0, 1));
  EXPECT_FALSE(pools_->TryAdd(kPart, Numbered(1), kClass));
  EXPECT_EQ(pools_->Next(kPart, kClass).block(), nullptr);
  EXPECT_FALSE(pools_->Next(kPart, kClass).has_come());
}

TEST_F(BlockPoolsTest, OthersSeeWhatWaitsUntilItLeaves) {
  ASSERT_TRUE(pools_->Initialize(heap.arena(), 64 * BlockPools::kMostBlocks, 1));
  Fill(1);
  const BlockPools::Turn turn = pools_->Next(kPart, kClass);
  void* leaving = turn.block();
  std::set<void*> seen;
  pools_->LookAtOthers(kPart + 1, [&](void* block, auto is_there) {
    EXPECT_TRUE(is_there());
    seen.insert(block);
    if (block != leaving) return;
    turn.Take();
    EXPECT_FALSE(is_there());
  });
  EXPECT_EQ(seen.size(), BlockPools::kMostBlocks);
  pools_->LookAtOthers(kPart, [](void*, auto) { FAIL(); });
}

}  // namespace
}  // namespace tcmalloc
