// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/free_queue.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "fakes/fake_metadata.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

using testing::FakeMetadata;

constexpr size_t kNoLimit = SIZE_MAX;
constexpr uint32_t kPlace = 0;
constexpr uint8_t kNoSpare = 0;

class FreeQueueTest : public ::testing::Test {
 protected:
  // Returns a block that waits for the first time.
  BlockRecord* Block(size_t bytes, uint8_t size_class = kNoSpare) {
    auto block = std::make_unique<BlockRecord>();
    auto* address = reinterpret_cast<char*>(block.get());
    block->SetPlace(address, bytes, address);
    block->size_class = size_class;
    blocks_.push_back(std::move(block));
    return blocks_.back().get();
  }
  BlockRecord* Push(size_t bytes, size_t limit, uint8_t size_class = kNoSpare) {
    return queue_.Push(*storage_, kPlace, Block(bytes, size_class), limit, arena_);
  }
  bool PushOwn(size_t bytes, size_t limit, uint8_t size_class = kNoSpare) {
    return queue_.PushOwn(*storage_, kPlace, Block(bytes, size_class), limit, [] { return true; });
  }
  BlockRecord* PopExcess(uint32_t place, size_t limit) {
    return queue_.PopExcess(*storage_, place, limit, arena_);
  }

  FakeMetadata metadata_;
  MetadataArena arena_{FakeMetadata::Source};

  std::unique_ptr<FreeQueue::Storage> storage_ = std::make_unique<FreeQueue::Storage>();
  std::unique_ptr<FreeQueue> owned_ = std::make_unique<FreeQueue>();
  FreeQueue& queue_ = *owned_;
  std::vector<std::unique_ptr<BlockRecord>> blocks_;
};

TEST_F(FreeQueueTest, TheFirstGoesWhenThereAreTooMany) {
  for (size_t i = 0; i < FreeQueue::kBlocks; ++i) ASSERT_EQ(Push(1, kNoLimit), nullptr);
  for (size_t i = 0; i < 2 * FreeQueue::kBlocks; ++i) {
    const BlockRecord* gone = Push(1, kNoLimit);
    ASSERT_EQ(gone, blocks_[i].get());
  }
  EXPECT_EQ(queue_.bytes(), FreeQueue::kBlocks);
}

TEST_F(FreeQueueTest, TheFirstGoWhenThereAreTooManyBytes) {
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Push(100, kNoLimit), nullptr);
  EXPECT_EQ(PopExcess(kPlace, 1000), nullptr);
  EXPECT_EQ(PopExcess(kPlace, 999), blocks_[0].get());
  EXPECT_EQ(PopExcess(kPlace, 999), nullptr);
  EXPECT_EQ(PopExcess(kPlace, 800), blocks_[1].get());
  EXPECT_EQ(queue_.bytes(), 800u);
}

TEST_F(FreeQueueTest, ABlockBeyondTheLimitGoesAtOnce) {
  const BlockRecord* gone = Push(5000, 4999);
  EXPECT_EQ(gone, blocks_[0].get());
  Push(5000, kNoLimit);
  EXPECT_EQ(PopExcess(kPlace, 4999), blocks_[1].get());
  EXPECT_EQ(PopExcess(kPlace, 0), nullptr);
  EXPECT_EQ(queue_.bytes(), 0u);
}

TEST_F(FreeQueueTest, PartsShareTheLimit) {
  queue_.Push(*storage_, 1, Block(100), kNoLimit, arena_);
  for (int i = 0; i < 5; ++i) Push(100, kNoLimit);
  EXPECT_EQ(PopExcess(kPlace, 1000), nullptr);
  EXPECT_EQ(PopExcess(kPlace, 999), blocks_[1].get());
  EXPECT_EQ(PopExcess(1, 999), nullptr);
  EXPECT_EQ(PopExcess(1, 199), blocks_[0].get());
}

