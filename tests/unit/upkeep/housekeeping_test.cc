// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Housekeeping of caches and limits that only count who asks them, with a clock of the test's.

#include "upkeep/housekeeping.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "cache/thread_header.h"
#include "fakes/fake_metadata.h"
#include "page_heap/system_page_heap.h"
#include "system/system_calls.h"
#include "unit/mebibytes.h"

namespace tcmalloc::testing {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kStep = kSecondNs / ReleaseDecay::kSteps;

constinit std::atomic<uint64_t> fake_now{kSecondNs};

class FakeHost final : public HousekeepingHost {
 public:
  PageHeap& Pages() override { return pages_.chosen(); }
  size_t CountThreadCaches() override { return caches; }
  void ReturnIdleOfThreads(size_t count, ThreadHeader* own) override {
    visited += count;
    last_own = own;
  }
  bool MayBeOverdrawn() override { return overdrawn; }
  bool ReturnOverdrafts(uint64_t now, ThreadHeader* own) override {
    ++overdraft_looks;
    last_look = now;
    last_own = own;
    return overdrafts_done;
  }
  void ReturnIdleOfCpus() override { ++cpu_rounds; }
  void ReturnUnused(SourceTurns&, uint32_t count) override { classes += count; }
  size_t FullBytes(ThreadHeader*) override { return 0; }
  void ReturnLargeObjects(ThreadHeader*) override {}
  PeakStats CountInUse() override {
    ++counts;
    return {.committed = Length(0), .in_use = in_use, .physical = 0};
  }
  void ReturnSomeCached(ThreadHeader* own, size_t most) override {
    ++pieces;
    largest_piece = std::max(largest_piece, most);
    last_own = own;
  }
  void ReturnLists(ThreadHeader*) override { ++turns; }
  bool RefreshLimits(int64_t, Limits::Reader reader) override {
    ++reads;
    last_reader = reader;
    return read_limits;
  }
  bool FollowsCgroup() override { return follows_cgroup; }
  bool IsAwaited() override { return awaited; }

  size_t caches = 100;
  bool overdrawn = false;
  bool overdrafts_done = true;
  bool read_limits = false;
  bool follows_cgroup = false;
  bool awaited = false;

  size_t visited = 0;
  int overdraft_looks = 0;
  uint64_t last_look = 0;
  const ThreadHeader* last_own = nullptr;
  int cpu_rounds = 0;
  uint32_t classes = 0;
  int reads = 0;
  int counts = 0;
  int pieces = 0;
  size_t largest_piece = 0;
  int turns = 0;
  uint64_t in_use = 0;
  Limits::Reader last_reader = Limits::Reader::kAllocating;

 private:
  FakeMetadata metadata_;
  SystemMemory memory_;
  MetadataArena arena_{FakeMetadata::Source};
  std::unique_ptr<PageMap> map_ = std::make_unique<PageMap>(arena_);
  PageHeaps pages_{memory_, *map_, arena_};
};

class HousekeepingTest : public ::testing::Test {
 protected:
  HousekeepingTest() {
    system_calls.clock_gettime = [](clockid_t, timespec* time) {
      const uint64_t ns = fake_now.load();
      *time = {static_cast<time_t>(ns / kSecondNs), static_cast<long>(ns % kSecondNs)};
      return 0;
    };
    housekeeping_.set_half_life(kSecondNs);
  }
  ~HousekeepingTest() override { system_calls = real_system_calls; }

