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

}  // namespace
}  // namespace tcmalloc::testing