TEST_F(FreeQueueTest, ABlockThatLeavesBecomesASpareOfItsClass) {
  EXPECT_EQ(queue_.TakeSpare(kPlace, 3), nullptr);
  for (size_t i = 0; i < FreeQueue::kBlocks; ++i) Push(64, kNoLimit, 3);
  EXPECT_EQ(queue_.TakeSpare(kPlace, 3), nullptr) << "no block has waited long enough";
  EXPECT_EQ(Push(64, kNoLimit, 4), nullptr);
  EXPECT_EQ(Push(64, kNoLimit, 4), nullptr);
  EXPECT_EQ(queue_.bytes(), (FreeQueue::kBlocks + 2) * 64);
  EXPECT_EQ(queue_.TakeSpare(kPlace, 4), nullptr);
  EXPECT_EQ(queue_.TakeSpare(1, 3), nullptr) << "another part";
  EXPECT_EQ(queue_.TakeSpare(kPlace, 3), blocks_[1].get());
  EXPECT_EQ(queue_.TakeSpare(kPlace, 3), blocks_[0].get());
  EXPECT_EQ(queue_.TakeSpare(kPlace, 3), nullptr);
  EXPECT_EQ(queue_.bytes(), FreeQueue::kBlocks * 64);
}

TEST_F(FreeQueueTest, WithoutMemoryAllBlocksLeave) {
  for (size_t i = 0; i <= FreeQueue::kBlocks; ++i) Push(64, kNoLimit, 3);
  queue_.Push(*storage_, 1, Block(64), kNoLimit, arena_);
  for (size_t i = 0; i <= FreeQueue::kBlocks; ++i) {
    EXPECT_EQ(queue_.TakeAny(*storage_, kPlace), blocks_[i].get()) << "the spare, and the queue";
  }
  EXPECT_EQ(queue_.TakeAny(*storage_, kPlace), nullptr);
  EXPECT_EQ(queue_.bytes(), 64u) << "of another part";
}

TEST_F(FreeQueueTest, SparesHaveAsManyBytesAsTheQueue) {
  constexpr size_t kLimit = 1000;
  for (int i = 0; i < 20; ++i) ASSERT_EQ(Push(100, kLimit, 3), nullptr) << i;
  EXPECT_EQ(queue_.bytes(), 2 * kLimit);
  const BlockRecord* gone = Push(100, kLimit, 3);
  EXPECT_EQ(gone, blocks_[10].get());
  EXPECT_EQ(queue_.bytes(), 2 * kLimit);
  EXPECT_EQ(queue_.TakeSpare(kPlace, 3), blocks_[9].get());
  EXPECT_EQ(Push(100, kLimit, 3), nullptr);
}

TEST_F(FreeQueueTest, AnOwnerPushesWhatNeedsNothing) {
  EXPECT_FALSE(PushOwn(64, kNoLimit, 3)) << "the part was never used";
  for (size_t i = 1; i < FreeQueue::kBlocks; ++i) Push(64, kNoLimit, 3);
  EXPECT_TRUE(PushOwn(64, kNoLimit, 3));
  EXPECT_FALSE(PushOwn(64, kNoLimit, 3)) << "spares have no places yet";
  EXPECT_EQ(queue_.bytes(), FreeQueue::kBlocks * 64);
  EXPECT_EQ(Push(64, kNoLimit, 3), nullptr);
  EXPECT_TRUE(PushOwn(64, kNoLimit, 4));
  ASSERT_TRUE(queue_.HasOwnSpare(kPlace, 3));
  EXPECT_EQ(queue_.TakeOwnSpare(kPlace, 3), blocks_[2].get());
  ASSERT_TRUE(queue_.HasOwnSpare(kPlace, 3));
  EXPECT_EQ(queue_.TakeOwnSpare(kPlace, 3), blocks_[1].get());
  EXPECT_FALSE(queue_.HasOwnSpare(kPlace, 3));
}

TEST_F(FreeQueueTest, AnOwnerPushesNothingForWhichABlockMustGo) {
  for (size_t i = 0; i < FreeQueue::kBlocks; ++i) Push(64, kNoLimit, i == 0 ? kNoSpare : 3);
  EXPECT_FALSE(PushOwn(64, kNoLimit, 3)) << "the first cannot become a spare";
  EXPECT_EQ(Push(64, kNoLimit, 3), blocks_[0].get());
  EXPECT_EQ(Push(64, kNoLimit, 3), nullptr);
  EXPECT_FALSE(PushOwn(64, (FreeQueue::kBlocks - 1) * 64, 3)) << "too many bytes";
  EXPECT_TRUE(PushOwn(64, FreeQueue::kBlocks * 64, 3));
  const size_t before = queue_.bytes();
  EXPECT_FALSE(queue_.PushOwn(*storage_, kPlace, Block(64, 3), kNoLimit, [] { return false; }));
  EXPECT_EQ(queue_.bytes(), before);
}

