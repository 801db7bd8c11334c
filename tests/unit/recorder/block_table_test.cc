// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "recorder/block_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "fakes/fault_injection.h"

namespace tcmalloc {
namespace {

// A block whose fields follow from its address. All have one size, so that only their versions tell
// that a record has another block.
RecordedBlock BlockAt(uintptr_t address) {
  return {.address = address,
          .bytes = 40,
          .stamp = address * 5,
          .stack = static_cast<StackId>(address * 7)};
}

bool IsWhole(const RecordedBlock& block) {
  const RecordedBlock whole = BlockAt(block.address);
  return block.bytes == whole.bytes && block.stamp == whole.stamp && block.stack == whole.stack;
}

class BlockTableTest : public ::testing::Test {
 protected:
  std::unique_ptr<BlockTable> owned_ = std::make_unique<BlockTable>();
  BlockTable& table_ = *owned_;
};

TEST_F(BlockTableTest, AnEmptyTableHasNothing) {
  EXPECT_FALSE(table_.Remove(16).has_value());
  EXPECT_FALSE(table_.Find(16).has_value());
  table_.ForEach([](const RecordedBlock&) { FAIL(); });
  table_.Clear();
  EXPECT_EQ(table_.stats().mapped_bytes, 0u);
}

TEST_F(BlockTableTest, AgreesWithAMapThroughRandomActions) {
  std::mt19937_64 random(1);
  std::map<uintptr_t, RecordedBlock> model;
  uint64_t bytes = 0;
  for (uint64_t i = 1; i < 200'000; ++i) {
    const uintptr_t address = 0x7000'0000'0000 + 16 * (random() % 40'000);
    const auto known = model.find(address);
    if (random() % 5 < 3) {
      const RecordedBlock block{
          .address = address, .bytes = i % 1000, .stamp = i, .stack = static_cast<StackId>(i * 3)};
      const auto missed = table_.Insert(block);
      ASSERT_EQ(missed.has_value(), known != model.end());
      if (missed.has_value()) {
        EXPECT_EQ(missed->stamp, known->second.stamp);
        bytes -= known->second.bytes;
      }
      model[address] = block;
      bytes += block.bytes;
    } else {
      ASSERT_EQ(table_.Find(address).has_value(), known != model.end());
      const auto removed = table_.Remove(address);
      ASSERT_EQ(removed.has_value(), known != model.end());
      if (!removed.has_value()) continue;
      EXPECT_EQ(removed->address, address);
      EXPECT_EQ(removed->bytes, known->second.bytes);
      EXPECT_EQ(removed->stamp, known->second.stamp);
      EXPECT_EQ(removed->stack, known->second.stack);
      bytes -= known->second.bytes;
      model.erase(known);
    }
  }
  EXPECT_EQ(table_.stats().blocks, model.size());
  EXPECT_EQ(table_.stats().bytes, bytes);
  size_t seen = 0;
  table_.ForEach([&](const RecordedBlock& block) {
    const auto known = model.find(block.address);
    ASSERT_NE(known, model.end());
    EXPECT_EQ(block.stamp, known->second.stamp);
    ++seen;
  });
  EXPECT_EQ(seen, model.size());
}

TEST_F(BlockTableTest, MemoryIsUsedAgain) {
  const auto fill = [&] {
    for (uintptr_t i = 1; i <= 50'000; ++i) table_.Insert(BlockAt(i * 16));
  };
  fill();
  const size_t mapped = table_.stats().mapped_bytes;
  for (int round = 0; round < 5; ++round) {
    table_.Clear();
    EXPECT_EQ(table_.stats().blocks, 0u);
    EXPECT_EQ(table_.stats().bytes, 0u);
    table_.ForEach([](const RecordedBlock&) { FAIL(); });
    fill();
    EXPECT_EQ(table_.stats().blocks, 50'000u);
  }
  EXPECT_EQ(table_.stats().mapped_bytes, mapped);
  // A record and a bucket for each block, and what was mapped in advance.
  EXPECT_LT(mapped, 50'000u * 36 * 3);
}

// Small programs get by with little: a chunk of each shard is smaller than a page.
TEST_F(BlockTableTest, FewBlocksTakeLittleMemory) {
  constexpr uintptr_t kBlocks = 500;
  constexpr uintptr_t kApart = 128;
  constexpr size_t kMostBytes = size_t{64} << 10;
  for (uintptr_t i = 1; i <= kBlocks; ++i) table_.Insert(BlockAt(i * kApart));
  EXPECT_EQ(table_.stats().blocks, kBlocks);
  EXPECT_LE(table_.stats().mapped_bytes, kMostBytes);
  for (uintptr_t i = 1; i <= kBlocks; ++i) EXPECT_TRUE(IsWhole(*table_.Remove(i * kApart)));
}

TEST_F(BlockTableTest, BlocksThatDoNotFitAreCounted) {
  {
    const testing::ScopedFaultInjection faults;
    testing::InjectFaults(testing::SystemCall::kMmap, {.mode = testing::FaultMode::kFrom});
    for (uintptr_t i = 1; i <= 100; ++i) table_.Insert(BlockAt(i * 16));
    testing::ClearFaults();
  }
  EXPECT_EQ(table_.stats().blocks, 0u);
  EXPECT_EQ(table_.stats().left_out, 100u);
  table_.Insert(BlockAt(16));
  EXPECT_EQ(table_.stats().blocks, 1u);
}

// A copy of the process that is made at any time has the block.
TEST_F(BlockTableTest, ABlockThatIsReplacedIsNeverMissed) {
  std::atomic<bool> stop{false};
  table_.Insert(BlockAt(16));
  std::thread writer([&] {
    while (!stop) table_.Insert(BlockAt(16));
  });
  int found = 0;
  for (int i = 0; i < 200'000; ++i) table_.ForEach([&](const RecordedBlock&) { ++found; });
  stop = true;
  writer.join();
  EXPECT_EQ(found, 200'000);
}

TEST_F(BlockTableTest, ReadersSeeWholeBlocksWhileThreadsComeAndGo) {
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  table_.Insert(BlockAt(8));
  std::thread reader([&] {
    while (!done) {
      int stays = 0;
      table_.ForEach([&](const RecordedBlock& block) {
        wrong += IsWhole(block) ? 0 : 1;
        stays += block.address == 8 ? 1 : 0;
      });
      wrong += stays == 1 ? 0 : 1;
    }
  });
  std::vector<std::thread> writers;
  for (uintptr_t t = 1; t <= 4; ++t) {
    writers.emplace_back([&, t] {
      for (uintptr_t round = 0; round < 500; ++round) {
        // Blocks of other addresses in each round take the records of earlier ones.
        const uintptr_t base = (t << 40) + (round << 20);
        for (uintptr_t i = 1; i <= 1000; ++i) {
          wrong += table_.Insert(BlockAt(base + i * 16)).has_value() ? 1 : 0;
        }
        for (uintptr_t i = 1; i <= 1000; ++i) {
          const auto removed = table_.Remove(base + i * 16);
          wrong += removed.has_value() && IsWhole(*removed) ? 0 : 1;
        }
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  done = true;
  reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(table_.stats().blocks, 1u);
}

}  // namespace
}  // namespace tcmalloc
