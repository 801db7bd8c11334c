// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "transfer/chain_stack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "fakes/fake_metadata.h"
#include "pages/metadata_arena.h"
#include "pages/page_types.h"

namespace tcmalloc::testing {
namespace {

Chain ChainNumber(uint32_t i) {
  return {ReferenceTo(reinterpret_cast<void*>(uintptr_t{i} * 4096 + 8)), i % 100 + 1};
}

void ExpectSame(Chain a, Chain b) {
  EXPECT_EQ(a.head, b.head);
  EXPECT_EQ(a.count, b.count);
}

TEST(PackedChain, UnpacksWhatWasPacked) {
  constexpr uintptr_t kEnd = uintptr_t{1} << kAddressBits;
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    void* object = reinterpret_cast<void*>(random() % kEnd & ~uintptr_t{7});
    const Chain chain{ReferenceTo(object),
                      static_cast<uint32_t>(random() % (PackedChain::kMaxCount + 1))};
    ExpectSame(PackedChain(chain).Unpack(), chain);
    const auto cpu = static_cast<uint32_t>(random() % PackedChain::kCpus);
    const PackedChain moved = PackedChain(chain).OnCpu(63).OnCpu(cpu);
    ExpectSame(moved.Unpack(), chain);
    ASSERT_TRUE(moved.IsOnCpu(cpu) && moved.IsOnCpu(cpu + PackedChain::kCpus));
    ASSERT_FALSE(moved.IsOnCpu(cpu ^ 1));
  }
  const Chain last{ReferenceTo(reinterpret_cast<void*>(kEnd - 8)), PackedChain::kMaxCount};
  ExpectSame(PackedChain(last).Unpack(), last);
}

TEST(PackedChain, TellsArraysFromChains) {
  void* objects[3] = {};
  const PackedChain packed(ObjectArray{objects, 3});
  EXPECT_TRUE(packed.is_array());
  EXPECT_EQ(packed.count(), 3u);
  EXPECT_EQ(packed.UnpackArray().objects, objects);
  const PackedChain chain(Chain{ReferenceTo(objects), 3});
  EXPECT_FALSE(chain.is_array());
  EXPECT_EQ(chain.count(), 3u);
  EXPECT_EQ(PackedChain().count(), 0u);
  EXPECT_TRUE(packed.OnCpu(63).is_array());
  EXPECT_EQ(packed.OnCpu(63).UnpackArray().objects, objects);
}

class ChainStackTest : public ::testing::Test {
 protected:
  void PushNumbers(uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; ++i) ASSERT_TRUE(stack_.Push(ChainNumber(i), arrays_));
  }

  FakeMetadata metadata_;
  MetadataArena arena_{FakeMetadata::Source};
  ChainArrays arrays_{arena_};
  ChainStack stack_;
};

TEST_F(ChainStackTest, EmptyStackTakesNoMemory) {
  EXPECT_TRUE(stack_.empty());
  EXPECT_EQ(stack_.size(), 0u);
  stack_.DropOldest(0);
  stack_.Clear(arrays_);
  EXPECT_EQ(metadata_.calls(), 0u);
}

TEST_F(ChainStackTest, LastInFirstOut) {
  constexpr uint32_t kCount = 1000;
  PushNumbers(0, kCount);
  EXPECT_EQ(stack_.size(), kCount);
  for (uint32_t i = 0; i < kCount; ++i) ExpectSame(stack_.at(i), ChainNumber(i));
  for (uint32_t i = kCount; i > 0; --i) ExpectSame(stack_.Pop(), ChainNumber(i - 1));
  EXPECT_TRUE(stack_.empty());
}

TEST_F(ChainStackTest, DropsTheOldest) {
  PushNumbers(0, 100);
  stack_.DropOldest(30);
  EXPECT_EQ(stack_.size(), 70u);
  for (uint32_t i = 0; i < 70; ++i) ExpectSame(stack_.at(i), ChainNumber(30 + i));
  PushNumbers(100, 110);
  ExpectSame(stack_.at(79), ChainNumber(109));
  stack_.DropOldest(80);
  EXPECT_TRUE(stack_.empty());
}

