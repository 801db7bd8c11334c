// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "recorder/recorded_stacks.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <thread>
#include <vector>

namespace tcmalloc {
namespace {

using Frames = std::vector<void*>;

// A stack of a length and frames that follow from a number.
Frames StackOf(uintptr_t number) {
  Frames frames;
  for (uintptr_t i = 0; i < number % 60; ++i) {
    frames.push_back(reinterpret_cast<void*>(number * 1000 + i));
  }
  return frames;
}

class RecordedStacksTest : public ::testing::Test {
 protected:
  std::map<std::vector<uintptr_t>, StackTotals> All() const {
    std::map<std::vector<uintptr_t>, StackTotals> all;
    stacks_.ForEach([&](std::span<const uintptr_t> frames, const StackTotals& totals) {
      EXPECT_TRUE(all.emplace(std::vector(frames.begin(), frames.end()), totals).second);
    });
    return all;
  }

  std::unique_ptr<StackTable> table_ = std::make_unique<StackTable>();
  std::unique_ptr<RecordedStacks> owned_ = std::make_unique<RecordedStacks>(*table_);
  RecordedStacks& stacks_ = *owned_;
};

TEST_F(RecordedStacksTest, EqualStacksHaveOneNameAndOneReference) {
  std::map<uintptr_t, StackId> names;
  // More stacks than are found without a search.
  for (int round = 0; round < 3; ++round) {
    for (uintptr_t i = 1; i <= 20'000; ++i) {
      const StackId id = stacks_.NameOf(StackOf(i));
      ASSERT_NE(id, 0u);
      const auto [known, added] = names.emplace(i, id);
      ASSERT_EQ(added, round == 0);
      ASSERT_EQ(known->second, id);
    }
  }
  // Every stack without frames is the same one.
  EXPECT_EQ(table_->stats().stacks, 20'000 - 20'000 / 60 + 1);
  for (const auto& [number, id] : names) {
    if (number % 60 != 0) table_->Release(id);
  }
  EXPECT_EQ(table_->stats().stacks, 1u);
}

TEST_F(RecordedStacksTest, TotalsAreKeptByStack) {
  const StackId a = stacks_.NameOf(StackOf(61));
  const StackId b = stacks_.NameOf(StackOf(62));
  stacks_.NoteAllocated(a, 100);
  stacks_.NoteAllocated(a, 50);
  stacks_.NoteFreed(a, 100);
  stacks_.NoteAllocated(b, 7);
  stacks_.NoteAllocated(0, 3);
  const auto all = All();
  ASSERT_EQ(all.size(), 3u);
  const StackTotals& totals = all.at({61'000});
  EXPECT_EQ(totals.allocations, 2u);
  EXPECT_EQ(totals.allocated_bytes, 150u);
  EXPECT_EQ(totals.objects_in_use(), 1u);
  EXPECT_EQ(totals.bytes_in_use(), 50u);
  EXPECT_EQ(all.at({62'000, 62'001}).bytes_in_use(), 7u);
  EXPECT_EQ(all.at({}).bytes_in_use(), 3u);
}

TEST_F(RecordedStacksTest, ResetCountsFromZero) {
  const StackId a = stacks_.NameOf(StackOf(61));
  stacks_.NoteAllocated(a, 100);
  const size_t mapped = stacks_.mapped_bytes();
  for (int i = 0; i < 1000; ++i) {
    stacks_.Reset();
    EXPECT_TRUE(All().empty());
    // Frees of blocks of before the reset.
    stacks_.NoteFreed(a, 100);
    EXPECT_EQ(stacks_.NameOf(StackOf(61)), a);
    stacks_.NoteAllocated(a, 10);
    EXPECT_EQ(All().at({61'000}).bytes_in_use(), 0u);
  }
  EXPECT_EQ(stacks_.mapped_bytes(), mapped);
  EXPECT_EQ(table_->stats().stacks, 1u);
}

TEST_F(RecordedStacksTest, ThreadsCountExactly) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (uintptr_t i = 0; i < 50'000; ++i) {
        const StackId id = stacks_.NameOf(StackOf(61 + i % 50));
        stacks_.NoteAllocated(id, 2);
        if (i % 2 == 0) stacks_.NoteFreed(id, 2);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  StackTotals sum;
  for (const auto& [frames, totals] : All()) sum.Add(totals);
  EXPECT_EQ(sum.allocations, 400'000u);
  EXPECT_EQ(sum.allocated_bytes, 800'000u);
  EXPECT_EQ(sum.objects_in_use(), 200'000u);
  EXPECT_EQ(sum.bytes_in_use(), 400'000u);
  EXPECT_EQ(table_->stats().stacks, 50u);
}

}  // namespace
}  // namespace tcmalloc
