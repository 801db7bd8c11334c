// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "upkeep/limits.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "fakes/fake_file_tree.h"
#include "fakes/fault_injection.h"
#include "system/auxv.h"
#include "unit/mebibytes.h"

namespace tcmalloc::testing {
namespace {

using Reader = Limits::Reader;

constexpr int64_t kMillisecond = Limits::kMillisecond;
constexpr int64_t kSecond = 1000 * kMillisecond;
constexpr char kTop[] = "/sys/fs/cgroup/app/";

class LimitsTest : public ::testing::Test {
 protected:
  LimitsTest() { tree_.WriteUnifiedCgroup("/app"); }

  void Configure(uint64_t soft_limit_mib, bool follow = true) {
    limits_.Configure({.soft_limit = soft_limit_mib * kMiB,
                       .follow_cgroup = follow,
                       .cgroup_root = tree_.root().c_str()});
  }
  void WriteLimit(const char* file, uint64_t bytes) const {
    tree_.Write(std::string(kTop) + file, std::to_string(bytes) + "\n");
  }
  void WriteResident(uint64_t bytes) const {
    tree_.Write("/proc/self/statm", "99999 " + std::to_string(bytes / KernelPageSize()) + " 1 1\n");
  }
  bool Refresh(int64_t now, Length committed = Length(0), Reader reader = Reader::kRegular) {
    SpinLockHolder holder(limits_.lock());
    return limits_.Refresh(now, committed, reader);
  }
  Length ToShed(int64_t now, Length committed) {
    SpinLockHolder holder(limits_.lock());
    return limits_.ToShed(now, committed);
  }
  void SetWantedSoftLimit(uint64_t bytes, Length committed = Length(0)) {
    SpinLockHolder holder(limits_.lock());
    limits_.SetWantedSoftLimit(bytes, committed);
    EXPECT_EQ(limits_.wanted(), bytes);
  }
  void ScheduleNextCheck(Length committed, uint64_t spans_served) {
    SpinLockHolder holder(limits_.lock());
    limits_.ScheduleNextCheck(committed, spans_served);
  }
  void NoteSoftShed(int64_t begin, int64_t end, Length committed, const ShedBytes& shed = {}) {
    SpinLockHolder holder(limits_.lock());
    limits_.NoteSoftShed(shed, begin, end, committed);
  }

