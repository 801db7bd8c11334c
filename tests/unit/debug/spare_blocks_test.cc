// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/spare_blocks.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "fakes/fake_metadata.h"

namespace tcmalloc {
namespace {

using testing::FakeMetadata;

constexpr size_t kAnyBytes = SIZE_MAX;
constexpr size_t kBlockBytes = 80;

class SpareBlocksTest : public ::testing::Test {
 protected:
  BlockRecord* NewBlock(uint8_t size_class) {
    BlockRecord& block = blocks_.emplace_back();
    block.SetPlace(memory_, kBlockBytes, memory_ + kFrontBytes);
    block.size_class = size_class;
    return &block;
  }
  void Put(uint8_t size_class) {
    BlockRecord* block = NewBlock(size_class);
    ASSERT_TRUE(spares_.Put(WaitingBlock::Of(block), kAnyBytes, arena_));
    model_[size_class].push_back(block);
  }
  void Take(uint8_t size_class) {
    std::vector<BlockRecord*>& model = model_[size_class];
    BlockRecord* wanted = nullptr;
    if (!model.empty()) {
      wanted = model.back();
      model.pop_back();
    }
    ASSERT_EQ(spares_.Take(size_class), wanted);
  }

  FakeMetadata metadata_;
  MetadataArena arena_{FakeMetadata::Source};
  SpareBlocks spares_;
  char memory_[kBlockBytes] = {};
  std::deque<BlockRecord> blocks_;
  std::vector<BlockRecord*> model_[kSizeClassCount];
};

TEST_F(SpareBlocksTest, TheLastOneGoesFirstWhereverAStackTurns) {
  for (size_t turn = 1; turn < 200; ++turn) {
    for (size_t i = 0; i < turn; ++i) Put(turn % 3 == 0 ? 4 : 7);
    for (size_t i = 0; i < turn / 2; ++i) Take(7);
    for (size_t i = 0; i < turn / 3; ++i) Take(4);
    ASSERT_EQ(spares_.bytes(), (model_[4].size() + model_[7].size()) * kBlockBytes);
  }
  while (!model_[7].empty()) Take(7);
  Take(7);
  Put(7);
  Take(7);
}

TEST_F(SpareBlocksTest, GivesAllBackInAnyOrder) {
  for (int i = 0; i < 100; ++i) {
    Put(2);
    Put(9);
  }
  for (int i = 0; i < 100; ++i) Take(2);
  for (int i = 0; i < 100; ++i) EXPECT_NE(spares_.TakeAny(), nullptr);
  EXPECT_EQ(spares_.TakeAny(), nullptr);
  EXPECT_EQ(spares_.bytes(), 0U);
}

// By MakePlace alone, which takes no memory of the arena.
TEST_F(SpareBlocksTest, AStackThatGoesUpAndDownKeepsItsChunks) {
  for (int i = 0; i < 64; ++i) Put(5);
  for (int turn = 0; turn < 1000; ++turn) {
    BlockRecord* first = spares_.Take(5);
    BlockRecord* second = spares_.Take(5);
    for (BlockRecord* block : {second, first}) {
      ASSERT_TRUE(spares_.MakePlace(WaitingBlock::Of(block), kAnyBytes));
      spares_.PutInPlace(WaitingBlock::Of(block));
    }
  }
  while (!model_[5].empty()) Take(5);
  EXPECT_FALSE(spares_.Has(5));
}

TEST_F(SpareBlocksTest, HasPlacesForSomeBlocksOnly) {
  EXPECT_FALSE(spares_.MakePlace(WaitingBlock::Of(NewBlock(3)), kAnyBytes)) << "needs memory";
  EXPECT_FALSE(spares_.Put(WaitingBlock::Of(NewBlock(0)), kAnyBytes, arena_)) << "suits no other";
  EXPECT_FALSE(spares_.Put(WaitingBlock::Of(NewBlock(3)), kBlockBytes - 1, arena_))
      << "too many bytes";
  EXPECT_TRUE(spares_.Put(WaitingBlock::Of(NewBlock(3)), kBlockBytes, arena_));
  EXPECT_TRUE(spares_.MakePlace(WaitingBlock::Of(NewBlock(3)), kAnyBytes));
}

}  // namespace
}  // namespace tcmalloc
