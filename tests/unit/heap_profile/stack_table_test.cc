// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/stack_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace tcmalloc {
namespace {

using Frames = std::vector<void*>;

// A stack that only this number has.
Frames FramesOf(uintptr_t number) {
  Frames frames(1 + number % kMostFrames);
  for (size_t i = 0; i < frames.size(); ++i) {
    frames[i] = reinterpret_cast<void*>(number * 1000 + i + 1);
  }
  return frames;
}

bool Holds(const StackTable::Reader& reader, StackId id, const Frames& frames) {
  const std::span<const uintptr_t> held = reader.frames(id);
  return std::equal(held.begin(), held.end(), frames.begin(), frames.end(),
                    [](uintptr_t a, void* b) { return a == reinterpret_cast<uintptr_t>(b); });
}

class StackTableTest : public ::testing::Test {
 protected:
  std::unique_ptr<StackTable> owned_ = std::make_unique<StackTable>();
  StackTable& table_ = *owned_;
};

TEST_F(StackTableTest, EqualStacksAreStoredOnce) {
  const StackId first = table_.Add(FramesOf(1));
  EXPECT_NE(first, 0u);
  EXPECT_EQ(table_.Add(FramesOf(1)), first);
  EXPECT_NE(table_.Add(FramesOf(2)), first);
  EXPECT_EQ(table_.stats().stacks, 2u);
}

TEST_F(StackTableTest, StacksOfEveryDepthAreKept) {
  std::vector<StackId> ids;
  for (uintptr_t i = 0; i < 5000; ++i) ids.push_back(table_.Add(FramesOf(i)));
  const StackTable::Reader reader(table_);
  for (uintptr_t i = 0; i < 5000; ++i) ASSERT_TRUE(Holds(reader, ids[i], FramesOf(i))) << i;
}

TEST_F(StackTableTest, AnEmptyStackIsAStack) {
  const StackId id = table_.Add({});
  EXPECT_NE(id, 0u);
  EXPECT_TRUE(StackTable::Reader(table_).frames(id).empty());
}

TEST_F(StackTableTest, AReleasedStackIsFoundAgain) {
  const StackId id = table_.Add(FramesOf(3));
  table_.Release(id);
  EXPECT_EQ(table_.stats().stacks, 0u);
  EXPECT_EQ(table_.Add(FramesOf(3)), id);
  EXPECT_EQ(table_.stats().stacks, 1u);
}

TEST_F(StackTableTest, WordsOfReleasedStacksAreUsedAgain) {
  size_t bytes = 0;
  for (uintptr_t round = 0; round < 100; ++round) {
    std::vector<StackId> ids;
    for (uintptr_t i = 0; i < 2000; ++i) ids.push_back(table_.Add(FramesOf(round * 2000 + i)));
    for (const StackId id : ids) table_.Release(id);
    if (round == 10) bytes = table_.stats().bytes;
  }
  EXPECT_LE(table_.stats().bytes, 2 * bytes);
}

// More than the first buckets are for, so that the table gets more of them on the way.
constexpr uintptr_t kMany = 3 * StackBuckets::kLongList * StackBuckets::SizeOf(0);

TEST_F(StackTableTest, StacksAreStoredOnceHoweverManyThereAre) {
  std::vector<StackId> ids;
  const size_t mapped = table_.stats().mapped_bytes;
  for (uintptr_t i = 0; i < kMany; ++i) ids.push_back(table_.Add(FramesOf(i)));
  EXPECT_GT(table_.stats().mapped_bytes, mapped + StackBuckets::SizeOf(1) * sizeof(uint32_t));
  for (uintptr_t i = 0; i < kMany; ++i) ASSERT_EQ(table_.Add(FramesOf(i)), ids[i]) << i;
  EXPECT_EQ(table_.stats().stacks, kMany);
}

TEST_F(StackTableTest, AnEqualStackOfFewerBucketsIsTheFirst) {
  const StackId first = table_.Add(FramesOf(7));
  for (uintptr_t i = 0; i < kMany; ++i) table_.Add(FramesOf(i));
  const StackId opened = table_.NewOpen();
  table_.Close(opened, FramesOf(7));
  EXPECT_EQ(StackTable::Reader(table_).FirstEqual(opened), first);
}

TEST_F(StackTableTest, StacksOfAllBucketsAreRemoved) {
  size_t bytes = 0;
  for (uintptr_t round = 0; round < 6; ++round) {
    std::vector<StackId> ids;
    for (uintptr_t i = 0; i < kMany; ++i) ids.push_back(table_.Add(FramesOf(round * kMany + i)));
    for (const StackId id : ids) table_.Release(id);
    if (round == 1) bytes = table_.stats().bytes;
  }
  EXPECT_LE(table_.stats().bytes, 2 * bytes);
}

TEST_F(StackTableTest, WordsAreNotUsedAgainWhileSomebodyReads) {
  const StackId id = table_.Add(FramesOf(1));
  const StackTable::Reader reader(table_);
  table_.Release(id);
  for (uintptr_t i = 2; i < 20'000; ++i) table_.Release(table_.Add(FramesOf(i)));
  EXPECT_TRUE(Holds(reader, id, FramesOf(1)));
}

TEST_F(StackTableTest, RetainAddsAReference) {
  const StackId id = table_.Add(FramesOf(1));
  EXPECT_TRUE(table_.Retain(id));
  table_.Release(id);
  EXPECT_EQ(table_.stats().stacks, 1u);
  table_.Release(id);
  EXPECT_EQ(table_.stats().stacks, 0u);
}

// Each thread adds stacks that others add too, looks whether they are whole, and releases them.
TEST_F(StackTableTest, ThreadsAddReleaseAndSweepAtOnce) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uintptr_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::pair<StackId, uintptr_t>> held;
      for (uintptr_t i = 0; i < 40'000; ++i) {
        const uintptr_t number = i % 3 == 0 ? i : i * 4 + t;
        held.emplace_back(table_.Add(FramesOf(number)), number);
        if (held.size() < 1500) continue;
        const auto [id, expected] = held[i % held.size()];
        {
          const StackTable::Reader reader(table_);
          if (id == 0 || !Holds(reader, id, FramesOf(expected))) ++wrong;
        }
        for (const auto& [one, unused] : held) table_.Release(one);
        held.clear();
      }
      for (const auto& [one, unused] : held) table_.Release(one);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(table_.stats().stacks, 0u);
}

}  // namespace
}  // namespace tcmalloc
