// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "contention/line_table.h"

#include <gtest/gtest.h>

#include <barrier>
#include <cstdint>
#include <thread>
#include <vector>

namespace tcmalloc::bench {
namespace {

class LineTableTest : public ::testing::Test {
 protected:
  static constexpr LineUser kHere{1, 0};
  static constexpr LineUser kThere{2, 1};

  static const void* Address(uintptr_t line, uintptr_t offset = 0) {
    return reinterpret_cast<const void*>((line << LineTable::kLineShift) + offset);
  }
  static bool IsShared(const void* address, LineUser user) {
    return table.NoteWrite(address, user).by_thread;
  }

  void TearDown() override { ++first_line; }

  // Histories are never forgotten: each test has lines of its own.
  static inline constinit LineTable table;
  static inline uintptr_t first_line = 1000;
};

TEST_F(LineTableTest, OneThreadSharesNothing) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(IsShared(Address(first_line), kHere));
    table.NoteRead(Address(first_line), kHere);
  }
}

TEST_F(LineTableTest, EachOfTwoWritersInTurnShares) {
  EXPECT_FALSE(IsShared(Address(first_line), kHere)) << "nobody had it before";
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(IsShared(Address(first_line), kThere));
    EXPECT_TRUE(IsShared(Address(first_line), kHere));
    EXPECT_FALSE(IsShared(Address(first_line), kHere));
  }
}

TEST_F(LineTableTest, AReaderBetweenTwoWritesShares) {
  EXPECT_FALSE(IsShared(Address(first_line), kHere));
  table.NoteRead(Address(first_line), kThere);
  table.NoteRead(Address(first_line), kHere);
  EXPECT_TRUE(IsShared(Address(first_line), kHere));
  EXPECT_FALSE(IsShared(Address(first_line), kHere));
}

TEST_F(LineTableTest, WhoReadsFirstSharesWhenItWrites) {
  EXPECT_FALSE(IsShared(Address(first_line), kHere));
  table.NoteRead(Address(first_line), kThere);
  EXPECT_TRUE(IsShared(Address(first_line), kThere));
}

TEST_F(LineTableTest, ALineHas64BytesAndItsNeighbourIsAnother) {
  EXPECT_FALSE(IsShared(Address(first_line), kHere));
  EXPECT_TRUE(IsShared(Address(first_line, 63), kThere));
  EXPECT_FALSE(IsShared(Address(++first_line), kHere));
}

TEST_F(LineTableTest, ThreadsOfOneCpuShareButNotBetweenCpus) {
  table.NoteWrite(Address(first_line), {1, 7});
  const Sharing same_cpu = table.NoteWrite(Address(first_line), {2, 7});
  EXPECT_TRUE(same_cpu.by_thread);
  EXPECT_FALSE(same_cpu.by_cpu);
  const Sharing same_thread = table.NoteWrite(Address(first_line), {2, 8});
  EXPECT_FALSE(same_thread.by_thread);
  EXPECT_TRUE(same_thread.by_cpu);
}

TEST_F(LineTableTest, LinesThatDisplaceEachOtherAreToldApart) {
  EXPECT_FALSE(table.NoteWrite(Address(first_line), kHere).displaced);
  const Sharing sharing = table.NoteWrite(Address(first_line + LineTable::kLines), kThere);
  EXPECT_TRUE(sharing.displaced);
  EXPECT_FALSE(sharing.by_thread);
  EXPECT_FALSE(table.NoteWrite(Address(first_line + LineTable::kLines), kThere).displaced);
}

// Whatever the order, each thread's first write after another's is shared, and no other.
TEST_F(LineTableTest, RealThreadsInTurn) {
  constexpr int kRounds = 1000;
  uint64_t shared = 0;
  std::barrier turn(2);
  std::vector<std::thread> threads;
  for (uint32_t id = 1; id <= 2; ++id) {
    threads.emplace_back([&, id] {
      for (uint32_t i = 0; i < 2 * kRounds; ++i) {
        if (i % 2 == id % 2) {
          for (int j = 0; j < 3; ++j) shared += IsShared(Address(first_line), {id, 0}) ? 1 : 0;
        }
        turn.arrive_and_wait();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shared, 2u * kRounds - 1);
}

}  // namespace
}  // namespace tcmalloc::bench
