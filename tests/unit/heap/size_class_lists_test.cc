// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap/size_class_lists.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "heap/heap.h"

namespace tcmalloc::testing {
namespace {

constexpr size_t kLastClass = kSizeClassCount - 1;

// Lists of their own, over the page heap of the process.
class SizeClassListsTest : public ::testing::Test {
 protected:
  SizeClassListsTest() { heap.EnsureInitialized(); }

  const char* Place(size_t i) const { return memory_->bytes + i * sizeof(ListsOfClass); }
  static const char* AddressOf(const Transfer& transfer) {
    return reinterpret_cast<const char*>(&transfer);
  }
  // How many classes have lists, going by the memory: what lies behind theirs is still zero.
  size_t PlacesTouched() const {
    const char* end = std::end(memory_->bytes);
    const auto last = std::find_if(std::reverse_iterator(end), std::reverse_iterator(Place(0)),
                                   [](char byte) { return byte != 0; });
    const auto bytes = static_cast<size_t>(last.base() - Place(0));
    return (bytes + sizeof(ListsOfClass) - 1) / sizeof(ListsOfClass);
  }
  std::vector<uint8_t> Made() const {
    std::vector<uint8_t> classes;
    lists_.ForEach([&](uint8_t c, Transfer& transfer, Central& central) {
      EXPECT_EQ(&transfer, lists_.Find(c));
      EXPECT_EQ(&central, &lists_.central(c));
      classes.push_back(c);
    });
    return classes;
  }

  std::unique_ptr<SizeClassMemory> memory_ = std::make_unique<SizeClassMemory>();
  ChainArrays arrays_{heap.arena()};
  SizeClassLists lists_{*memory_,     heap.page_heaps(), heap.page_map(),
                        heap.codec(), arrays_,           heap.arena()};
};

TEST_F(SizeClassListsTest, NothingIsMadeOrTouchedBeforeItIsUsed) {
  for (size_t c = 1; c < kSizeClassCount; ++c) {
    EXPECT_EQ(lists_.Find(static_cast<uint8_t>(c)), nullptr);
  }
  EXPECT_TRUE(Made().empty());
  EXPECT_EQ(PlacesTouched(), 0u);
}

TEST_F(SizeClassListsTest, ClassesLieSideBySideInTheOrderOfFirstUse) {
  EXPECT_EQ(AddressOf(lists_.Ensure(40)), Place(0));
  EXPECT_EQ(AddressOf(lists_.Ensure(3)), Place(1));
  EXPECT_EQ(AddressOf(lists_.Ensure(40)), Place(0)) << "made once";
  EXPECT_EQ(AddressOf(lists_.Ensure(kLastClass)), Place(2));
  EXPECT_EQ(PlacesTouched(), 3u);
  EXPECT_EQ(Made(), (std::vector<uint8_t>{3, 40, kLastClass}));
}

TEST_F(SizeClassListsTest, OnceMadeTheyAreFound) {
  Transfer& transfer = lists_.Ensure(7);
  EXPECT_EQ(&lists_[7], &transfer);
  EXPECT_EQ(lists_.Find(7), &transfer);
  EXPECT_EQ(lists_.Find(6), nullptr);
  EXPECT_EQ(lists_.Find(8), nullptr);
}

TEST_F(SizeClassListsTest, TheListsOfAClassServeItsObjects) {
  for (const size_t size : {size_t{8}, size_t{64}, size_t{4096}, kMaxSmallSize}) {
    const uint8_t c = SizeClassFor(size);
    Transfer& transfer = lists_.Ensure(c);
    EXPECT_EQ(transfer.batch(), kSizeClasses[c].batch);
    const Chain chain = transfer.Fetch(1);
    ASSERT_FALSE(chain.empty());
    const Span* span = heap.page_map().FindInUse(ObjectAt(chain.head));
    ASSERT_NE(span, nullptr);
    EXPECT_EQ(span->size_class, c);
    EXPECT_EQ(lists_.central(c).stats().allocated_objects, chain.count);
    transfer.Insert(chain);
    transfer.Drain();
    EXPECT_EQ(lists_.central(c).stats().spans, 0u);
  }
}

TEST_F(SizeClassListsTest, TwoCpusAreEnoughToDivide) {
  lists_.set_cpus(2);
  lists_.Ensure(7);
  lists_.central(7).Divide();
  EXPECT_EQ(lists_.central(7).count(), 2u);
}

TEST_F(SizeClassListsTest, ThreeCpusShareTwoLists) {
  if (kParanoidChecks) GTEST_SKIP() << "these divide on any machine";
  lists_.set_cpus(3);
  lists_.Ensure(7);
  for (int i = 0; i < 2; ++i) lists_.central(7).Divide();
  EXPECT_EQ(lists_.central(7).count(), 2u);
}

TEST_F(SizeClassListsTest, OneCpuNeedsOneList) {
  if (kParanoidChecks) GTEST_SKIP() << "these divide on any machine";
  lists_.set_cpus(1);
  lists_.Ensure(7);
  lists_.central(7).Divide();
  EXPECT_EQ(lists_.central(7).count(), 1u);
}

TEST_F(SizeClassListsTest, BatchesMayBeSmaller) {
  const uint8_t c = SizeClassFor(64);
  lists_.set_batch(Central::kLineObjects + 1);
  EXPECT_EQ(lists_.Ensure(c).batch(), Central::kLineObjects + 1);
  lists_.set_batch(1);
  EXPECT_EQ(lists_.Ensure(SizeClassFor(8)).batch(), Central::kLineObjects);
  lists_.set_batch(UINT64_MAX);
  EXPECT_EQ(lists_.Ensure(SizeClassFor(16)).batch(), kSizeClasses[SizeClassFor(16)].batch);
  EXPECT_EQ(lists_.Ensure(kLastClass).batch(), kSizeClasses[kLastClass].batch);
}

// All of them want all classes, each in an order of its own.
TEST_F(SizeClassListsTest, ThreadsThatWantTheSameClassShareItsLists) {
  constexpr size_t kThreads = 4;
  std::barrier start(static_cast<long>(kThreads));
  std::vector<std::vector<Transfer*>> seen(kThreads, std::vector<Transfer*>(kSizeClassCount));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      std::vector<uint8_t> order(kLastClass);
      std::iota(order.begin(), order.end(), uint8_t{1});
      std::shuffle(order.begin(), order.end(), std::mt19937(static_cast<unsigned>(i / 2)));
      start.arrive_and_wait();
      for (uint8_t c : order) {
        Transfer& transfer = lists_.Ensure(c);
        EXPECT_EQ(transfer.batch(), kSizeClasses[c].batch);
        seen[i][c] = &transfer;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 1; i < kThreads; ++i) EXPECT_EQ(seen[i], seen[0]);
  const std::set<Transfer*> different(seen[0].begin() + 1, seen[0].end());
  EXPECT_EQ(different.size(), kLastClass);
  EXPECT_EQ(AddressOf(**different.begin()), Place(0));
  EXPECT_EQ(AddressOf(**different.rbegin()), Place(kLastClass - 1));
}

}  // namespace
}  // namespace tcmalloc::testing
