// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/huge/page_bits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace tcmalloc {
namespace {

constexpr size_t kBits = PageBits::kBits;

PageBits RandomRuns(std::mt19937_64& random) {
  PageBits bits;
  for (uint64_t i = random() % 40; i > 0; --i) {
    const size_t first = random() % kBits;
    bits.Set(first, 1 + random() % std::min(kBits - first, size_t{70}));
  }
  return bits;
}

TEST(PageBitsTest, EmptyAndFull) {
  PageBits bits;
  EXPECT_EQ(bits.NextSet(0), kBits);
  EXPECT_EQ(bits.NextClear(0), 0u);
  bits.Set(0, kBits);
  EXPECT_EQ(bits.NextSet(0), 0u);
  EXPECT_EQ(bits.NextClear(0), kBits);
  EXPECT_EQ(bits.Count(0, kBits), kBits);
  EXPECT_EQ(bits.NextSet(kBits), kBits);
  EXPECT_EQ(bits.NextClear(kBits), kBits);
}

TEST(PageBitsTest, NothingIsARange) {
  PageBits bits;
  bits.Set(kBits, 0);
  bits.Set(0, 0);
  EXPECT_EQ(bits.Count(0, kBits), 0u);
}

TEST(PageBitsTest, BehavesAsAVectorOfBits) {
  std::mt19937_64 random(1);
  PageBits bits;
  std::vector<bool> model(kBits);
  for (int step = 0; step < 3000; ++step) {
    const size_t first = random() % kBits;
    const size_t n = random() % (kBits - first + 1);
    const bool set = random() % 2 == 0;
    set ? bits.Set(first, n) : bits.Clear(first, n);
    const auto begin = model.begin() + static_cast<long>(first);
    const auto end = begin + static_cast<long>(n);
    std::fill(begin, end, set);

    const size_t from = random() % kBits;
    const auto start = model.begin() + static_cast<long>(from);
    ASSERT_EQ(bits.Get(from), *start);
    ASSERT_EQ(bits.NextSet(from), std::find(start, model.end(), true) - model.begin());
    ASSERT_EQ(bits.NextClear(from), std::find(start, model.end(), false) - model.begin());
    size_t last = from;
    while (last > 0 && !model[last - 1]) --last;
    ASSERT_EQ(bits.EndOfSetBefore(from), last);
    ASSERT_EQ(bits.Count(from, kBits - from), std::count(start, model.end(), true));
    PageBits one;
    one.Set(from, 1);
    ASSERT_EQ(bits.HasCommon(one), *start);
    ASSERT_FALSE(bits.HasCommon(~bits));
  }
}

TEST(PageBitsTest, ClearRunsAreMaximal) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 1000; ++round) {
    const PageBits bits = RandomRuns(random);
    size_t next = bits.NextClear(0);
    bits.ForEachClearRun([&](size_t first, size_t length) {
      ASSERT_EQ(first, next);
      ASSERT_EQ(first + length, bits.NextSet(first));
      next = bits.NextClear(first + length);
    });
    ASSERT_EQ(next, kBits);
  }
}

TEST(PageBitsTest, RunsAsOneSeesThem) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 1000; ++round) {
    const PageBits bits = RandomRuns(random);
    PageBits::Longest longest;
    const size_t n = 1 + random() % (round % 2 == 0 ? 8 : kBits);
    std::vector<bool> beginnings(kBits);
    (~bits).ForEachClearRun([&](size_t first, size_t length) {
      if (length > longest.length) longest = {length, 0};
      if (length == longest.length) ++longest.runs;
      for (size_t i = first; i + n <= first + length; ++i) beginnings[i] = true;
    });
    ASSERT_EQ(bits.LongestRun().length, longest.length);
    ASSERT_EQ(bits.LongestRun().runs, longest.runs);
    ASSERT_EQ(bits.empty(), longest.length == 0);
    const PageBits found = bits.BeginningsOf(n);
    for (size_t i = 0; i < kBits; ++i) ASSERT_EQ(found.Get(i), beginnings[i]) << i << " of " << n;
  }
  PageBits full;
  full.Set(0, kBits);
  EXPECT_EQ(full.LongestRun().length, kBits);
  EXPECT_EQ(full.LongestRun().runs, 1u);
  EXPECT_TRUE((~full).empty());
}

}  // namespace
}  // namespace tcmalloc
