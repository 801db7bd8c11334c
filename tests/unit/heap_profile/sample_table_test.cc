// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/sample_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "heap_profile/sample_log.h"

namespace tcmalloc {
namespace {

// A sample all of whose fields follow from a number.
Sample SampleOf(uint64_t number) {
  return {.address = number,
          .requested = number * 3,
          .allocated = number * 5,
          .weight = static_cast<double>(number),
          .time_ns = static_cast<int64_t>(number * 7),
          .stack = static_cast<StackId>(number),
          .thread = static_cast<uint32_t>(number * 11),
          .alignment = number % 3 == 0 ? 0 : uint32_t{1} << number % 32,
          .twin = (number * 0x123456789abc & 0x1ff'ffff'ffff'ffff) & ~uint64_t{7},
          .keeps_twin = number % 2 != 0};
}

bool IsWhole(const Sample& sample) {
  const Sample whole = SampleOf(sample.address);
  return sample.requested == whole.requested && sample.allocated == whole.allocated &&
         sample.weight == whole.weight && sample.time_ns == whole.time_ns &&
         sample.stack == whole.stack && sample.thread == whole.thread &&
         sample.alignment == whole.alignment && sample.twin == whole.twin &&
         sample.keeps_twin == whole.keeps_twin;
}

class SampleTableTest : public ::testing::Test {
 protected:
  std::unique_ptr<SampleTable> owned_ = std::make_unique<SampleTable>();
  SampleTable& table_ = *owned_;
};

TEST_F(SampleTableTest, HoldsWhatWasAddedAndNotRemoved) {
  std::mt19937 random(1);
  std::map<SampleId, uint64_t> live;
  for (uint64_t i = 1; i < 20'000; ++i) {
    if (random() % 3 != 0 || live.empty()) {
      const SampleId id = table_.Add(SampleOf(i));
      ASSERT_NE(id, 0u);
      ASSERT_TRUE(live.emplace(id, i).second);
    } else {
      auto it = live.lower_bound(static_cast<SampleId>(random() % 10'000));
      if (it == live.end()) it = live.begin();
      const Sample removed = table_.Remove(it->first);
      EXPECT_EQ(removed.address, it->second);
      EXPECT_TRUE(IsWhole(removed));
      live.erase(it);
    }
  }
  size_t seen = 0;
  table_.ForEach([&](const Sample& sample) {
    EXPECT_TRUE(IsWhole(sample));
    ++seen;
  });
  EXPECT_EQ(seen, live.size());
  EXPECT_EQ(table_.stats().samples, live.size());
}

TEST_F(SampleTableTest, ResizeChangesTheSizesAndTheWeight) {
  const SampleId id = table_.Add(SampleOf(9));
  EXPECT_EQ(table_.Resize(id, 100, 200, 3).requested, 27u);
  const Sample sample = table_.Remove(id);
  EXPECT_EQ(sample.requested, 100u);
  EXPECT_EQ(sample.allocated, 200u);
  EXPECT_EQ(sample.weight, 3);
}

TEST_F(SampleTableTest, SamplesBeyondTheLimitAreLeftOut) {
  table_.set_limit(2);
  const SampleId first = table_.Add(SampleOf(1));
  EXPECT_NE(table_.Add(SampleOf(2)), 0u);
  EXPECT_EQ(table_.Add(SampleOf(3)), 0u);
  EXPECT_EQ(table_.stats().left_out, 1u);
  table_.Remove(first);
  EXPECT_NE(table_.Add(SampleOf(4)), 0u);
  EXPECT_EQ(table_.stats().samples, 2u);
}

TEST(SampleLogTest, RowsBeyondTheLimitAreCounted) {
  const auto stacks = std::make_unique<StackTable>();
  SampleLog log(*stacks);
  log.set_limit(100);
  log.Append({.sample = SampleOf(1)});
  log.AddUser();
  for (uint64_t i = 1; i <= 150; ++i) log.Append({.sample = {.requested = i}});
  size_t rows = 0;
  log.ForEach([&](const ProfileRow&) { ++rows; });
  EXPECT_EQ(rows, 100u);
  EXPECT_EQ(log.left_out(), 50u);
  log.RemoveUser();
  EXPECT_EQ(log.left_out(), 0u);
}

TEST_F(SampleTableTest, ReadersSeeWholeSamplesWhileOthersComeAndGo) {
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    while (!done) {
      table_.ForEach([&](const Sample& sample) { wrong += IsWhole(sample) ? 0 : 1; });
    }
  });
  std::vector<std::thread> writers;
  for (uint64_t t = 0; t < 3; ++t) {
    writers.emplace_back([&, t] {
      std::vector<SampleId> ids;
      for (uint64_t i = 1; i < 30'000; ++i) {
        ids.push_back(table_.Add(SampleOf(i * 3 + t)));
        if (ids.size() < 50) continue;
        for (const SampleId id : ids) wrong += IsWhole(table_.Remove(id)) ? 0 : 1;
        ids.clear();
      }
      for (const SampleId id : ids) table_.Remove(id);
    });
  }
  for (std::thread& writer : writers) writer.join();
  done = true;
  reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(table_.stats().samples, 0u);
}

}  // namespace
}  // namespace tcmalloc