  FakeFileTree tree_;
  Cgroup cgroup_;
  Limits limits_{cgroup_};
};

TEST_F(LimitsTest, WithoutAnyLimitNobodyEverLooks) {
  Configure(0, false);
  EXPECT_FALSE(limits_.IsDue(MiB(1 << 20), 1 << 30));
  EXPECT_FALSE(limits_.RefreshIsDue(INT64_MAX, MiB(1 << 20), Reader::kRegular));
  EXPECT_EQ(limits_.soft_limit(), Length::Max());
  EXPECT_EQ(limits_.stats().soft_limit, 0u);
}

TEST_F(LimitsTest, SmallHeapsDoNotLook) {
  Configure(0);
  EXPECT_FALSE(limits_.IsDue(Limits::kFirstLook, 1 << 30));
  EXPECT_TRUE(limits_.IsDue(Limits::kFirstLook + Length(1), 1));
  Configure(2);
  EXPECT_TRUE(limits_.IsDue(MiB(2) + Length(1), 1)) << "unless they were told to be smaller still";
}

TEST_F(LimitsTest, TheConfiguredLimitCounts) {
  Configure(100, false);
  EXPECT_EQ(limits_.soft_limit(), MiB(100));
  EXPECT_EQ(ToShed(kSecond, MiB(100)), Length(0));
  EXPECT_GE(ToShed(kSecond, MiB(120)), MiB(20));
  EXPECT_LE(ToShed(kSecond, MiB(120)), MiB(22)) << "a little more, to make room";
  EXPECT_EQ(limits_.stats().soft_limit, 100 * kMiB);
  EXPECT_EQ(limits_.stats().soft_hits, 2u);
}

TEST_F(LimitsTest, TheProgramMayWantAnother) {
  Configure(100, false);
  ScheduleNextCheck(MiB(150), 1000);
  EXPECT_GT(ToShed(kSecond, MiB(150)), Length(0));
  NoteSoftShed(kSecond, 2 * kSecond, MiB(150));
  SetWantedSoftLimit(50 * kMiB);
  EXPECT_EQ(limits_.soft_limit(), MiB(50));
  EXPECT_TRUE(limits_.IsDue(MiB(1), 1000)) << "somebody looks at once";
  EXPECT_GE(ToShed(2 * kSecond, MiB(150)), MiB(100)) << "and need not wait";
  SetWantedSoftLimit(UINT64_MAX);
  EXPECT_EQ(limits_.soft_limit(), Length::Max());
  EXPECT_EQ(limits_.stats().soft_limit, 0u);
}

TEST_F(LimitsTest, OfTheProgramAndTheContainerTheLowerOneCounts) {
  WriteLimit("memory.high", 400 * kMiB);
  Configure(0);
  Refresh(kSecond);
  SetWantedSoftLimit(300 * kMiB);
  EXPECT_EQ(limits_.soft_limit(), MiB(300));
  SetWantedSoftLimit(500 * kMiB);
  EXPECT_EQ(limits_.soft_limit(), MiB(400));
  SetWantedSoftLimit(300 * kMiB);
  WriteLimit("memory.high", 200 * kMiB);
  Refresh(2 * kSecond);
  EXPECT_EQ(limits_.soft_limit(), MiB(200));
  SetWantedSoftLimit(UINT64_MAX);
  EXPECT_EQ(limits_.soft_limit(), MiB(200));
}

TEST_F(LimitsTest, ALimitOfLessThanAPageIsOne) {
  SpinLockHolder holder(limits_.lock());
  limits_.SetWantedSoftLimit(1, Length(0));
  EXPECT_EQ(limits_.soft_limit(), Length(1));
}

TEST_F(LimitsTest, MemoryHighIsTheLimit) {
  WriteLimit("memory.high", 400 * kMiB);
  WriteLimit("memory.max", 1000 * kMiB);
  Configure(0);
  EXPECT_TRUE(Refresh(kSecond));
  EXPECT_EQ(limits_.soft_limit(), MiB(400));
}

TEST_F(LimitsTest, NineTenthsOfMemoryMaxAreTheLimit) {
  WriteLimit("memory.max", 1000 * kMiB);
  Configure(0);
  Refresh(kSecond);
  EXPECT_EQ(limits_.soft_limit(), MiB(900));
  WriteLimit("memory.high", 950 * kMiB);
  Refresh(2 * kSecond);
  EXPECT_EQ(limits_.soft_limit(), MiB(900)) << "the lower one";
}

TEST_F(LimitsTest, OfTheOptionAndTheContainerTheLowerOneCounts) {
  WriteLimit("memory.high", 400 * kMiB);
  Configure(300);
  Refresh(kSecond);
  EXPECT_EQ(limits_.soft_limit(), MiB(300));
  WriteLimit("memory.high", 200 * kMiB);
  Refresh(2 * kSecond);
  EXPECT_EQ(limits_.soft_limit(), MiB(200));
  tree_.Remove(std::string(kTop) + "memory.high");
  Refresh(3 * kSecond);
  EXPECT_EQ(limits_.soft_limit(), MiB(300));
}

TEST_F(LimitsTest, WhatIsResidentOutsideTheHeapIsSubtracted) {
  WriteLimit("memory.high", 400 * kMiB);
  WriteResident(150 * kMiB);
  Configure(0);
  Refresh(kSecond, MiB(50));
  EXPECT_EQ(limits_.soft_limit(), MiB(300));
  Refresh(2 * kSecond, MiB(200));
  EXPECT_EQ(limits_.soft_limit(), MiB(400)) << "the heap was not touched in full";
  WriteResident(2000 * kMiB);
  Refresh(3 * kSecond, MiB(50));
  EXPECT_EQ(limits_.soft_limit(), MiB(50)) << "an eighth is left in any case";
}

TEST_F(LimitsTest, ReadsAtMostEverySecond) {
  WriteLimit("memory.high", 400 * kMiB);
  Configure(0);
  EXPECT_TRUE(Refresh(kSecond));
  WriteLimit("memory.high", 200 * kMiB);
  EXPECT_FALSE(Refresh(kSecond + 999 * kMillisecond));
  EXPECT_EQ(limits_.soft_limit(), MiB(400));
  EXPECT_TRUE(Refresh(2 * kSecond));
  EXPECT_EQ(limits_.soft_limit(), MiB(200));
}

TEST_F(LimitsTest, ThreadsThatAllocateReadOnGrowthAndOtherwiseSeldom) {
  WriteLimit("memory.high", 400 * kMiB);
  Configure(0);
  const auto due = [&](int64_t now, uint64_t committed_mib) {
    return limits_.RefreshIsDue(now, MiB(committed_mib), Reader::kAllocating);
  };
  EXPECT_FALSE(due(kSecond, 8)) << "a small heap";
  EXPECT_TRUE(due(kSecond, 9));
  ASSERT_TRUE(Refresh(kSecond, MiB(80), Reader::kAllocating));
  EXPECT_FALSE(due(kSecond, 200)) << "a moment later, whatever happens";
  EXPECT_FALSE(due(5 * kSecond, 80)) << "a heap that stays as it is";
  EXPECT_FALSE(due(5 * kSecond, 90)) << "an eighth of itself";
  EXPECT_TRUE(due(5 * kSecond, 91));
  EXPECT_TRUE(due(kSecond + Limits::kSeldom, 1)) << "after some time in any case";
  ASSERT_TRUE(Refresh(5 * kSecond, MiB(360), Reader::kAllocating));
  EXPECT_FALSE(due(7 * kSecond, 365)) << "an eighth of the way to the limit";
  EXPECT_TRUE(due(7 * kSecond, 366));
  ASSERT_TRUE(Refresh(7 * kSecond, MiB(500), Reader::kAllocating));
  EXPECT_FALSE(due(8 * kSecond, 501)) << "above the limit growth by a little";
  EXPECT_TRUE(due(8 * kSecond, 502));
}

TEST_F(LimitsTest, ASteadyHeapOpensHardlyAnyFiles) {
  ScopedFaultInjection injection;
  WriteLimit("memory.high", 400 * kMiB);
  Configure(0);
  Refresh(kSecond, MiB(100), Reader::kAllocating);
  const uint64_t files = CallsSeen(SystemCall::kOpen);
  ASSERT_GT(files, 0u);
  constexpr int64_t kSeconds = 60;
  for (int64_t now = kSecond; now < (1 + kSeconds) * kSecond; now += kMillisecond) {
    Refresh(now, MiB(100 + static_cast<uint64_t>(now / kMillisecond % 10)), Reader::kAllocating);
  }
  EXPECT_LE(CallsSeen(SystemCall::kOpen), files * (kSeconds * kSecond / Limits::kSeldom + 1));
}

TEST_F(LimitsTest, AProcessWithoutDescriptorsKeepsItsLimits) {
  ScopedFaultInjection injection;
  WriteLimit("memory.high", 400 * kMiB);
  WriteResident(150 * kMiB);
  tree_.Write(std::string(kTop) + "memory.pressure", "some avg10=99.00 avg60=0.00\n");
  Configure(0);
  Refresh(kSecond, MiB(50));
  ASSERT_EQ(limits_.soft_limit(), MiB(300));
  EXPECT_EQ(ToShed(kSecond, MiB(50)), Length::Max());
  InjectFaults(SystemCall::kOpen, {.mode = FaultMode::kFrom, .k = 1, .error = EMFILE});
  Refresh(2 * kSecond, MiB(50));
  EXPECT_EQ(limits_.soft_limit(), MiB(300));
  EXPECT_EQ(ToShed(2 * kSecond, MiB(50)), Length(0)) << "nobody knows of new pressure";
  SetWantedSoftLimit(350 * kMiB, MiB(50));
  EXPECT_EQ(limits_.soft_limit(), MiB(300)) << "what is resident outside is remembered";
}

TEST_F(LimitsTest, LooksAgainAfterGrowthOrManySpans) {
  Configure(100);
  ScheduleNextCheck(MiB(20), 1000);
  EXPECT_FALSE(limits_.IsDue(MiB(20), 1100));
  EXPECT_TRUE(limits_.IsDue(MiB(22), 1100));
  EXPECT_TRUE(limits_.IsDue(MiB(20), 2000));
  ScheduleNextCheck(MiB(100) - Length(1), 1000);
  EXPECT_TRUE(limits_.IsDue(MiB(100) + Length(1), 1000)) << "as soon as the limit is passed";
}

// The cost of living above the limit: looks, of which few shed anything.
TEST_F(LimitsTest, ShedsSeldomWhereItDoesNotHelp) {
  Configure(100, false);
  int sheds = 0;
  int looks = 0;
  constexpr int64_t kSeconds = 20;
  uint64_t spans = 0;
  for (int64_t now = kSecond; now < (1 + kSeconds) * kSecond; now += kMillisecond / 10) {
    spans += 10;
    if (!limits_.IsDue(MiB(150), spans)) continue;
    ++looks;
    if (ToShed(now, MiB(150)) > Length(0)) {
      ++sheds;
      NoteSoftShed(now, now + kMillisecond, MiB(150));
    }
    ScheduleNextCheck(MiB(150), spans);
  }
  EXPECT_LE(sheds, kSeconds + 8);
  EXPECT_GE(sheds, kSeconds / 2);
  EXPECT_LE(looks, 10'000) << "of 200,000 chances";
}

TEST_F(LimitsTest, ShedsSoonAgainWhereItHelps) {
  Configure(100, false);
  EXPECT_GT(ToShed(kSecond, MiB(110)), Length(0));
  NoteSoftShed(kSecond, kSecond, MiB(99));
  EXPECT_EQ(ToShed(kSecond + Limits::kLeastPause - 1, MiB(110)), Length(0));
  EXPECT_GT(ToShed(kSecond + Limits::kLeastPause, MiB(110)), Length(0));
}

TEST_F(LimitsTest, TakesASmallShareOfTheTime) {
  Configure(100, false);
  const int64_t cost = 5 * kMillisecond;
  EXPECT_GT(ToShed(kSecond, MiB(110)), Length(0));
  NoteSoftShed(kSecond, kSecond + cost, MiB(99));
  EXPECT_EQ(ToShed(kSecond + cost * Limits::kCostShare, MiB(110)), Length(0));
  EXPECT_GT(ToShed(kSecond + cost * (Limits::kCostShare + 1), MiB(110)), Length(0));
}

TEST_F(LimitsTest, HighPressureShedsEverythingOncePerRefresh) {
  const std::string file = std::string(kTop) + "memory.pressure";
  tree_.Write(file, "some avg10=9.99 avg60=0.00\n");
  Configure(0);
  Refresh(kSecond);
  EXPECT_EQ(ToShed(kSecond, MiB(50)), Length(0));
  tree_.Write(file, "some avg10=10.00 avg60=0.00\n");
  Refresh(2 * kSecond);
  EXPECT_EQ(ToShed(2 * kSecond, MiB(50)), Length::Max());
  NoteSoftShed(2 * kSecond, 2 * kSecond, MiB(40));
  EXPECT_EQ(ToShed(2 * kSecond + 500 * kMillisecond, MiB(50)), Length(0));
  Refresh(3 * kSecond);
  EXPECT_EQ(ToShed(3 * kSecond, MiB(50)), Length::Max());
  NoteSoftShed(3 * kSecond, 3 * kSecond, MiB(40));
  EXPECT_EQ(limits_.stats().pressure_hits, 2u);
  EXPECT_EQ(limits_.stats().soft_hits, 0u);
  EXPECT_EQ(limits_.stats().soft_shrinks, 0u);
}

TEST_F(LimitsTest, CountsWhatEachStageShed) {
  Configure(100, false);
  NoteSoftShed(0, 1, MiB(1), {.caches = 1, .transfer = 10, .page_heap = 100});
  limits_.NoteShed({.caches = 2, .transfer = 20, .page_heap = 0});
  const LimitStats stats = limits_.stats();
  EXPECT_EQ(stats.shed_caches, 3u);
  EXPECT_EQ(stats.shed_transfer, 30u);
}

TEST_F(LimitsTest, ShedsThatSufficeAreCounted) {
  Configure(100, false);
  EXPECT_GT(ToShed(kSecond, MiB(120)), Length(0));
  NoteSoftShed(kSecond, kSecond, MiB(101));
  EXPECT_EQ(limits_.stats().soft_shrinks, 0u);
  EXPECT_GT(ToShed(3 * kSecond, MiB(120)), Length(0));
  NoteSoftShed(3 * kSecond, 3 * kSecond, MiB(100));
  EXPECT_EQ(limits_.stats().soft_shrinks, 1u);
  EXPECT_EQ(limits_.stats().soft_hits, 2u);
}

}  // namespace
}  // namespace tcmalloc::testing
