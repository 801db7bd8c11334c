// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "transfer/chain_arrays.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "fakes/fake_metadata.h"
#include "pages/free_link.h"
#include "pages/metadata_arena.h"
#include "transfer/packed_chain.h"

namespace tcmalloc::testing {
namespace {

constexpr uint8_t kGroup = SpareArrays::kGroup;

// Writes to all slots of an array, and fails unless all of them are still as they were written.
void WriteOwn(PackedChain* array, size_t slots) {
  std::fill_n(array, slots, PackedChain(Chain{ReferenceTo(array), 1}));
}
void ExpectOwn(const PackedChain* array, size_t slots) {
  EXPECT_TRUE(std::all_of(array, array + slots, [array](PackedChain chain) {
    return chain.Unpack().head == ReferenceTo(array);
  }));
}

class SpareArraysTest : public ::testing::Test {
 protected:
  // Arrays of 8 slots, which nobody else has.
  PackedChain* NewArray() {
    return arrays_.emplace_back(std::make_unique<std::array<PackedChain, 8>>())->data();
  }

  // Keeps an array where the CPU has not enough yet.
  [[nodiscard]] bool Keep(uint32_t cpu, PackedChain* array, int log2) {
    FreeArray* excess = nullptr;
    return spares_.Keep(cpu, array, log2, &excess) && excess == nullptr;
  }
  // Returns the arrays of the CPU, which has none then.
  std::set<const void*> TakeAll(uint32_t cpu) {
    std::set<const void*> taken;
    for (PackedChain* array = spares_.Take(cpu, 3); array != nullptr;
         array = spares_.Take(cpu, 3)) {
      EXPECT_TRUE(taken.insert(array).second) << "handed out twice";
    }
    return taken;
  }
  FreeArray* NewGroup() {
    FreeArray* group = nullptr;
    for (int i = 0; i < kGroup; ++i) group = new (NewArray()) FreeArray{group};
    return group;
  }

