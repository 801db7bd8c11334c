// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/checked_block_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "fakes/fake_metadata.h"

namespace tcmalloc {
namespace {

using testing::FakeMetadata;

char* Address(uintptr_t number) { return reinterpret_cast<char*>(number * 16); }

BlockRecord Block(uintptr_t number) {
  BlockRecord block = {};
  block.user = Address(number);
  block.base = Address(number - 2);
  block.size = number;
  block.total = number + 64;
  return block;
}

class CheckedBlockTableTest : public ::testing::Test {
 protected:
  bool Has(uintptr_t number) {
    return table_.With(Address(number), [](const BlockRecord* r) { return r != nullptr; });
  }
  size_t Count() {
    size_t count = 0;
    for (size_t i = 0; i < CheckedBlockTable::kShards; ++i) {
      table_.ForEachIn(i, [&](const BlockRecord&) { ++count; });
    }
    return count;
  }

  FakeMetadata metadata_;
  MetadataArena arena_{FakeMetadata::Source};
  std::unique_ptr<CheckedBlockTable> owned_ = std::make_unique<CheckedBlockTable>();
  CheckedBlockTable& table_ = *owned_;
};

TEST_F(CheckedBlockTableTest, AnEmptyTableHasNothing) {
  EXPECT_FALSE(Has(1));
  EXPECT_FALSE(table_.With(nullptr, [](const BlockRecord* r) { return r != nullptr; }));
  EXPECT_EQ(Count(), 0u);
}

TEST_F(CheckedBlockTableTest, KeepsWhatWasInserted) {
  ASSERT_TRUE(table_.Insert(Block(100), arena_));
  EXPECT_TRUE(Has(100));
  EXPECT_FALSE(table_.With(Address(100) + 1, [](const BlockRecord* r) { return r != nullptr; }));
  table_.With(Address(100), [](BlockRecord* r) { r->state = BlockState::kQueued; });
  EXPECT_EQ(table_.With(Address(100), [](const BlockRecord* r) { return r->size; }), 100u);
  EXPECT_FALSE(table_.With(Address(100), [](const BlockRecord* r) { return r->is_live(); }));
  table_.Remove(Address(100));
  EXPECT_FALSE(Has(100));
}

TEST_F(CheckedBlockTableTest, AgreesWithAMapOverRandomActions) {
  std::mt19937 random(7);
  std::map<uintptr_t, size_t> model;
  for (int i = 0; i < 200'000; ++i) {
    const uintptr_t number = 1 + random() % 20'000;
    if (model.contains(number)) {
      table_.Remove(Address(number));
      model.erase(number);
    } else {
      ASSERT_TRUE(table_.Insert(Block(number), arena_));
      model[number] = number;
    }
    const uintptr_t other = 1 + random() % 20'000;
    ASSERT_EQ(Has(other), model.contains(other)) << other;
  }
  EXPECT_EQ(Count(), model.size());
}

TEST_F(CheckedBlockTableTest, FailsWithoutMemoryAndGoesOnWithIt) {
  metadata_.exhausted = true;
  EXPECT_FALSE(table_.Insert(Block(5), arena_));
  EXPECT_FALSE(Has(5));
  metadata_.exhausted = false;
  EXPECT_TRUE(table_.Insert(Block(5), arena_));
  EXPECT_TRUE(Has(5));
}

TEST_F(CheckedBlockTableTest, UsesRecordsAgain) {
  for (uintptr_t i = 1; i <= 1000; ++i) ASSERT_TRUE(table_.Insert(Block(i), arena_));
  for (uintptr_t i = 1; i <= 1000; ++i) table_.Remove(Address(i));
  const size_t used = arena_.stats().used_bytes;
  for (uintptr_t i = 1; i <= 1000; ++i) ASSERT_TRUE(table_.Insert(Block(i), arena_));
  EXPECT_EQ(arena_.stats().used_bytes, used);
}

TEST_F(CheckedBlockTableTest, ServesThreadsAtOnce) {
  constexpr uintptr_t kEach = 20'000;
  std::vector<std::thread> threads;
  for (uintptr_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uintptr_t i = 1; i <= kEach; ++i) {
        ASSERT_TRUE(table_.Insert(Block(t * kEach + i), arena_));
        table_.Prefetch(Address((t + 1) % 4 * kEach + i));
        if (i % 2 == 0) table_.Remove(Address(t * kEach + i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Count(), 4 * kEach / 2);
}

}  // namespace
}  // namespace tcmalloc
