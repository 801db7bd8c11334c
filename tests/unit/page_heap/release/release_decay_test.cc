// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// When unused memory becomes due for release.

#include "page_heap/release/release_decay.h"

#include <gtest/gtest.h>

namespace tcmalloc::testing {
namespace {

constexpr uint64_t kHalfLife = 8'000'000;
constexpr uint64_t kStep = kHalfLife / ReleaseDecay::kSteps;
constexpr uint64_t kStart = 1'000'000'000;

// A heap of which nothing is taken unless a test says so, and from which all that is due goes.
class ReleaseDecayTest : public ::testing::Test {
 protected:
  ReleaseDecayTest() {
    decay_.set_half_life(kHalfLife);
    decay_.PagesDue(now_, free_);
  }

  void Take(uintptr_t pages) {
    free_ -= Length(pages);
    decay_.NoteFree(free_);
  }
  void Give(uintptr_t pages) { free_ += Length(pages); }

  Length Pass(uint64_t ns) {
    now_ += ns;
    const Length due = decay_.PagesDue(now_, free_);
    decay_.NoteReleased(due);
    free_ -= due;
    return due;
  }
  void PassHalfLife() {
    for (int i = 0; i < ReleaseDecay::kSteps; ++i) Pass(kStep);
  }

  ReleaseDecay decay_;
  uint64_t now_ = kStart;
  Length free_;
};

TEST_F(ReleaseDecayTest, NothingIsDueBeforeAHalfLifeHasPassed) {
  Give(1000);
  for (int i = 0; i < ReleaseDecay::kSteps; ++i) EXPECT_EQ(Pass(kStep), Length(0));
  EXPECT_GT(Pass(kStep), Length(0));
}

TEST_F(ReleaseDecayTest, UnneededMemoryHalvesInEachHalfLife) {
  Give(1 << 20);
  PassHalfLife();
  for (uintptr_t left = 1 << 20; left > 64; left /= 2) {
    EXPECT_NEAR(static_cast<double>(free_.pages()), static_cast<double>(left),
                static_cast<double>(left) / 50 + ReleaseDecay::kSteps);
    PassHalfLife();
  }
}

TEST_F(ReleaseDecayTest, EverythingGoesInTheEnd) {
  Give(1000);
  for (int i = 0; i < 64; ++i) PassHalfLife();
  EXPECT_EQ(free_, Length(0));
}

TEST_F(ReleaseDecayTest, WhatIsUsedNowAndThenStays) {
  Give(1000);
  for (int i = 0; i < 50; ++i) {
    Take(900);
    Give(900);
    for (int j = 0; j < ReleaseDecay::kSteps - 1; ++j) Pass(kStep);
  }
  EXPECT_GE(free_, Length(900));
  EXPECT_LT(free_, Length(910));
}

// Memory that is asked for once every second half-life is asked for too rarely.
TEST_F(ReleaseDecayTest, WhatIsUsedMoreRarelyGoes) {
  Give(1000);
  PassHalfLife();
  PassHalfLife();
  EXPECT_LT(free_, Length(600));
}

TEST_F(ReleaseDecayTest, AnIdleTimeThatNobodyWatchedCounts) {
  Give(1 << 20);
  EXPECT_GE(Pass(11 * kHalfLife), Length((1 << 20) - (1 << 10)));
}

TEST_F(ReleaseDecayTest, ABusyTimeThatNobodyWatchedIsNoIdleTime) {
  Give(1000);
  for (int i = 0; i < 1000; ++i) {
    Take(900);
    Give(900);
  }
  EXPECT_LE(Pass(11 * kHalfLife), Length(100));
}

TEST_F(ReleaseDecayTest, TheIdleTimeAfterABusyOneCounts) {
  Give(1 << 20);
  for (int i = 0; i < 1000; ++i) {
    Take(900);
    Give(900);
  }
  now_ += kStep / 2;
  decay_.NoteIdleSince(now_, free_);
  EXPECT_GE(Pass(11 * kHalfLife), Length((1 << 20) - (1 << 10)));
}

TEST_F(ReleaseDecayTest, AVeryLongIdleTimeCountsAndTakesNoTime) {
  Give(1 << 20);
  EXPECT_GE(Pass(uint64_t{1} << 60), Length((1 << 20) - 1));
}

TEST_F(ReleaseDecayTest, WhatIsDueStaysDueUntilItIsReleased) {
  Give(1 << 20);
  now_ += 4 * kHalfLife;
  const Length due = decay_.PagesDue(now_, free_);
  EXPECT_EQ(decay_.PagesDue(now_, free_), due);
  decay_.NoteReleased(Length(1000));
  EXPECT_EQ(decay_.PagesDue(now_, free_ - Length(1000)), due - Length(1000));
}

TEST_F(ReleaseDecayTest, WhatIsTakenIsDueNoLonger) {
  Give(1 << 20);
  now_ += 4 * kHalfLife;
  EXPECT_GT(decay_.PagesDue(now_, free_), Length(100));
  Take((1 << 20) - 100);
  EXPECT_LE(decay_.PagesDue(now_, free_), Length(100));
}

TEST_F(ReleaseDecayTest, FreeMemoryMayBeMadeDueAtOnce) {
  Give(1000);
  decay_.MakeDue(Length::Max());
  EXPECT_EQ(Pass(0), Length(1000));
  Give(500);
  EXPECT_EQ(Pass(0), Length(500)) << "what becomes free meanwhile";
}

TEST_F(ReleaseDecayTest, WhatBecomesFreeAfterSomeWasTakenIsNotDueAtOnce) {
  Give(1000);
  decay_.MakeDue(Length::Max());
  Take(300);
  Give(400);
  EXPECT_EQ(Pass(0), Length(700));
  EXPECT_EQ(Pass(0), Length(0));
}

TEST_F(ReleaseDecayTest, APartMayBeMadeDueAndThatBeTakenBack) {
  Give(1000);
  decay_.MakeDue(Length(300));
  EXPECT_EQ(Pass(0), Length(300));
  EXPECT_EQ(Pass(0), Length(0));
  decay_.MakeDue(Length(300));
  decay_.MakeDue(Length(0));
  EXPECT_EQ(Pass(0), Length(0));
}

TEST_F(ReleaseDecayTest, NoHalfLifeMeansNever) {
  decay_.set_half_life(0);
  Give(1000);
  EXPECT_EQ(Pass(uint64_t{1} << 60), Length(0));
}

TEST_F(ReleaseDecayTest, AClockThatStandsStillOrStepsBackReleasesNothing) {
  Give(1000);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Pass(0), Length(0));
  EXPECT_EQ(decay_.PagesDue(kStart - 1, free_), Length(0));
}

}  // namespace
}  // namespace tcmalloc::testing
