// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/block_index.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace tcmalloc {
namespace {

TEST(BlockIndexTest, FindsNothingAmongNoBlocks) {
  BlockIndex index;
  ASSERT_TRUE(index.Build(nullptr, 0));
  for (const uintptr_t address : {uintptr_t{0}, uintptr_t{1}, uintptr_t{1} << 40, UINTPTR_MAX}) {
    EXPECT_EQ(index.Find(address), BlockIndex::kNone);
  }
}

TEST(BlockIndexTest, FindsEachByteAndNoOther) {
  std::vector<Block> blocks = {{.address = 0x10000, .bytes = 1},
                               {.address = 0x30000, .bytes = 100'000},
                               {.address = 0x20ff8, .bytes = 16},
                               {.address = 0x7fff'ffff'0000, .bytes = 0}};
  BlockIndex index;
  ASSERT_TRUE(index.Build(blocks.data(), blocks.size()));
  for (uint32_t i = 0; i < blocks.size(); ++i) {
    const Block& block = index[i];
    const uint64_t bytes = std::max<uint64_t>(block.bytes, 1);
    EXPECT_EQ(index.Find(block.address), i);
    EXPECT_EQ(index.Find(block.address + bytes - 1), i);
    EXPECT_EQ(index.Find(block.address - 1), BlockIndex::kNone);
    EXPECT_EQ(index.Find(block.address + bytes), BlockIndex::kNone);
  }
}

long PageFaults() {
  rusage usage = {};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

// The check at the end of a small program costs little, though the table covers all addresses.
TEST(BlockIndexTest, TouchesLittleMemoryForOneBlock) {
  std::vector<Block> blocks = {{.address = 0x7fff'ffff'0000, .bytes = 8}};
  const long before = PageFaults();
  {
    BlockIndex index;
    ASSERT_TRUE(index.Build(blocks.data(), blocks.size()));
    EXPECT_EQ(index.Find(0x7fff'ffff'0000), 0u);
  }
  constexpr long kMostFaults = 128;
  EXPECT_LT(PageFaults() - before, kMostFaults);
}

// Many words look like addresses between the heap and the mappings: pairs of small numbers.
TEST(BlockIndexTest, SearchesBetweenFarBlocksTouchNoMemory) {
  std::vector<Block> blocks = {{.address = 0x1000'0000'0000, .bytes = 64},
                               {.address = 0x1000'0000'1000, .bytes = 64},
                               {.address = 0x7fff'0000'0000, .bytes = 64}};
  BlockIndex index;
  ASSERT_TRUE(index.Build(blocks.data(), blocks.size()));
  const long before = PageFaults();
  for (uintptr_t number = 0x1001; number < 0x7fff; ++number) {
    EXPECT_EQ(index.Find((number << 32) + 8), BlockIndex::kNone);
  }
  constexpr long kMostFaults = 16;
  EXPECT_LT(PageFaults() - before, kMostFaults);
  for (uint32_t i = 0; i < blocks.size(); ++i) EXPECT_EQ(index.Find(blocks[i].address + 63), i);
}

TEST(BlockIndexTest, AgreesWithAMapOnRandomBlocks) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20; ++round) {
    std::map<uintptr_t, uint64_t> ends;
    std::vector<Block> blocks;
    uintptr_t at = 0x5000'0000'0000;
    for (int i = 0; i < 2000; ++i) {
      const int kind = static_cast<int>(random() % 10);
      if (kind == 0) at += random() % (uint64_t{1} << 32);
      at = (at + random() % 64 + 15) / 16 * 16;
      const uint64_t bytes = kind == 1 ? random() % 3'000'000 : random() % 200;
      blocks.push_back({.address = at, .bytes = bytes});
      ends[at] = at + std::max<uint64_t>(bytes, 1);
      at += std::max<uint64_t>(bytes, 1);
    }
    std::shuffle(blocks.begin(), blocks.end(), random);
    BlockIndex index;
    ASSERT_TRUE(index.Build(blocks.data(), blocks.size()));
    for (int i = 0; i < 20'000; ++i) {
      const Block& near = blocks[random() % blocks.size()];
      const uintptr_t address = near.address + random() % (near.bytes + 64) - 32;
      auto it = ends.upper_bound(address);
      const bool inside = it != ends.begin() && address < std::prev(it)->second;
      const uint32_t found = index.Find(address);
      ASSERT_EQ(found != BlockIndex::kNone, inside) << std::hex << address;
      if (inside) {
        ASSERT_EQ(index[found].address, std::prev(it)->first);
      }
    }
  }
}

}  // namespace
}  // namespace tcmalloc