  SpareArrays spares_;
  std::vector<std::unique_ptr<std::array<PackedChain, 8>>> arrays_;
};

TEST_F(SpareArraysTest, ACpuGetsWhatWasGivenBackThere) {
  PackedChain* array = NewArray();
  EXPECT_EQ(spares_.Take(1, 3), nullptr);
  ASSERT_TRUE(Keep(1, array, 3));
  EXPECT_EQ(spares_.Take(0, 3), nullptr) << "another CPU";
  EXPECT_EQ(spares_.Take(1, 2), nullptr) << "another length";
  EXPECT_EQ(spares_.Take(1, 3), array);
  EXPECT_EQ(spares_.Take(1, 3), nullptr);
}

TEST_F(SpareArraysTest, ACpuWithEnoughGivesUpAGroup) {
  std::set<const void*> given;
  FreeArray* excess = nullptr;
  while (excess == nullptr && given.size() < 1000) {
    PackedChain* array = NewArray();
    given.insert(array);
    ASSERT_TRUE(spares_.Keep(5, array, 3, &excess));
  }
  EXPECT_EQ(given.size(), 33u);
  std::set<const void*> found = TakeAll(5);
  EXPECT_EQ(found.size(), given.size() - kGroup);
  for (; excess != nullptr; excess = excess->next) {
    EXPECT_TRUE(found.insert(excess).second) << "given up and kept";
  }
  EXPECT_EQ(found, given);
}

TEST_F(SpareArraysTest, ACpuKeepsTwoGroups) {
  FreeArray* third = NewGroup();
  EXPECT_TRUE(spares_.KeepGroup(2, NewGroup(), 3));
  EXPECT_TRUE(spares_.KeepGroup(2, NewGroup(), 3));
  EXPECT_FALSE(spares_.KeepGroup(2, third, 3));
  EXPECT_EQ(TakeAll(2).size(), size_t{2} * kGroup);
  EXPECT_TRUE(spares_.KeepGroup(2, third, 3));
}

TEST_F(SpareArraysTest, LeavesLongArraysAlone) {
  PackedChain* array = NewArray();
  EXPECT_FALSE(Keep(0, array, 9));
  EXPECT_EQ(spares_.Take(0, 9), nullptr);
}

// Each array is written by one thread at a time.
TEST_F(SpareArraysTest, ThreadsOfOneCpu) {
  constexpr int kThreads = 4;
  for (int i = 0; i < kThreads; ++i) ASSERT_TRUE(Keep(0, NewArray(), 3));
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this] {
      for (int step = 0; step < 20'000; ++step) {
        PackedChain* array = spares_.Take(0, 3);
        if (array == nullptr) continue;
        WriteOwn(array, 8);
        ExpectOwn(array, 8);
        while (!Keep(0, array, 3)) std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(TakeAll(0).size(), static_cast<size_t>(kThreads));
}

// Everything that a CPU gave back is had again, in groups or one by one, before there is new
// memory.
TEST(ChainArrays, ServeGroupsFirst) {
  constexpr int kArrays = 100;
  FakeMetadata metadata;
  MetadataArena arena(FakeMetadata::Source);
  SpareArrays spares;
  ChainArrays arrays(arena, &spares);
  std::set<PackedChain*> taken;
  for (int i = 0; i < kArrays; ++i) taken.insert(arrays.AllocateOn(1, 3));
  ASSERT_EQ(taken.size(), size_t{kArrays});
  for (PackedChain* array : taken) arrays.DeallocateOn(1, array, 3);
  const size_t used = arena.stats().used_bytes;
  std::set<PackedChain*> again;
  for (int i = 0; i < kArrays; ++i) {
    again.insert(i < 20 ? arrays.Allocate(3) : arrays.AllocateOn(1, 3));
  }
  EXPECT_EQ(again, taken);
  EXPECT_EQ(arena.stats().used_bytes, used);
}

// An array is written by one thread at a time, also where groups pass from CPU to CPU.
TEST(ChainArrays, ThreadsOfSeveralCpus) {
  constexpr uint32_t kThreads = 4;
  FakeMetadata metadata;
  MetadataArena arena(FakeMetadata::Source);
  SpareArrays spares;
  ChainArrays arrays(arena, &spares);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&arrays, i] {
      std::mt19937 random(i);
      std::vector<PackedChain*> own;
      for (int step = 0; step < 20'000; ++step) {
        const bool grows = step / 500 % 2 == 0;
        if (own.empty() || (random() % 4 != 0) == grows) {
          PackedChain* array = arrays.AllocateOn(random() % 2, 1);
          WriteOwn(array, 2);
          own.push_back(array);
          continue;
        }
        PackedChain* array = own.back();
        own.pop_back();
        ExpectOwn(array, 2);
        arrays.DeallocateOn(random() % 2, array, 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ChainArrays, RecyclesBySize) {
  FakeMetadata metadata;
  MetadataArena arena(FakeMetadata::Source);
  ChainArrays arrays(arena);
  std::vector<PackedChain*> small;
  for (int i = 0; i < 10; ++i) small.push_back(arrays.Allocate(3));
  PackedChain* large = arrays.Allocate(5);
  EXPECT_EQ(std::set<PackedChain*>(small.begin(), small.end()).size(), small.size());
  for (PackedChain* array : small) arrays.Deallocate(array, 3);
  arrays.Deallocate(large, 5);
  EXPECT_EQ(arrays.Allocate(5), large);
  for (auto array = small.rbegin(); array != small.rend(); ++array) {
    EXPECT_EQ(arrays.Allocate(3), *array);
  }
}

// Programs that ran out of memory with one size may have left arrays of one length.
TEST(ChainArrays, LongerOnesServeWithoutMemory) {
  constexpr int kLong = 6;
  constexpr int kShort = 3;
  FakeMetadata metadata;
  MetadataArena arena{FakeMetadata::Source};
  ChainArrays arrays(arena);
  PackedChain* const longer = arrays.Allocate(kLong);
  ASSERT_NE(longer, nullptr);
  while (arena.Allocate(8, 8) != nullptr) metadata.exhausted = true;
  EXPECT_EQ(arrays.Allocate(kShort), nullptr);
  arrays.Deallocate(longer, kLong);
  std::set<PackedChain*> pieces;
  for (int i = 0; i < 1 << (kLong - kShort); ++i) {
    PackedChain* const piece = arrays.Allocate(kShort);
    ASSERT_NE(piece, nullptr);
    ASSERT_TRUE(pieces.insert(piece).second);
    WriteOwn(piece, 1 << kShort);
  }
  for (const PackedChain* piece : pieces) ExpectOwn(piece, 1 << kShort);
  EXPECT_EQ(*pieces.begin(), longer);
  EXPECT_EQ(*pieces.rbegin() + (1 << kShort), longer + (1 << kLong));
  EXPECT_EQ(arrays.Allocate(kShort), nullptr);
  EXPECT_EQ(arrays.Allocate(kLong), nullptr);
}

}  // namespace
}  // namespace tcmalloc::testing