TEST_F(ChainStackTest, PopsTheNewestOfACpuOrTheOldest) {
  const auto push = [this](uint32_t i, uint32_t cpu) {
    ASSERT_TRUE(stack_.Push(PackedChain(ChainNumber(i)).OnCpu(cpu), arrays_));
  };
  push(1, 5);
  push(2, 7);
  push(3, 5);
  push(4, 7);
  push(5, 6);
  ExpectSame(stack_.PopOfCpu(5).Unpack(), ChainNumber(3));
  ExpectSame(stack_.PopOfCpu(6).Unpack(), ChainNumber(5));
  ExpectSame(stack_.PopOfCpu(6).Unpack(), ChainNumber(1));
  ExpectSame(stack_.PopOfCpu(7).Unpack(), ChainNumber(4));
  ExpectSame(stack_.PopOfCpu(7).Unpack(), ChainNumber(2));
  EXPECT_TRUE(stack_.empty());
}

TEST_F(ChainStackTest, KeepsItsContentsWithoutMemoryToGrow) {
  PushNumbers(0, 1);
  metadata_.exhausted = true;
  // The arena still has a chunk; a stack beyond that cannot grow.
  uint32_t count = 1;
  while (stack_.Push(ChainNumber(count), arrays_)) ++count;
  EXPECT_EQ(stack_.size(), count);
  metadata_.exhausted = false;
  ASSERT_TRUE(stack_.Push(ChainNumber(count), arrays_));
  for (uint32_t i = 0; i <= count; ++i) ExpectSame(stack_.at(i), ChainNumber(i));
}

TEST_F(ChainStackTest, GivesItsArrayBack) {
  PushNumbers(0, 1000);
  const size_t used = arena_.stats().used_bytes;
  while (!stack_.empty()) stack_.Pop();
  stack_.Clear(arrays_);
  stack_.Clear(arrays_);
  PushNumbers(0, 1000);
  EXPECT_EQ(arena_.stats().used_bytes, used);
}

class SpareArraysTest : public ::testing::Test {
 protected:
  // Arrays of 8 slots, which nobody else has.
  PackedChain* NewArray() {
    return arrays_.emplace_back(std::make_unique<std::array<PackedChain, 8>>())->data();
  }

  SpareArrays spares_;
  std::vector<std::unique_ptr<std::array<PackedChain, 8>>> arrays_;
};

TEST_F(SpareArraysTest, ACpuGetsWhatWasGivenBackThere) {
  PackedChain* array = NewArray();
  EXPECT_EQ(spares_.Take(1, 3), nullptr);
  ASSERT_TRUE(spares_.Keep(1, array, 3));
  EXPECT_EQ(spares_.Take(0, 3), nullptr) << "another CPU";
  EXPECT_EQ(spares_.Take(1, 2), nullptr) << "another length";
  EXPECT_EQ(spares_.Take(1, 3), array);
  EXPECT_EQ(spares_.Take(1, 3), nullptr);
}

TEST_F(SpareArraysTest, KeepsFew) {
  int kept = 0;
  while (kept < 1000 && spares_.Keep(5, NewArray(), 3)) ++kept;
  EXPECT_GT(kept, 4);
  EXPECT_LT(kept, 100);
  std::set<PackedChain*> taken;
  for (PackedChain* array = spares_.Take(5, 3); array != nullptr; array = spares_.Take(5, 3)) {
    EXPECT_TRUE(taken.insert(array).second) << "handed out twice";
  }
  EXPECT_EQ(taken.size(), static_cast<size_t>(kept));
}

TEST_F(SpareArraysTest, LeavesLongArraysAlone) {
  PackedChain* array = NewArray();
  EXPECT_FALSE(spares_.Keep(0, array, 9));
  EXPECT_EQ(spares_.Take(0, 9), nullptr);
}

// Each array is written by one thread at a time.
TEST_F(SpareArraysTest, ThreadsOfOneCpu) {
  constexpr int kThreads = 4;
  for (int i = 0; i < kThreads; ++i) ASSERT_TRUE(spares_.Keep(0, NewArray(), 3));
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this] {
      for (int step = 0; step < 20'000; ++step) {
        PackedChain* array = spares_.Take(0, 3);
        if (array == nullptr) continue;
        std::fill_n(array, 8, PackedChain(Chain{ReferenceTo(array), 1}));
        EXPECT_TRUE(std::all_of(array, array + 8, [array](PackedChain chain) {
          return chain.Unpack().head == ReferenceTo(array);
        }));
        while (!spares_.Keep(0, array, 3)) std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<PackedChain*> taken;
  for (PackedChain* array = spares_.Take(0, 3); array != nullptr; array = spares_.Take(0, 3)) {
    taken.insert(array);
  }
  EXPECT_EQ(taken.size(), static_cast<size_t>(kThreads));
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

}  // namespace
}  // namespace tcmalloc::testing