  FakeHost host_;
  Housekeeping housekeeping_{host_};
  ThreadHeader own_;
};

TEST_F(HousekeepingTest, EverythingIsVisitedOnceInAHalfLife) {
  for (size_t i = 0; i < ReleaseDecay::kSteps; ++i) {
    EXPECT_GE(housekeeping_.RunAll(), kStep);
    fake_now += kStep;
  }
  EXPECT_GE(host_.visited, host_.caches);
  EXPECT_LT(host_.visited, host_.caches + ReleaseDecay::kSteps);
  EXPECT_EQ(host_.cpu_rounds, 1);
  EXPECT_GE(host_.classes, kSizeClassCount - 1);
  EXPECT_LT(host_.classes, kSizeClassCount + ReleaseDecay::kSteps);
  EXPECT_EQ(host_.last_reader, Limits::Reader::kRegular);
}

TEST_F(HousekeepingTest, AForkThatWaitsIsNotHeldUp) {
  host_.awaited = true;
  fake_now += 3 * kSecondNs;
  housekeeping_.RunAll();
  EXPECT_EQ(host_.visited, 0u);
  host_.awaited = false;
  housekeeping_.RunAll();
  EXPECT_GT(host_.visited, 0u) << "what was left over is done later";
}

TEST_F(HousekeepingTest, APollWorksForTheThreadThatCame) {
  EXPECT_TRUE(housekeeping_.Poll(&own_)) << "the clock stands still: one piece of work at a time";
  EXPECT_GT(host_.visited, 0u);
  EXPECT_EQ(host_.last_own, &own_);
  EXPECT_EQ(host_.last_reader, Limits::Reader::kAllocating);
  EXPECT_FALSE(housekeeping_.Poll(&own_));
}

TEST_F(HousekeepingTest, CachesStayWithinTheirTotalWhateverGoesBackByTime) {
  housekeeping_.set_half_life(0);
  housekeeping_.Poll(&own_);
  EXPECT_EQ(host_.overdraft_looks, 0);
  host_.overdrawn = true;
  housekeeping_.Poll(&own_);
  EXPECT_EQ(host_.overdraft_looks, 1);
  EXPECT_EQ(host_.last_own, &own_);
  EXPECT_EQ(host_.last_look, fake_now);
  EXPECT_EQ(host_.visited, 0u);
}

TEST_F(HousekeepingTest, LooksForOverdraftsAreRareUnlessOneWasLeft) {
  host_.overdrawn = true;
  host_.overdrafts_done = false;
  for (int looks = 1; looks <= 3; ++looks) {
    housekeeping_.Poll(&own_);
    EXPECT_EQ(host_.overdraft_looks, looks);
  }
  host_.overdrafts_done = true;
  for (int polls = 0; polls < 3; ++polls) housekeeping_.Poll(&own_);
  EXPECT_EQ(host_.overdraft_looks, 4);
  fake_now += kSecondNs;
  housekeeping_.Poll(&own_);
  EXPECT_EQ(host_.overdraft_looks, 5);
}

TEST_F(HousekeepingTest, AThreadThatReadLimitsLeavesTheRestToOthers) {
  host_.read_limits = true;
  housekeeping_.Poll(nullptr);
  EXPECT_EQ(host_.visited, 0u);
  host_.read_limits = false;
  housekeeping_.Poll(nullptr);
  EXPECT_GT(host_.visited, 0u);
}

TEST_F(HousekeepingTest, WhereSomebodyRunsRegularlyPollsDoNothing) {
  housekeeping_.AddDelegate();
  housekeeping_.Poll(nullptr);
  EXPECT_EQ(host_.reads, 0);
  housekeeping_.RemoveDelegate();
  housekeeping_.Poll(nullptr);
  EXPECT_EQ(host_.reads, 1);
}

TEST_F(HousekeepingTest, WithoutReleaseByTimeItRunsForCgroupsAlone) {
  housekeeping_.set_half_life(0);
  EXPECT_EQ(housekeeping_.RunAll(), 0u);
  EXPECT_EQ(host_.reads, 0);
  host_.follows_cgroup = true;
  EXPECT_EQ(housekeeping_.RunAll(), kSecondNs);
  EXPECT_EQ(host_.reads, 1);
  EXPECT_EQ(host_.visited, 0u);
}

// Nearly all of a heap that a process of the test's size could have is freed. Objects in caches, of
// which the host says nothing, could be in use.
class ShrinkingHeapTest : public HousekeepingTest {
 protected:
  static constexpr size_t kBlocks = 32;

  ShrinkingHeapTest() {
    host_.Pages().set_release_rate(0);
    for (Span*& block : blocks_) {
      block = host_.Pages().New(MiB(8));
      std::memset(block->start(), 1, block->bytes());
    }
    Housekeeping::LookSoon();
    Look();
  }

  // As a slow path that frees blocks does at its end.
  void Look() {
    while (housekeeping_.PollIsDue() && housekeeping_.Poll(&own_)) {
    }
  }
  void FreeUpTo(size_t count) {
    for (; freed_ < count; ++freed_) {
      host_.Pages().Delete(blocks_[freed_]);
      housekeeping_.NoteBlockFreed();
      if (housekeeping_.PollIsDue()) housekeeping_.Poll(&own_);
    }
  }
  Length committed() { return host_.Pages().stats().committed(); }

