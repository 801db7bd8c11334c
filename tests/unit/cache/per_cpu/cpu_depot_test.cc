// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/per_cpu/cpu_depot.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "cache/idle_bytes.h"
#include "cache/scatter.h"
#include "fakes/object_space.h"
#include "size_class/size_classes.h"

namespace tcmalloc::testing {
namespace {

// A depot of batches that are told apart by the first word of their arrays.
class CpuDepotTest : public ::testing::Test {
 protected:
  static constexpr uint8_t k16 = SizeClassFor(16);
  static constexpr uint8_t k64 = SizeClassFor(64);
  static constexpr uint32_t kBatch = 10;

  void Push(uint8_t c, uintptr_t name) { ASSERT_TRUE(depot_.Push(c, Named(name), arrays_)); }
  uintptr_t Pop(uint8_t c) { return NameOf(depot_.Pop(c)); }
  std::vector<uintptr_t> TakeLeaving(uint8_t c, uint32_t most) {
    std::vector<ObjectArray> out(most);
    out.resize(depot_.TakeLeaving(c, out.data(), most));
    std::vector<uintptr_t> names;
    for (const ObjectArray array : out) names.push_back(NameOf(array));
    return names;
  }
  void NoteFetches(uint8_t c, int count) {
    for (int i = 0; i < count; ++i) depot_.NoteFetch(c);
  }

  ObjectArray Named(uintptr_t name) {
    auto** objects = reinterpret_cast<void**>(arrays_.Allocate(4));
    objects[0] = reinterpret_cast<void*>(name);
    return {objects, kBatch};
  }
  static uintptr_t NameOf(ObjectArray array) {
    return array.count == 0 ? 0 : reinterpret_cast<uintptr_t>(array.objects[0]);
  }

