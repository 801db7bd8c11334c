// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/event_clock.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace tcmalloc::testing {
namespace {

class EventClockTest : public ::testing::Test {
 protected:
  EventClockTest() { clock_.Initialize(1); }

  // One allocation. Returns whether it was a sample.
  bool Allocate(size_t size) {
    const bool expired = clock_.Advance(size);
    if (expired) clock_.AdvanceSlow(size);
    return expired;
  }

  EventClock clock_;
};

TEST_F(EventClockTest, CountsBytesExactly) {
  std::mt19937_64 random(1);
  uint64_t bytes = 0;
  for (int i = 0; i < 100'000; ++i) {
    const size_t size = random() % 1000;
    bytes += size;
    if (random() % 2 == 0) {
      Allocate(size);
    } else {
      clock_.AdvanceSlow(size);
    }
    ASSERT_EQ(clock_.allocated_bytes(), bytes);
  }
}

TEST_F(EventClockTest, ExpiresAboutEveryMeanInterval) {
  constexpr size_t kSize = 64;
  constexpr int kExpected = 1000;
  int samples = 0;
  for (uint64_t i = 0; i < kExpected * EventClock::kMeanInterval / kSize; ++i) {
    samples += Allocate(kSize) ? 1 : 0;
  }
  EXPECT_NEAR(samples, kExpected, kExpected / 10);
}

TEST_F(EventClockTest, NoIntervalIsLongerThanItSays) {
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_TRUE(clock_.WouldExpire(EventClock::kLongestInterval + 1));
    EXPECT_TRUE(clock_.AdvanceSlow(EventClock::kLongestInterval + 1));
  }
}

TEST_F(EventClockTest, TryAdvanceStopsBeforeTheIntervalRunsOut) {
  constexpr size_t kSize = 48;
  uint64_t bytes = 0;
  while (!clock_.WouldExpire(kSize)) {
    ASSERT_TRUE(clock_.TryAdvance(kSize));
    bytes += kSize;
  }
  EXPECT_FALSE(clock_.TryAdvance(kSize));
  EXPECT_EQ(clock_.allocated_bytes(), bytes);
  EXPECT_TRUE(clock_.Advance(kSize));
}

TEST_F(EventClockTest, IntervalsGrowWithTheBytesUpToTheLongestMean) {
  constexpr uint64_t kLongestMean = 4 * EventClock::kMeanInterval;
  constexpr uint64_t kGrown = EventClock::kGrowthShare * kLongestMean;
  const auto expire = [&](uint64_t bytes, size_t size) {
    const uint64_t end = clock_.allocated_bytes() + bytes;
    int times = 0;
    while (clock_.allocated_bytes() < end) times += clock_.AdvanceSlow(size, kLongestMean) != 0;
    return times;
  };
  constexpr size_t kLarge = EventClock::kLargeBlock;
  EXPECT_NEAR(expire(kGrown / 4, kLarge), kGrown / 4 / EventClock::kMeanInterval, 16);
  expire(kGrown, kLarge);
  EXPECT_NEAR(expire(1000 * kLongestMean, kLarge), 1000, 100);
  EXPECT_NEAR(expire(1000 * EventClock::kMeanInterval, kLarge - 1), 1000, 100);
}

TEST_F(EventClockTest, IntervalsDiffer) {
  std::vector<int> intervals;
  int length = 0;
  while (intervals.size() < 10) {
    ++length;
    if (!Allocate(16)) continue;
    intervals.push_back(length);
    length = 0;
  }
  bool differ = false;
  for (int interval : intervals) differ = differ || interval != intervals.front();
  EXPECT_TRUE(differ);
}

TEST_F(EventClockTest, EstimatesAllocationsOfMixedSizes) {
  std::mt19937_64 random(1);
  constexpr uint64_t kCount = 2'000'000;
  for (uint64_t i = 0; i < kCount; ++i) Allocate(16 + random() % 500);
  EXPECT_NEAR(static_cast<double>(clock_.counted_allocations()), kCount, kCount / 10.0);
}

