// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/checked_block_table.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "system/system_calls.h"

namespace tcmalloc {
namespace {

char* Address(uintptr_t number) { return reinterpret_cast<char*>(number * 16); }

class CheckedBlockTableTest : public ::testing::Test {
 protected:
  // Makes records of blocks with the numbers up to `count`.
  void Make(uintptr_t count) {
    records_ = std::vector<BlockRecord>(count + 1);
    for (uintptr_t i = 0; i <= count; ++i) records_[i].user = Address(i);
  }
  BlockRecord* Record(uintptr_t number) { return &records_[number]; }
  BlockRecord* Find(uintptr_t number) { return table_.Find(Address(number)); }

  std::vector<BlockRecord> records_;
  std::unique_ptr<CheckedBlockTable> owned_ = std::make_unique<CheckedBlockTable>();
  CheckedBlockTable& table_ = *owned_;
};

TEST_F(CheckedBlockTableTest, AnEmptyTableHasNothing) {
  EXPECT_EQ(Find(1), nullptr);
  EXPECT_EQ(table_.Find(nullptr), nullptr);
}

TEST_F(CheckedBlockTableTest, KeepsWhatWasInserted) {
  Make(100);
  table_.Insert(Record(100));
  EXPECT_EQ(Find(100), Record(100));
  EXPECT_EQ(table_.Find(Address(100) + 1), nullptr);
  table_.Remove(Record(100));
  EXPECT_EQ(Find(100), nullptr);
}

TEST_F(CheckedBlockTableTest, AgreesWithASetOverRandomActions) {
  constexpr uintptr_t kMost = 100'000;
  Make(kMost);
  std::mt19937 random(7);
  std::set<uintptr_t> model;
  for (int i = 0; i < 400'000; ++i) {
    const uintptr_t number = 1 + random() % kMost;
    if (model.contains(number)) {
      table_.Remove(Record(number));
      model.erase(number);
    } else {
      table_.Insert(Record(number));
      model.insert(number);
    }
    const uintptr_t other = 1 + random() % kMost;
    ASSERT_EQ(Find(other), model.contains(other) ? Record(other) : nullptr) << other;
  }
}

TEST_F(CheckedBlockTableTest, NeedsNoMemory) {
  constexpr uintptr_t kMost = 1000;
  Make(kMost);
  const auto saved = system_calls.mmap;
  system_calls.mmap = [](void*, size_t, int, int, int, off_t) { return MAP_FAILED; };
  for (uintptr_t i = 1; i <= kMost; ++i) table_.Insert(Record(i));
  table_.Remove(Record(7));
  system_calls.mmap = saved;
  for (uintptr_t i = 1; i <= kMost; ++i) ASSERT_EQ(Find(i), i == 7 ? nullptr : Record(i)) << i;

  table_.Insert(Record(7));
  for (uintptr_t i = 1; i <= kMost; ++i) ASSERT_EQ(Find(i), Record(i)) << "with buckets, " << i;
}

TEST_F(CheckedBlockTableTest, ServesThreadsAtOnce) {
  constexpr uintptr_t kEach = 20'000;
  Make(4 * kEach);
  std::vector<std::thread> threads;
  for (uintptr_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uintptr_t i = 1; i <= kEach; ++i) {
        table_.Insert(Record(t * kEach + i));
        Find((t + 1) % 4 * kEach + i);
        if (i % 2 == 0) table_.Remove(Record(t * kEach + i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (uintptr_t i = 1; i <= 4 * kEach; ++i) {
    ASSERT_EQ(Find(i), i % 2 == 0 ? nullptr : Record(i)) << i;
  }
}

}  // namespace
}  // namespace tcmalloc
