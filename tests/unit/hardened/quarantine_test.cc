// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hardened/quarantine.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "allocator/slow_path.h"
#include "heap/heap.h"

namespace tcmalloc {
namespace {

void* Block(uintptr_t number) { return reinterpret_cast<void*>(number * 16); }

class QuarantineTest : public ::testing::Test {
 protected:
  std::unique_ptr<Quarantine> quarantine_ = std::make_unique<Quarantine>();
};

TEST_F(QuarantineTest, EveryBlockLeavesOnceInAnotherOrder) {
  ASSERT_TRUE(quarantine_->Initialize(heap.arena(), 4096, 4096, 1));
  constexpr uintptr_t kBlocks = 5000;
  std::vector<void*> left;
  for (uintptr_t i = 1; i <= kBlocks; ++i) {
    if (void* block = quarantine_->Exchange(1, Block(i), 3)) left.push_back(block);
  }
  EXPECT_GE(left.size(), kBlocks - Quarantine::kMostPlaces);
  EXPECT_FALSE(std::is_sorted(left.begin(), left.end()));
  quarantine_->TakeEach(1, [&](void* block) { left.push_back(block); });
  EXPECT_EQ(std::set<void*>(left.begin(), left.end()).size(), kBlocks);
  EXPECT_EQ(left.size(), kBlocks);
}

TEST_F(QuarantineTest, AClassWithoutPlacesKeepsNothing) {
  ASSERT_TRUE(quarantine_->Initialize(heap.arena(), 4096, 1024, 1));
  EXPECT_EQ(quarantine_->Exchange(1, Block(1), SizeClassFor(2048)), Block(1));
}

TEST_F(QuarantineTest, WithoutBytesNothingIsKept) {
  ASSERT_TRUE(quarantine_->Initialize(heap.arena(), 0, kMaxSmallSize, 1));
  EXPECT_EQ(quarantine_->Exchange(1, Block(1), SizeClassFor(16)), Block(1));
}

TEST_F(QuarantineTest, ThreadsNeverGetABlockTwice) {
  ASSERT_TRUE(quarantine_->Initialize(heap.arena(), 1024, 4096, 1));
  // More than have a part of their own.
  constexpr uintptr_t kThreads = Quarantine::kOwnParts + 4;
  constexpr uintptr_t kEach = 20'000;
  std::vector<void*> left[kThreads];
  std::vector<std::thread> threads;
  for (uintptr_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      {
        const SlowPath gets_a_front_end;
      }
      const uint8_t part = Quarantine::ChoosePart(0);
      for (uintptr_t i = 0; i < kEach; ++i) {
        void* block = quarantine_->Exchange(part, Block(1 + t * kEach + i), 3);
        if (block != nullptr) left[t].push_back(block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Quarantine::OwnParts(), Quarantine::kOwnParts);
  EXPECT_TRUE(Quarantine::HasSharers());
  std::set<void*> all;
  size_t count = 0;
  const auto add = [&](void* block) {
    all.insert(block);
    ++count;
  };
  for (const auto& some : left) std::for_each(some.begin(), some.end(), add);
  constexpr uint8_t kNoPart = 0;
  quarantine_->TakeEachShared(add);
  // What other threads had to themselves stays.
  quarantine_->LookAtOthers(kNoPart, [&](void* block, auto is_there) {
    EXPECT_TRUE(is_there());
    add(block);
  });
  EXPECT_EQ(count, kThreads * kEach);
  EXPECT_EQ(all.size(), count);
}

}  // namespace
}  // namespace tcmalloc