TEST_F(EventClockTest, HugeAndEmptyAllocations) {
  clock_.AdvanceSlow(size_t{1} << 40);
  EXPECT_EQ(clock_.allocated_bytes(), uint64_t{1} << 40);
  EXPECT_FALSE(clock_.Advance(0));
  clock_.AdvanceSlow(0);
  EXPECT_EQ(clock_.allocated_bytes(), uint64_t{1} << 40);
}

TEST_F(EventClockTest, AHastenedClockExpiresSoonAndLosesNoBytes) {
  EventClock clock;
  clock.Initialize(1);
  uint64_t bytes = 0;
  for (int i = 0; i < 1000; ++i) {
    clock.ExpireWithin(4096);
    int allocations = 1;
    for (; !clock.Advance(100); ++allocations) {
    }
    clock.AdvanceSlow(100);
    ASSERT_EQ(allocations, 41);
    bytes += 4100;
    ASSERT_EQ(clock.allocated_bytes(), bytes);
  }
}

// The fast path finds at most as much as it can count. The intervals are those that would be
// without.
TEST_F(EventClockTest, WhatIsHeldBackIsGivenOut) {
  constexpr size_t kSize = 30'000;
  constexpr int64_t kMost = 100'000;
  constexpr uint64_t kLongestMean = 4 * EventClock::kMeanInterval;
  EventClock whole;
  whole.Initialize(1);
  clock_.HoldBack(kMost);
  int gifts = 0;
  int expired = 0;
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_TRUE(clock_.WouldExpire(kMost + 1));
    const bool gives = clock_.WouldExpire(kSize) && clock_.GiveOut(kMost);
    gifts += gives ? 1 : 0;
    EXPECT_TRUE(clock_.WouldExpire(kMost + 1));
    const uint64_t bytes = whole.AdvanceSlow(kSize, kLongestMean);
    EXPECT_EQ(clock_.WouldExpire(kSize), bytes != 0) << "all was given out";
    if (!clock_.TryAdvance(kSize)) {
      EXPECT_EQ(clock_.AdvanceSlow(kSize, kLongestMean), bytes);
      clock_.HoldBack(kMost);
      ++expired;
    }
    ASSERT_EQ(clock_.allocated_bytes(), whole.allocated_bytes());
    ASSERT_EQ(clock_.passed(), whole.passed());
  }
  EXPECT_GT(gifts, 2 * expired);
  EXPECT_GT(expired, 100);
}

TEST_F(EventClockTest, ASlowPathTakesWhatIsHeldBack) {
  clock_.HoldBack(10);
  EXPECT_EQ(clock_.AdvanceSlow(1000), 0u) << "has not expired";
  EXPECT_EQ(clock_.allocated_bytes(), 1000u);
  EXPECT_FALSE(clock_.GiveOut(EventClock::kLongestInterval)) << "nothing is held back";
}

TEST_F(EventClockTest, AHastenedClockCutsWhatIsHeldBackFirst) {
  clock_.HoldBack(1000);
  clock_.ExpireWithin(4000);
  EXPECT_TRUE(clock_.WouldExpire(1001));
  EXPECT_EQ(clock_.allocated_bytes(), 0u);
  EXPECT_TRUE(clock_.GiveOut(EventClock::kLongestInterval));
  EXPECT_FALSE(clock_.WouldExpire(4000));
  EXPECT_TRUE(clock_.WouldExpire(4001));
  clock_.HoldBack(1000);
  clock_.ExpireWithin(500);
  EXPECT_FALSE(clock_.GiveOut(EventClock::kLongestInterval));
  EXPECT_TRUE(clock_.WouldExpire(501));
  EXPECT_EQ(clock_.allocated_bytes(), 0u);
}

}  // namespace
}  // namespace tcmalloc::testing
