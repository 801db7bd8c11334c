// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/per_cpu/class_set.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <vector>

namespace tcmalloc::testing {
namespace {

constexpr auto kLastClass = static_cast<uint8_t>(kSizeClassCount - 1);

std::vector<uint8_t> Classes(const ClassSet& set) {
  std::vector<uint8_t> classes;
  set.ForEach([&classes](uint8_t c) { classes.push_back(c); });
  return classes;
}

TEST(ClassSetTest, IsEmptyAtFirst) {
  const ClassSet set;
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(set.count(), 0u);
  EXPECT_TRUE(Classes(set).empty());
}

TEST(ClassSetTest, CountsEachClassOnce) {
  ClassSet set;
  for (int i = 0; i < 2; ++i) set.Add(3);
  EXPECT_EQ(set.count(), 1u);
  for (int i = 0; i < 2; ++i) set.Remove(3);
  EXPECT_TRUE(set.empty());
}

TEST(ClassSetTest, OneClassFollowsItself) {
  for (const uint8_t c : {uint8_t{1}, uint8_t{63}, uint8_t{64}, kLastClass}) {
    ClassSet set;
    set.Add(c);
    EXPECT_EQ(set.After(c), c);
    EXPECT_EQ(set.After(0), c);
    EXPECT_EQ(set.After(kLastClass), c);
  }
}

TEST(ClassSetTest, DoesAsASetDoes) {
  std::mt19937 random(1);
  ClassSet set;
  std::set<uint8_t> expected;
  for (int i = 0; i < 10'000; ++i) {
    const auto c = static_cast<uint8_t>(1 + random() % kLastClass);
    if (random() % 8 < expected.size()) {
      set.Remove(c);
      expected.erase(c);
    } else {
      set.Add(c);
      expected.insert(c);
    }
    ASSERT_EQ(set.count(), expected.size());
    ASSERT_EQ(set.Has(c), expected.contains(c));
    ASSERT_EQ(Classes(set), std::vector<uint8_t>(expected.begin(), expected.end()));
    if (expected.empty()) continue;
    const auto from = static_cast<uint8_t>(random() % kSizeClassCount);
    const auto next = expected.upper_bound(from);
    ASSERT_EQ(set.After(from), next != expected.end() ? *next : *expected.begin());
  }
}

}  // namespace
}  // namespace tcmalloc::testing