  Span* blocks_[kBlocks];
  size_t freed_ = 0;
};

TEST_F(ShrinkingHeapTest, ItGivesBackAllBeforeTheLastFreeReturns) {
  FreeUpTo(kBlocks);
  EXPECT_LE(committed(), MiB(1));
  EXPECT_GT(host_.pieces, 0);
  EXPECT_GE(host_.largest_piece, 8 * MiB(8).bytes()) << "eight times what was freed";
  EXPECT_EQ(host_.last_own, &own_);
}

TEST_F(ShrinkingHeapTest, ItGivesBackAllEvenIfLimitsAreReadMeanwhile) {
  host_.read_limits = true;
  FreeUpTo(kBlocks);
  EXPECT_LE(committed(), MiB(1));
}

// The clock stands still, so that each look has time for one piece of work.
TEST_F(ShrinkingHeapTest, StepsThatWereMissedAreNotDoneAllAtOnce) {
  FreeUpTo(kBlocks - 1);
  fake_now += 9 * kSecondNs;
  const size_t before = host_.visited;
  FreeUpTo(kBlocks);
  EXPECT_LE(host_.visited - before, 2 * (host_.caches / ReleaseDecay::kSteps + 1));
  EXPECT_LE(committed(), MiB(1));
}

TEST_F(ShrinkingHeapTest, AForkThatWaitsIsNotHeldUp) {
  FreeUpTo(kBlocks - 1);
  host_.awaited = true;
  FreeUpTo(kBlocks);
  EXPECT_GE(committed(), MiB(4)) << "most of the last block";
  host_.awaited = false;
  Look();
  EXPECT_LE(committed(), MiB(1));
}

TEST_F(ShrinkingHeapTest, ItKeepsWhatIsFreeWhileMuchIsInUse) {
  host_.in_use = MiB(100).bytes();
  FreeUpTo(kBlocks);
  EXPECT_GE(committed(), MiB(8 * kBlocks));
  EXPECT_GT(host_.counts, 0);
  EXPECT_LT(host_.counts, 100);
  EXPECT_EQ(host_.pieces, 0);
}

TEST_F(ShrinkingHeapTest, ItKeepsWhatIsFreeWhereNothingGoesBackByTime) {
  housekeeping_.set_half_life(0);
  FreeUpTo(kBlocks);
  EXPECT_GE(committed(), MiB(8 * kBlocks));
  EXPECT_EQ(host_.counts, 0);
}

// Counts the calls that ask the system to take memory, and refuses them.
constinit int refusals = 0;
void RefuseReleases() {
  refusals = 0;
  system_calls.madvise = [](void*, size_t, int) {
    ++refusals;
    return -1;
  };
  system_calls.process_madvise = [](int, const iovec*, size_t, int, unsigned) -> ssize_t {
    return -1;
  };
}

TEST_F(ShrinkingHeapTest, OneThatIsLockedInMemoryIsNotAskedAgainAndAgain) {
  RefuseReleases();
  FreeUpTo(kBlocks);
  for (int i = 0; i < 300; ++i) housekeeping_.Poll(&own_);
  EXPECT_GT(refusals, 0);
  EXPECT_LT(refusals, 10 * ShrinkWatch::kMostRefusals);
}

TEST_F(ShrinkingHeapTest, OneOfManyCachesIsCountedAFewTimes) {
  host_.caches = 2000;
  host_.in_use = MiB(100).bytes();
  FreeUpTo(kBlocks);
  EXPECT_GT(host_.counts, 0);
  EXPECT_LT(host_.counts, 16);
}

TEST_F(ShrinkingHeapTest, ABlockThatIsFreedWhileAnotherThreadWorksGoesBack) {
  static std::function<void()> free_last;
  free_last = [this] { std::thread([this] { FreeUpTo(kBlocks); }).join(); };
  FreeUpTo(kBlocks - 2);
  system_calls.madvise = [](void* start, size_t bytes, int advice) {
    if (const auto free = std::exchange(free_last, nullptr)) free();
    return real_system_calls.madvise(start, bytes, advice);
  };
  host_.Pages().Delete(blocks_[freed_++]);
  housekeeping_.NoteBlockFreed();
  housekeeping_.Poll(&own_);
  EXPECT_EQ(freed_, kBlocks);
  EXPECT_LE(committed(), MiB(1));
}

TEST_F(ShrinkingHeapTest, OneThatGrowsAgainLosesNoMore) {
  FreeUpTo(kBlocks - 4);
  RefuseReleases();
  FreeUpTo(kBlocks - 1);
  system_calls.madvise = real_system_calls.madvise;
  system_calls.process_madvise = real_system_calls.process_madvise;
  host_.Pages().New(MiB(64));
  const Length before = committed();
  EXPECT_GT(before, MiB(64 + 8)) << "what was due could not go";
  Look();
  for (int i = 0; i < 100; ++i) housekeeping_.Poll(&own_);
  EXPECT_EQ(committed(), before);
}

TEST_F(HousekeepingTest, InAForkedChildNobodyIsAtIt) {
  housekeeping_.AddDelegate();
  housekeeping_.ResetAfterFork();
  housekeeping_.Poll(nullptr);
  EXPECT_EQ(host_.reads, 1);
}

}  // namespace
}  // namespace tcmalloc::testing
