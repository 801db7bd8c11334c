// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hardened/block_pools.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <set>
#include <vector>

#include "allocator/slow_path.h"
#include "heap/heap.h"

namespace tcmalloc {
namespace {

constexpr uint8_t kPart = 1;
constexpr uint8_t kClass = SizeClassFor(64);

void* Numbered(uintptr_t number) { return reinterpret_cast<void*>(number * 16); }

class BlockPoolsTest : public ::testing::Test {
 protected:
  void Initialize(size_t places, uint64_t seed = 1) {
    // Others see the pools that threads with front ends have.
    {
      const SlowPath gets_a_front_end;
    }
    while (Quarantine::OwnParts() < kPart) Quarantine::ChoosePart(0);
    ASSERT_TRUE(pools_->Initialize(heap.arena(), places * 64, Filling(), seed));
  }
  // Adds blocks from `first` on until there is no room. Returns the number after the last one.
  uintptr_t Fill(uintptr_t first) {
    while (pools_->TryAdd(kPart, Numbered(first), kClass)) ++first;
    return first;
  }
  // Adds a block where one has gone.
  bool Add(void* block) {
    return pools_->FindRoom(kPart, kClass) > 0 && pools_->TryAdd(kPart, block, kClass);
  }
  std::vector<void*> TakeOldest(size_t most) {
    std::vector<void*> taken;
    const size_t count =
        pools_->TakeOldest(kPart, kClass, most,
                           [&](void* block, const BlockPools::Facts&) { taken.push_back(block); });
    EXPECT_EQ(taken.size(), count);
    return taken;
  }
  // Makes a group of the blocks that wait longest, but for those for which leaves(block) is true.
  // Returns it in order, or nothing if too few blocks may go.
  template <typename F>
  std::vector<void*> OldestGroup(F leaves) {
    const size_t size = pools_->GroupSize(kPart, kClass);
    if (pools_->MayGo(kPart, kClass) < size) return {};
    const bool is_made = pools_->MakeGroup(kPart, kClass, size, leaves);
    std::vector<void*> group = TakeGroup();
    EXPECT_EQ(group.empty(), !is_made);
    return group;
  }
  std::vector<void*> OldestGroup() {
    return OldestGroup([](void*) { return false; });
  }
  // Takes all blocks of the group out, in order.
  std::vector<void*> TakeGroup() {
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
  Initialize(BlockPools::kMostBlocks);
  std::vector<void*> taken;
  uintptr_t next = 1;
  for (int round = 0; round < 20; ++round) {
    next = Fill(next);
    for (std::vector<void*> group = OldestGroup(); !group.empty(); group = OldestGroup()) {
      taken.insert(taken.end(), group.begin(), group.end());
    }
    for (void* block : taken) {
      EXPECT_LT(reinterpret_cast<uintptr_t>(block) / 16 + BlockPools::kFewestWaiting, next);
    }
  }
  EXPECT_GT(taken.size(), 10 * BlockPools::kMostBlocks);
  while (void* block = pools_->TakeAny(kPart)) taken.push_back(block);
  EXPECT_EQ(taken.size(), next - 1);
  EXPECT_EQ(std::set<void*>(taken.begin(), taken.end()).size(), taken.size());
}

TEST_F(BlockPoolsTest, NeighboursInTimeStayInOneGroupAtEachPass) {
  Initialize(BlockPools::kMostBlocks);
  Fill(1);
  for (int group = 0; group < 1000; ++group) {
    const std::vector<void*> taken = OldestGroup();
    ASSERT_EQ(taken.size(), BlockPools::kGroup);
    const auto group_of = [](void* block) {
      return (reinterpret_cast<uintptr_t>(block) / 16 - 1) / BlockPools::kGroup;
    };
    for (void* block : taken) {
      ASSERT_EQ(group_of(block), group_of(taken[0]));
      ASSERT_TRUE(Add(block));
    }
  }
}

TEST_F(BlockPoolsTest, EveryBlockOfAGroupMayComeFirstOrLast) {
  Initialize(BlockPools::kMostBlocks);
  Fill(1);
  constexpr size_t kGroup = BlockPools::kGroup;
  constexpr int kTries = 4096;
  std::vector<int> first(kGroup);
  std::vector<int> last(kGroup);
  for (int i = 0; i < kTries; ++i) {
    std::vector<void*> taken = OldestGroup();
    ASSERT_EQ(taken.size(), kGroup);
    ++first[(reinterpret_cast<uintptr_t>(taken.front()) / 16 - 1) % kGroup];
    ++last[(reinterpret_cast<uintptr_t>(taken.back()) / 16 - 1) % kGroup];
    std::sort(taken.begin(), taken.end());
    for (void* block : taken) ASSERT_TRUE(Add(block));
  }
  // Six standard deviations.
  for (size_t b = 0; b < kGroup; ++b) {
    EXPECT_NEAR(first[b], kTries / kGroup, 67) << b;
    EXPECT_NEAR(last[b], kTries / kGroup, 67) << b;
  }
}

TEST_F(BlockPoolsTest, BlocksThatLeaveAreInNoGroup) {
  Initialize(BlockPools::kMostBlocks);
  Fill(1);
  const auto taken = OldestGroup([](void* block) { return block == Numbered(3); });
  EXPECT_EQ(taken.size(), BlockPools::kGroup - 1);
  EXPECT_EQ(std::count(taken.begin(), taken.end(), Numbered(3)), 0);
  EXPECT_TRUE(OldestGroup([](void*) { return true; }).empty());
}

TEST_F(BlockPoolsTest, NewObjectsChangePlacesWithNeighbours) {
  Initialize(BlockPools::kMostBlocks);
  constexpr int kTries = 1024;
  constexpr size_t kPlaces = 2;
  std::vector<int> seen(kPlaces * kPlaces);
  for (int i = 0; i < kTries; ++i) {
    std::vector<void*> objects;
    for (uintptr_t o = 0; o < BlockPools::kRun; ++o) objects.push_back(Numbered(o));
    pools_->MakeRun(kPart, kClass, objects.data(), objects.size());
    EXPECT_FALSE(pools_->Next(kPart, kClass).is_filled());
    const std::vector<void*> taken = TakeGroup();
    ASSERT_EQ(std::set<void*>(taken.begin(), taken.end()).size(), BlockPools::kRun);
    for (size_t place = 0; place < taken.size(); ++place) {
      const size_t object = reinterpret_cast<uintptr_t>(taken[place]) / 16;
      ASSERT_EQ(object / kPlaces, place / kPlaces);
      if (object < kPlaces) ++seen[object * kPlaces + place];
    }
  }
  // Six standard deviations.
  for (const int times : seen) EXPECT_NEAR(times, kTries / kPlaces, 84);
}

TEST_F(BlockPoolsTest, FewNewObjectsChangePlacesToo) {
  Initialize(BlockPools::kMostBlocks);
  for (size_t count = 1; count < 8; ++count) {
    std::vector<void*> objects;
    for (uintptr_t o = 0; o < count; ++o) objects.push_back(Numbered(o + 1));
    std::set<std::vector<void*>> orders;
    for (int i = 0; i < 2000; ++i) {
      pools_->MakeRun(kPart, kClass, objects.data(), count);
      std::vector<void*> taken = TakeGroup();
      orders.insert(taken);
      std::sort(taken.begin(), taken.end());
      ASSERT_EQ(taken, objects);
    }
    EXPECT_EQ(orders.size(), size_t{1} << count / 2);
  }
}

TEST_F(BlockPoolsTest, GroupsOfNewObjectsBecomeLonger) {
  Initialize(BlockPools::kMostBlocks);
  for (size_t most = BlockPools::kFirstRun; most <= BlockPools::kRun; most *= 2) {
    ASSERT_EQ(pools_->MostInRun(kPart, kClass), most);
    void* object = Numbered(1);
    pools_->MakeRun(kPart, kClass, &object, 1);
    TakeGroup();
  }
  EXPECT_EQ(pools_->MostInRun(kPart, kClass), BlockPools::kRun);
}

TEST_F(BlockPoolsTest, ThePlacesOfAFullQueueServeTheNextBlocks) {
  Initialize(BlockPools::kMostBlocks);
  const uintptr_t next = Fill(1);
  EXPECT_EQ(next, BlockPools::kMostBlocks + 1);
  const std::vector<void*> left = TakeOldest(pools_->Batch(kPart, kClass));
  ASSERT_EQ(left.size(), BlockPools::kMostBlocks / BlockPools::kShare);
  for (uintptr_t i = 0; i < left.size(); ++i) EXPECT_EQ(left[i], Numbered(i + 1));
  EXPECT_EQ(Fill(next), next + left.size());
}

TEST_F(BlockPoolsTest, TheGroupStaysWhenBlocksOfTheQueueLeave) {
  Initialize(BlockPools::kMostBlocks);
  Fill(1);
  std::vector<void*> objects;
  constexpr size_t kFew = 5;
  ASSERT_TRUE(pools_->MakeGroup(kPart, kClass, kFew, [](void*) { return false; }));
  TakeGroup();
  for (uintptr_t o = 0; o < kFew; ++o) objects.push_back(Numbered(1000 + o));
  pools_->MakeRun(kPart, kClass, objects.data(), objects.size());
  for (size_t batch = 1; batch <= 2 * kFew; ++batch) {
    ASSERT_EQ(TakeOldest(batch).size(), batch);
  }
  std::vector<void*> group = TakeGroup();
  std::sort(group.begin(), group.end());
  EXPECT_EQ(group, objects);
  std::set<void*> seen;
  pools_->LookAtOthers(kPart + 1,
                       [&](void* block, auto) { EXPECT_TRUE(seen.insert(block).second); });
  EXPECT_EQ(seen.size(), BlockPools::kMostBlocks - kFew - kFew * (2 * kFew + 1));
}

TEST_F(BlockPoolsTest, NewObjectsHaveThePlacesThatTheQueueLeaves) {
  Initialize(BlockPools::kMostBlocks);
  for (size_t runs = BlockPools::kFirstRun; runs < BlockPools::kRun; runs *= 2) {
    pools_->MakeRun(kPart, kClass, nullptr, 0);
  }
  EXPECT_EQ(pools_->MostInRun(kPart, kClass), BlockPools::kRun);
  Fill(1);
  EXPECT_EQ(pools_->MostInRun(kPart, kClass), 0u);
  // All of a group are samples, so that new objects follow.
  EXPECT_TRUE(OldestGroup([](void*) { return true; }).empty());
  const size_t most = pools_->MostInRun(kPart, kClass);
  EXPECT_EQ(most, BlockPools::kGroup);
  std::vector<void*> objects(most);
  for (size_t o = 0; o < most; ++o) objects[o] = Numbered(1000 + o);
  pools_->MakeRun(kPart, kClass, objects.data(), most);
  EXPECT_FALSE(pools_->TryAdd(kPart, Numbered(1), kClass));
  EXPECT_EQ(TakeGroup().size(), most);
  EXPECT_EQ(TakeOldest(BlockPools::kMostBlocks).size(), BlockPools::kMostBlocks - most);
}

// Blocks of the group have the places of others.
TEST_F(BlockPoolsTest, RoomComesWithTheBlocksThatGo) {
  Initialize(BlockPools::kMostBlocks);
  uintptr_t next = Fill(1);
  ASSERT_TRUE(pools_->MakeGroup(kPart, kClass, BlockPools::kGroup, [](void*) { return false; }));
  EXPECT_EQ(Fill(next), next);
  EXPECT_EQ(pools_->FindRoom(kPart, kClass), 0u);
  pools_->Next(kPart, kClass).Take();
  pools_->Next(kPart, kClass).Take();
  EXPECT_EQ(Fill(next), next);
  EXPECT_EQ(pools_->FindRoom(kPart, kClass), 2u);
  EXPECT_EQ(Fill(next), next + 2);
}

TEST_F(BlockPoolsTest, WithoutAPoolNoTurnComesAndNoPlaceIsFree) {
  Initialize(BlockPools::kMostBlocks);
  for (const uint8_t part : std::initializer_list<uint8_t>{0, Quarantine::kOwnParts + 1, 255}) {
    EXPECT_FALSE(pools_->Next(part, kClass).has_come());
    EXPECT_FALSE(pools_->PlaceFor(part, kClass).is_free());
  }
}

TEST_F(BlockPoolsTest, FewPlacesKeepBlocksUntilTheyAreFull) {
  constexpr size_t kPlaces = 3;
  Initialize(kPlaces);
  EXPECT_EQ(Fill(1), kPlaces + 1);
  EXPECT_EQ(pools_->MayGo(kPart, kClass), 0u);
  EXPECT_EQ(pools_->Batch(kPart, kClass), 1u);
}

TEST_F(BlockPoolsTest, WithoutBytesNothingIsKept) {
  Initialize(0);
  EXPECT_FALSE(pools_->TryAdd(kPart, Numbered(1), kClass));
  EXPECT_EQ(pools_->MayGo(kPart, kClass), 0u);
  EXPECT_FALSE(pools_->Next(kPart, kClass).has_come());
  EXPECT_EQ(pools_->TakeAny(kPart), nullptr);
}

TEST_F(BlockPoolsTest, TheGroupStaysWhereNoBlockWaits) {
  for (const size_t places : {size_t{0}, BlockPools::kMostBlocks}) {
    pools_ = std::make_unique<BlockPools>();
    Initialize(places);
    void* objects[] = {Numbered(1), Numbered(2), Numbered(3)};
    pools_->MakeRun(kPart, kClass, objects, std::size(objects));
    EXPECT_TRUE(TakeOldest(BlockPools::kMostBlocks).empty());
    std::vector<void*> taken = TakeGroup();
    std::sort(taken.begin(), taken.end());
    EXPECT_EQ(taken, std::vector<void*>(std::begin(objects), std::end(objects)));
  }
}

TEST_F(BlockPoolsTest, OthersSeeWhatWaitsUntilItLeaves) {
  Initialize(BlockPools::kMostBlocks);
  Fill(1);
  ASSERT_TRUE(pools_->MakeGroup(kPart, kClass, 2, [](void*) { return false; }));
  const BlockPools::Turn turn = pools_->Next(kPart, kClass);
  EXPECT_TRUE(turn.is_filled());
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