TEST_F(FreeQueueTest, ABlockGoesAtOnceIfThereIsNoMemoryForThePart) {
  const SystemCalls saved = system_calls;
  system_calls.mmap = [](void*, size_t, int, int, int, off_t) { return MAP_FAILED; };
  BlockRecord* block = Block(64);
  BlockRecord* gone = queue_.Push(*storage_, kPlace, block, kNoLimit, arena_);
  const bool pushed = PushOwn(64, kNoLimit);
  BlockRecord* first = queue_.PopFirst(*storage_, kPlace, kNoLimit, arena_);
  BlockRecord* any = queue_.TakeAny(*storage_, kPlace);
  system_calls = saved;
  EXPECT_EQ(gone, block);
  EXPECT_FALSE(pushed);
  EXPECT_EQ(first, nullptr);
  EXPECT_EQ(any, nullptr);
  EXPECT_EQ(queue_.bytes(), 0u);
  EXPECT_EQ(Push(64, kNoLimit), nullptr);
  EXPECT_EQ(queue_.bytes(), 64u);
}

TEST_F(FreeQueueTest, ManyMayLeaveBeforeTheyMust) {
  for (size_t i = 0; i < 4; ++i) Push(64, kNoLimit, i % 2 == 0 ? kNoSpare : 3);
  EXPECT_EQ(queue_.PopFirst(*storage_, kPlace, kNoLimit, arena_), blocks_[0].get());
  EXPECT_EQ(queue_.PopFirst(*storage_, kPlace, kNoLimit, arena_), nullptr) << "became a spare";
  EXPECT_EQ(queue_.PopFirst(*storage_, kPlace, kNoLimit, arena_), blocks_[2].get());
  EXPECT_EQ(queue_.TakeSpare(kPlace, 3), blocks_[1].get());
  EXPECT_EQ(queue_.PopFirst(*storage_, kPlace, kNoLimit, arena_), nullptr);
  EXPECT_EQ(queue_.PopFirst(*storage_, kPlace, kNoLimit, arena_), nullptr) << "is empty";
}

TEST_F(FreeQueueTest, SparesAreTakenInTheirOrder) {
  constexpr size_t kSpares = 1000;
  for (size_t i = 0; i < FreeQueue::kBlocks + kSpares; ++i)
    ASSERT_EQ(Push(64, kNoLimit, 3), nullptr);
  for (size_t i = kSpares; i-- > 0;) {
    ASSERT_EQ(queue_.TakeSpare(kPlace, 3), blocks_[i].get());
  }
  EXPECT_EQ(queue_.TakeSpare(kPlace, 3), nullptr);
  metadata_.exhausted = true;
  for (size_t i = 0; i < kSpares; ++i)
    ASSERT_EQ(Push(64, kNoLimit, 3), nullptr) << "places are kept";
  BlockRecord* gone = nullptr;
  for (size_t i = 0; i < 1'000'000 && gone == nullptr; ++i) gone = Push(64, kNoLimit, 3);
  EXPECT_NE(gone, nullptr);
}

// Those of the places that threads share.
TEST_F(FreeQueueTest, ThreadsLoseNothing) {
  constexpr size_t kEach = 20'000;
  constexpr size_t kLimit = 16'384;
  constexpr size_t kThreads = 12;
  for (size_t i = 0; i < kThreads * kEach; ++i) Block(8, i % 2 == 0 ? 1 : kNoSpare);
  std::vector<std::thread> threads;
  std::vector<std::vector<BlockRecord*>> left(kThreads);
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const auto place = static_cast<uint32_t>(kOwnPlaces + t % kSharedPlaces);
      for (size_t i = 0; i < kEach; ++i) {
        BlockRecord* gone =
            queue_.Push(*storage_, place, blocks_[t * kEach + i].get(), kLimit, arena_);
        for (; gone != nullptr; gone = PopExcess(place, kLimit)) left[t].push_back(gone);
        if (BlockRecord* spare = queue_.TakeSpare(place, 1)) left[t].push_back(spare);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<BlockRecord*> all;
  size_t count = 0;
  for (const std::vector<BlockRecord*>& of_one : left) {
    all.insert(of_one.begin(), of_one.end());
    count += of_one.size();
  }
  EXPECT_EQ(all.size(), count) << "a block left twice";
  EXPECT_EQ(count + queue_.bytes() / 8, kThreads * kEach);
  EXPECT_LE(queue_.bytes(), 2 * kLimit + 2 * kSharedPlaces * 8);
}

}  // namespace
}  // namespace tcmalloc
