// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "base/random.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <set>

namespace tcmalloc {
namespace {

TEST(RandomTest, EveryBitOfTheStateChangesHalfOfTheNext) {
  for (uint64_t i = 0; i < 64; ++i) {
    const int changed = std::popcount(NextRandom(12345) ^ NextRandom(12345 ^ uint64_t{1} << i));
    EXPECT_GT(changed, 12);
    EXPECT_LT(changed, 52);
  }
}

TEST(RandomTest, NoStateIsStuck) {
  std::set<uint64_t> states;
  uint64_t state = 0;
  for (int i = 0; i < 100'000; ++i) {
    state = NextRandom(state);
    ASSERT_TRUE(states.insert(state).second);
  }
}

}  // namespace
}  // namespace tcmalloc