  ObjectSpace space_;
  ChainArrays arrays_{space_.arena};
  CpuDepot depot_;
};

TEST_F(CpuDepotTest, StartsEmpty) {
  EXPECT_EQ(depot_.CountKept(k64), 0u);
  EXPECT_EQ(depot_.CountObjects(k64), 0u);
  EXPECT_EQ(depot_.CountKeptBytes(), 0);
  EXPECT_EQ(Pop(k64), 0u);
  EXPECT_EQ(depot_.CountUnneeded(k64), 0u);
  EXPECT_TRUE(TakeLeaving(k64, 3).empty());
}

TEST_F(CpuDepotTest, TheLastComesFirst) {
  for (uintptr_t name = 1; name <= 100; ++name) Push(k64, name);
  Push(k16, 1000);
  EXPECT_EQ(depot_.CountKept(k64), 100u);
  EXPECT_EQ(depot_.CountObjects(k64), 100 * kBatch);
  EXPECT_EQ(depot_.CountKeptBytes(), (100 * 64 + 16) * int64_t{kBatch});
  for (uintptr_t name = 100; name >= 1; --name) EXPECT_EQ(Pop(k64), name);
  EXPECT_EQ(Pop(k64), 0u);
  EXPECT_EQ(Pop(k16), 1000u);
  EXPECT_EQ(depot_.CountKeptBytes(), 0);
}

TEST_F(CpuDepotTest, AdmitsAsManyAsWereFetched) {
  EXPECT_FALSE(depot_.Admits(k64));
  NoteFetches(k64, 2);
  for (uintptr_t name = 1; name <= 2; ++name) {
    EXPECT_TRUE(depot_.Admits(k64));
    Push(k64, name);
  }
  EXPECT_FALSE(depot_.Admits(k64));
  EXPECT_FALSE(depot_.Admits(k16));
  Pop(k64);
  EXPECT_TRUE(depot_.Admits(k64));
}

TEST_F(CpuDepotTest, AdmitsFewerWhereManyAreRefused) {
  NoteFetches(k64, 10);
  for (uintptr_t name = 1; name <= 10; ++name) Push(k64, name);
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(depot_.Admits(k64));
  for (int i = 0; i < 9; ++i) Pop(k64);
  EXPECT_FALSE(depot_.Admits(k64));
  Pop(k64);
  EXPECT_TRUE(depot_.Admits(k64)) << "one is admitted always";
}

TEST_F(CpuDepotTest, AMissTellsIfAClassStillOutgrows) {
  depot_.outgrowth(k64).NoteKept(Scatter::kInPieces, kPiecesKeptBytes, true);
  depot_.outgrowth(k64).NoteMiss();
  EXPECT_TRUE(depot_.outgrowth(k64).active()) << "nothing went home yet";
  depot_.outgrowth(k64).NoteSentHome(kOutgrownBytes);
  depot_.outgrowth(k64).NoteMiss();
  EXPECT_TRUE(depot_.outgrowth(k64).active());
  depot_.outgrowth(k64).NoteSentHome(kOutgrownBytes - 64);
  depot_.outgrowth(k64).NoteMiss();
  EXPECT_FALSE(depot_.outgrowth(k64).active());
}

TEST_F(CpuDepotTest, TheOldestGoFirst) {
  for (uintptr_t name = 1; name <= 10; ++name) Push(k64, name);
  EXPECT_EQ(depot_.LetGo(k64, 3), 3 * 64 * int64_t{kBatch});
  EXPECT_EQ(depot_.CountKept(k64), 7u);
  EXPECT_EQ(depot_.CountObjects(k64), 10 * kBatch) << "they are still there";
  EXPECT_EQ(depot_.CountKeptBytes(), 7 * 64 * int64_t{kBatch});
  EXPECT_EQ(depot_.LetGo(k64, 1), 64 * int64_t{kBatch});
  EXPECT_EQ(TakeLeaving(k64, 2), (std::vector<uintptr_t>{1, 2}));
  EXPECT_EQ(TakeLeaving(k64, 5), (std::vector<uintptr_t>{3, 4}));
  EXPECT_EQ(depot_.CountObjects(k64), 6 * kBatch);
  for (uintptr_t name = 10; name >= 5; --name) EXPECT_EQ(Pop(k64), name);
}

TEST_F(CpuDepotTest, WhatHasToGoIsNotHandedOut) {
  for (uintptr_t name = 1; name <= 3; ++name) Push(k64, name);
  depot_.LetGo(k64, 3);
  EXPECT_EQ(Pop(k64), 0u);
  Push(k64, 4);
  EXPECT_EQ(Pop(k64), 4u);
  EXPECT_EQ(TakeLeaving(k64, 9), (std::vector<uintptr_t>{1, 2, 3}));
}

TEST_F(CpuDepotTest, HalfOfAnUnusedClassIsUnneeded) {
  for (uintptr_t name = 1; name <= 9; ++name) Push(k64, name);
  EXPECT_EQ(depot_.CountUnneeded(k64), 0u) << "they came just now";
  EXPECT_EQ(depot_.CountUnneeded(k64), 5u);
  depot_.LetGo(k64, 5);
  EXPECT_EQ(depot_.CountUnneeded(k64), 2u);
}

TEST_F(CpuDepotTest, WhatAllWereTakenFromIsNeeded) {
  for (int round = 0; round < 20; ++round) {
    for (uintptr_t name = 1; name <= 9; ++name) Push(k64, name);
    EXPECT_EQ(depot_.CountUnneeded(k64), 0u);
    while (Pop(k64) != 0) {
    }
    EXPECT_EQ(depot_.CountUnneeded(k64), 0u);
  }
}

TEST_F(CpuDepotTest, WhatStaysWhileManyComeAndGoIsUnneeded) {
  for (uintptr_t name = 1; name <= 9; ++name) Push(k64, name);
  uint32_t unneeded = 0;
  int pairs = 0;
  for (; pairs < 100 && unneeded == 0; ++pairs) {
    Pop(k64);
    Push(k64, 9);
    unneeded = depot_.CountUnneeded(k64);
  }
  EXPECT_EQ(unneeded, 4u) << "half of the eight that stayed";
  EXPECT_GT(pairs, 2 * 9) << "they may come and go later";
}

TEST_F(CpuDepotTest, AClassOfWhichNoneWasTakenIsIdle) {
  const auto many = static_cast<uint32_t>(kManyIdleBytes) / (64 * kBatch) + 1;
  for (uint32_t i = 1; i < many; ++i) Push(k64, i);
  EXPECT_EQ(depot_.CountIdle(k64), 0u) << "they hold little";
  Push(k64, many);
  EXPECT_EQ(depot_.CountIdle(k64), many);
  Push(k64, Pop(k64));
  EXPECT_EQ(depot_.CountIdle(k64), 0u) << "one was needed";
  EXPECT_EQ(depot_.CountIdle(k64), many);
}

TEST_F(CpuDepotTest, FindsEachBatch) {
  for (uintptr_t name = 1; name <= 3; ++name) Push(k64, name);
  depot_.LetGo(k64, 1);
  std::vector<uintptr_t> names;
  depot_.ForEach(k64, [&](ObjectArray array) {
    names.push_back(NameOf(array));
    return true;
  });
  EXPECT_EQ(names, (std::vector<uintptr_t>{3, 2, 1}));
}

TEST_F(CpuDepotTest, WithoutMemoryNothingIsKept) {
  const ObjectArray batch = Named(1);
  space_.metadata.exhausted = true;
  while (space_.arena.Allocate(8, 8) != nullptr) {
  }
  EXPECT_FALSE(depot_.Push(k64, batch, arrays_));
  EXPECT_EQ(depot_.CountObjects(k64), 0u);
}

}  // namespace
}  // namespace tcmalloc::testing
