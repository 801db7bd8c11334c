// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A gate of its own: no thread forks here.

#include "thread/fork_gate.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <thread>

#include "fakes/fake_metadata.h"
#include "pages/metadata_arena.h"

namespace tcmalloc::testing {
namespace {

class ForkGateTest : public ::testing::Test {
 protected:
  ForkGateTest() { cleanings = 0; }

  GateSeat* Seat() { return gate_.TakeSeat(arena_); }
  // As a thread that forks and is outside.
  GateFindings CloseAndAwait(GateSeat* own) {
    gate_.Close(own, &self_);
    return gate_.AwaitOthers(own, &self_);
  }
  void Open(GateSeat* own) { gate_.Open(own, &self_, true); }
  bool Passes(GateSeat* seat) {
    const bool entered = gate_.Enter(seat);
    if (entered) gate_.Leave(seat);
    EXPECT_EQ(seat->place.load(), Place::kOutside);
    return entered;
  }
  bool PassesAsStranger() {
    const bool entered = gate_.EnterAsStranger(&other_);
    if (entered) gate_.LeaveAsStranger(&other_);
    return entered;
  }

  static inline int cleanings = 0;

  FakeMetadata metadata_;
  MetadataArena arena_{FakeMetadata::Source};
  ForkGate gate_{[] { ++cleanings; }};
  char self_ = 0;
  char other_ = 0;
};

TEST_F(ForkGateTest, OpenAtFirst) {
  EXPECT_FALSE(gate_.closed());
  EXPECT_FALSE(gate_.IsDamaged());
  EXPECT_TRUE(Passes(Seat()));
  EXPECT_TRUE(PassesAsStranger());
}

TEST_F(ForkGateTest, ASeatIsUsedAgain) {
  GateSeat* seat = Seat();
  EXPECT_NE(Seat(), seat);
  gate_.ReturnSeat(seat);
  EXPECT_EQ(Seat(), seat);
  metadata_.exhausted = true;
  GateSeat* last = seat;
  while (GateSeat* next = Seat()) last = next;
  EXPECT_TRUE(Passes(last));
}

TEST_F(ForkGateTest, FreeSeatsAreThoseThatWereReturned) {
  GateSeat* left = Seat();
  GateSeat* taken = Seat();
  EXPECT_EQ(gate_.TakeFreeSeat(), nullptr);
  gate_.ReturnSeat(left);
  EXPECT_EQ(gate_.TakeFreeSeat(), left);
  EXPECT_EQ(gate_.TakeFreeSeat(), nullptr);
  GateSeat* made = Seat();
  EXPECT_NE(made, left);
  EXPECT_NE(made, taken);
}

TEST_F(ForkGateTest, EverybodyTurnsAwayWhileItIsClosed) {
  GateSeat* mine = Seat();
  GateSeat* other = Seat();
  const GateFindings found = CloseAndAwait(mine);
  EXPECT_TRUE(found.others);
  EXPECT_FALSE(found.abandon);
  EXPECT_TRUE(gate_.closed());
  EXPECT_FALSE(Passes(mine));
  EXPECT_FALSE(Passes(other));
  EXPECT_FALSE(PassesAsStranger());
  Open(mine);
  EXPECT_TRUE(Passes(other));
  EXPECT_TRUE(PassesAsStranger());
}

TEST_F(ForkGateTest, WhoTriesEntersOnlyWhereNothingIsToBeDone) {
  GateSeat* mine = Seat();
  GateSeat* other = Seat();
  ASSERT_TRUE(gate_.TryEnter(other));
  EXPECT_EQ(other->place.load(), Place::kInside);
  gate_.Leave(other);
  CloseAndAwait(mine);
  EXPECT_FALSE(gate_.TryEnter(other));
  EXPECT_EQ(other->place.load(), Place::kOutside);
  gate_.OpenInChild(mine, &self_, 0, {.others = true});
  EXPECT_FALSE(gate_.TryEnter(mine)) << "somebody has to clear";
  EXPECT_EQ(cleanings, 0);
  EXPECT_TRUE(Passes(mine));
  EXPECT_EQ(cleanings, 1);
}

TEST_F(ForkGateTest, ForksAreCounted) {
  GateSeat* mine = Seat();
  gate_.Close(mine, &self_);
  gate_.Close(mine, &self_);
  gate_.Open(mine, &self_, false);
  EXPECT_FALSE(Passes(mine));
  Open(mine);
  EXPECT_TRUE(Passes(mine));
}

TEST_F(ForkGateTest, AThreadWithoutOthersFindsNone) {
  EXPECT_FALSE(CloseAndAwait(nullptr).others);
  Open(nullptr);
  GateSeat* mine = Seat();
  gate_.ReturnSeat(Seat());
  EXPECT_FALSE(CloseAndAwait(mine).others) << "a seat that nobody has";
  Open(mine);
}

TEST_F(ForkGateTest, WaitsForWhoeverIsInside) {
  GateSeat* mine = Seat();
  GateSeat* other = Seat();
  std::atomic<bool> left{false};
  ASSERT_TRUE(gate_.Enter(other));
  ASSERT_TRUE(gate_.EnterAsStranger(&other_));
  std::thread thread([&] {
    while (!gate_.closed()) std::this_thread::yield();
    gate_.LeaveAsStranger(&other_);
    left = true;
    gate_.Leave(other);
  });
  EXPECT_FALSE(CloseAndAwait(mine).abandon);
  EXPECT_TRUE(left);
  thread.join();
  Open(mine);
}

// Both may wait for a lock that the other one has.
TEST_F(ForkGateTest, AForkFromInsideDoesNotWaitForLong) {
  GateSeat* mine = Seat();
  GateSeat* other = Seat();
  ASSERT_TRUE(gate_.Enter(mine));
  ASSERT_TRUE(gate_.Enter(other));
  EXPECT_TRUE(CloseAndAwait(mine).abandon);
  EXPECT_EQ(mine->place.load(), Place::kForking);
  Open(mine);
  EXPECT_EQ(mine->place.load(), Place::kInside);
}

TEST_F(ForkGateTest, WhoForksInsideIsNotWaitedFor) {
  GateSeat* mine = Seat();
  GateSeat* other = Seat();
  ASSERT_TRUE(gate_.Enter(other));
  gate_.Close(other, &other_);
  EXPECT_TRUE(CloseAndAwait(mine).abandon) << "its child finds the other's work half done";
  Open(mine);
  gate_.Open(other, &other_, true);
  gate_.Leave(other);
  EXPECT_TRUE(Passes(mine));
}

TEST_F(ForkGateTest, ThereIsRoomForFewStrangers) {
  std::array<char, 1000> names;
  size_t inside = 0;
  while (inside < names.size() && gate_.EnterAsStranger(&names[inside])) ++inside;
  EXPECT_GE(inside, 16u);
  EXPECT_LT(inside, names.size());
  EXPECT_FALSE(gate_.closed());
  gate_.LeaveAsStranger(&names[0]);
  EXPECT_TRUE(PassesAsStranger());
}

TEST_F(ForkGateTest, AwaitOpeningSeesItOpen) {
  GateSeat* mine = Seat();
  EXPECT_TRUE(gate_.AwaitOpening());
  std::atomic<bool> awaits{false};
  gate_.Close(mine, &self_);
  std::thread opener([&] {
    while (!awaits) std::this_thread::yield();
    Open(mine);
  });
  errno = EDOM;
  awaits = true;
  while (!gate_.AwaitOpening()) {
  }
  EXPECT_EQ(errno, EDOM);
  opener.join();
  EXPECT_TRUE(Passes(mine));
}

TEST_F(ForkGateTest, AwaitOpeningGivesUp) {
  gate_.Close(nullptr, &self_);
  errno = EDOM;
  EXPECT_FALSE(gate_.AwaitOpening());
  EXPECT_FALSE(gate_.AwaitOpening());
  EXPECT_EQ(errno, EDOM);
  Open(nullptr);
}

TEST_F(ForkGateTest, TheFirstThreadInAChildClears) {
  GateSeat* mine = Seat();
  GateSeat* vanished = Seat();
  gate_.OpenInChild(mine, &self_, 0, CloseAndAwait(mine));
  EXPECT_EQ(cleanings, 0);
  EXPECT_TRUE(Passes(mine));
  EXPECT_TRUE(Passes(mine));
  EXPECT_EQ(cleanings, 1);
  gate_.FreeOtherSeats(mine);
  EXPECT_EQ(Seat(), vanished);
}

TEST_F(ForkGateTest, NobodyClearsWhileTheSurvivorIsInside) {
  GateSeat* mine = Seat();
  Seat();
  ASSERT_TRUE(gate_.Enter(mine));
  gate_.OpenInChild(mine, &self_, 0, CloseAndAwait(mine));
  EXPECT_FALSE(PassesAsStranger());
  EXPECT_FALSE(gate_.AwaitOpening());
  EXPECT_EQ(cleanings, 0);
  gate_.Leave(mine);
  EXPECT_TRUE(PassesAsStranger());
  EXPECT_EQ(cleanings, 1);
}

TEST_F(ForkGateTest, AChildOfASingleThreadHasNothingToClear) {
  GateSeat* mine = Seat();
  gate_.OpenInChild(mine, &self_, 0, CloseAndAwait(mine));
  EXPECT_FALSE(gate_.closed());
  EXPECT_TRUE(Passes(mine));
  EXPECT_EQ(cleanings, 0);
}

TEST_F(ForkGateTest, AChildWhoseParentWasInsideIsDamagedForGood) {
  GateSeat* mine = Seat();
  GateSeat* vanished = Seat();
  ASSERT_TRUE(gate_.Enter(vanished));
  gate_.Close(vanished, &other_);
  gate_.OpenInChild(mine, &self_, 0, CloseAndAwait(mine));
  EXPECT_EQ(vanished->place.load(), Place::kOutside);
  EXPECT_TRUE(gate_.IsDamaged());
  EXPECT_FALSE(Passes(mine));
  EXPECT_FALSE(gate_.AwaitOpening());
  EXPECT_TRUE(CloseAndAwait(mine).abandon) << "and so are its children";
  Open(mine);
  EXPECT_EQ(cleanings, 0);
}

TEST_F(ForkGateTest, AChildOfANestedForkStaysClosedUntilTheOuterOneEnds) {
  GateSeat* mine = Seat();
  gate_.Close(mine, &self_);
  gate_.OpenInChild(mine, &self_, 1, CloseAndAwait(mine));
  EXPECT_FALSE(Passes(mine));
  Open(mine);
  EXPECT_TRUE(Passes(mine));
}

}  // namespace
}  // namespace tcmalloc::testing
