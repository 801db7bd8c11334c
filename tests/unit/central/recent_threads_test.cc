// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "central/recent_threads.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tcmalloc::testing {
namespace {

constexpr uint32_t kMost = 4;

class RecentThreadsTest : public ::testing::Test {
 protected:
  // An address for each of some threads.
  char addresses_[3 * kMost] = {};
  RecentThreads<int, kMost> threads_;
};

TEST_F(RecentThreadsTest, EachHasAPlaceOfItsOwn) {
  for (int i = 0; i < static_cast<int>(kMost); ++i) {
    const auto [place, known] = threads_.Find(&addresses_[i]);
    EXPECT_FALSE(known);
    EXPECT_EQ(place, 0);
    place = i + 1;
    EXPECT_EQ(threads_.count(), static_cast<uint32_t>(i) + 1);
    EXPECT_EQ(threads_.places().size(), threads_.count());
  }
  for (int i = static_cast<int>(kMost) - 1; i >= 0; --i) {
    const auto [place, known] = threads_.Find(&addresses_[i]);
    EXPECT_TRUE(known);
    EXPECT_EQ(place, i + 1);
  }
}

TEST_F(RecentThreadsTest, AFurtherOneTakesThePlaceOfTheFirst) {
  for (uint32_t i = 0; i < kMost; ++i)
    threads_.Find(&addresses_[i]).place = static_cast<int>(i) + 1;
  for (uint32_t i = 0; i < 2 * kMost; ++i) {
    const auto [place, known] = threads_.Find(&addresses_[kMost + i]);
    EXPECT_FALSE(known);
    EXPECT_EQ(place, static_cast<int>(i % kMost) + 1) << "what the thread before left there";
    EXPECT_EQ(threads_.count(), kMost);
  }
  EXPECT_FALSE(threads_.Find(&addresses_[0]).known);
}

}  // namespace
}  // namespace tcmalloc::testing
