// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/marker.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "unit/leak_check/own_memory_map.h"

namespace tcmalloc {
namespace {

using State = Marker::State;

constexpr size_t kWords = 8;

// Blocks of kWords words each, by number.
class MarkerTest : public ::testing::Test {
 protected:
  void SetUp() override { Make(64); }

  void Make(size_t count) {
    memory_ = std::make_unique<uintptr_t[]>(count * 2 * kWords);
    blocks_.clear();
    for (size_t i = 0; i < count; ++i) {
      blocks_.push_back({.address = AddressOf(i), .bytes = kWords * sizeof(uintptr_t)});
    }
  }
  uintptr_t AddressOf(size_t i) const {
    return reinterpret_cast<uintptr_t>(&memory_[i * 2 * kWords]);
  }
  void Link(size_t from, size_t to, size_t word = 0, size_t offset = 0) {
    memory_[from * 2 * kWords + word] = AddressOf(to) + offset;
  }
  std::unique_ptr<Marker> Start(const PointerRules& rules = {}) {
    index_ = std::make_unique<BlockIndex>();
    EXPECT_TRUE(index_->Build(blocks_.data(), blocks_.size()));
    EXPECT_TRUE(ReadOwn(&map_));
    return std::make_unique<Marker>(*index_, map_, rules);
  }

  std::unique_ptr<uintptr_t[]> memory_;
  std::vector<Block> blocks_;
  std::unique_ptr<BlockIndex> index_;
  MemoryMap map_;
};

TEST_F(MarkerTest, FollowsChains) {
  for (size_t i = 0; i < 10; ++i) Link(i, i + 1, i % kWords, i);
  auto marker = Start();
  marker->MarkBlock(3);
  for (uint32_t i = 0; i < 64; ++i) {
    EXPECT_EQ(marker->state(i), i >= 3 && i <= 10 ? State::kReached : State::kLost) << i;
  }
}

TEST_F(MarkerTest, StartsFromWordsOfARange) {
  uintptr_t roots[] = {0, AddressOf(5) + 1, 7, AddressOf(9)};
  auto marker = Start();
  const auto begin = reinterpret_cast<uintptr_t>(roots);
  marker->MarkFrom({begin, begin + 3 * sizeof(uintptr_t)});
  EXPECT_EQ(marker->state(5), State::kReached);
  EXPECT_EQ(marker->state(9), State::kLost);
}

TEST_F(MarkerTest, OffsetsBeyondTheRuleDoNotCount) {
  Link(0, 1, 0, 16);
  Link(0, 2, 1, 17);
  Link(0, 3, 2, 0);
  auto marker = Start({.most_offset = 16});
  marker->MarkBlock(0);
  EXPECT_EQ(marker->state(1), State::kReached);
  EXPECT_EQ(marker->state(2), State::kLost);
  EXPECT_EQ(marker->state(3), State::kReached);
}

TEST_F(MarkerTest, OffsetsInMappingsCount) {
  blocks_[1].is_mapping = true;
  Link(0, 1, 0, 17);
  auto marker = Start({.most_offset = 16});
  marker->MarkBlock(0);
  EXPECT_EQ(marker->state(1), State::kReached);
}

TEST_F(MarkerTest, AlignmentOfSources) {
  const uintptr_t target = AddressOf(1);
  std::memcpy(reinterpret_cast<char*>(&memory_[0]) + 3, &target, sizeof(target));
  auto aligned = Start();
  aligned->MarkBlock(0);
  EXPECT_EQ(aligned->state(1), State::kLost);
  auto any = Start({.source_alignment = 1});
  any->MarkBlock(0);
  EXPECT_EQ(any->state(1), State::kReached);
}

TEST_F(MarkerTest, TellsDirectFromIndirectLosses) {
  Link(20, 10);  // 20 leads to 10, and 10 to 11 and 12
  Link(10, 11);
  Link(10, 12, 1);
  auto marker = Start();
  marker->SortLost();
  EXPECT_EQ(marker->state(20), State::kLost);
  for (const uint32_t i : {10u, 11u, 12u}) EXPECT_EQ(marker->state(i), State::kLostWithOther);
  EXPECT_EQ(marker->state(30), State::kLost);
}

TEST_F(MarkerTest, OneBlockOfACycleIsLostDirectly) {
  Link(1, 2);
  Link(2, 3);
  Link(3, 1);
  Link(3, 4, 1);
  Link(5, 5);
  auto marker = Start();
  marker->SortLost();
  EXPECT_EQ(marker->state(1), State::kLost);
  for (const uint32_t i : {2u, 3u, 4u}) EXPECT_EQ(marker->state(i), State::kLostWithOther);
  EXPECT_EQ(marker->state(5), State::kLost);
}

TEST_F(MarkerTest, MappingsThatNothingLeadsToMakeNoIndirectLosses) {
  blocks_[1].is_mapping = true;
  blocks_[30].is_mapping = true;
  Link(1, 2);
  Link(2, 3);
  Link(20, 30);
  Link(30, 31);
  auto marker = Start();
  marker->SortLost();
  for (const uint32_t i : {2u, 20u}) EXPECT_EQ(marker->state(i), State::kLost) << i;
  for (const uint32_t i : {3u, 31u}) EXPECT_EQ(marker->state(i), State::kLostWithOther) << i;
}

// Whatever is lost is reached from a block that is lost directly, and none of these from another.
TEST_F(MarkerTest, RandomGraphsHaveLeastSetsOfDirectLosses) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const size_t count = 2 + random() % 30;
    Make(count);
    std::vector<std::vector<bool>> leads(count, std::vector<bool>(count));
    for (size_t links = random() % (2 * count); links > 0; --links) {
      const size_t from = random() % count;
      const size_t word = random() % kWords;
      if (memory_[from * 2 * kWords + word] != 0) continue;
      const size_t to = random() % count;
      Link(from, to, word);
      leads[from][to] = true;
    }
    for (size_t k = 0; k < count; ++k) {
      for (size_t i = 0; i < count; ++i) {
        for (size_t j = 0; j < count; ++j) {
          if (leads[i][k] && leads[k][j]) leads[i][j] = true;
        }
      }
    }
    auto marker = Start();
    const uint32_t root = static_cast<uint32_t>(random() % count);
    marker->MarkBlock(root);
    marker->SortLost();
    for (uint32_t i = 0; i < count; ++i) {
      ASSERT_EQ(marker->state(i) == State::kReached, i == root || leads[root][i]);
      if (marker->state(i) == State::kReached) continue;
      bool from_direct = false;
      for (uint32_t j = 0; j < count; ++j) {
        from_direct |= j != i && marker->state(j) == State::kLost && leads[j][i];
      }
      ASSERT_EQ(from_direct, marker->state(i) == State::kLostWithOther) << round;
    }
  }
}

}  // namespace
}  // namespace tcmalloc
