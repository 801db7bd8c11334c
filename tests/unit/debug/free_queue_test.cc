// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/free_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace tcmalloc {
namespace {

constexpr size_t kNoLimit = SIZE_MAX;

void* At(uintptr_t number) { return reinterpret_cast<void*>(number * 16); }

class FreeQueueTest : public ::testing::Test {
 protected:
  std::unique_ptr<FreeQueue::Storage> storage_ = std::make_unique<FreeQueue::Storage>();
  std::unique_ptr<FreeQueue> owned_ = std::make_unique<FreeQueue>(*storage_);
  FreeQueue& queue_ = *owned_;
};

TEST_F(FreeQueueTest, TheFirstGoesWhenThereAreTooMany) {
  for (uintptr_t i = 1; i <= FreeQueue::kBlocks; ++i) {
    ASSERT_EQ(queue_.Push(At(i), 1, kNoLimit), nullptr);
  }
  for (uintptr_t i = 1; i <= 2 * FreeQueue::kBlocks; ++i) {
    ASSERT_EQ(queue_.Push(At(FreeQueue::kBlocks + i), 1, kNoLimit), At(i));
  }
  EXPECT_EQ(queue_.bytes(), FreeQueue::kBlocks);
}

TEST_F(FreeQueueTest, TheFirstGoWhenThereAreTooManyBytes) {
  std::thread([this] {
    for (uintptr_t i = 1; i <= 10; ++i) queue_.Push(At(i), 100, kNoLimit);
    EXPECT_EQ(queue_.PopExcess(1000), nullptr);
    EXPECT_EQ(queue_.PopExcess(999), At(1));
    EXPECT_EQ(queue_.PopExcess(999), nullptr);
    EXPECT_EQ(queue_.PopExcess(800), At(2));
    EXPECT_EQ(queue_.bytes(), 800u);
  }).join();
}

TEST_F(FreeQueueTest, ABlockBeyondTheLimitGoesAtOnce) {
  EXPECT_EQ(queue_.Push(At(1), 5000, 4999), At(1));
  queue_.Push(At(2), 5000, kNoLimit);
  EXPECT_EQ(queue_.PopExcess(4999), At(2));
  EXPECT_EQ(queue_.PopExcess(0), nullptr);
  EXPECT_EQ(queue_.bytes(), 0u);
}

TEST_F(FreeQueueTest, ThreadsLoseNothing) {
  constexpr uintptr_t kEach = 50'000;
  std::vector<std::thread> threads;
  std::vector<std::set<void*>> left(12);
  for (uintptr_t t = 0; t < left.size(); ++t) {
    threads.emplace_back([&, t] {
      for (uintptr_t i = 1; i <= kEach; ++i) {
        if (void* gone = queue_.Push(At(t * kEach + i), 8, 16'384)) left[t].insert(gone);
        while (void* gone = queue_.PopExcess(16'384)) left[t].insert(gone);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<void*> all;
  for (const std::set<void*>& of_one : left) all.insert(of_one.begin(), of_one.end());
  size_t count = 0;
  for (const std::set<void*>& of_one : left) count += of_one.size();
  EXPECT_EQ(all.size(), count) << "a block left twice";
  EXPECT_EQ(count + queue_.bytes() / 8, left.size() * kEach);
  EXPECT_LE(queue_.bytes(), 16'384u + FreeQueue::kParts * 8);
}

}  // namespace
}  // namespace tcmalloc
