// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/per_cpu/slab_budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "cache/per_cpu/cpu_slabs.h"
#include "fakes/object_space.h"
#include "unit/cache/per_cpu/test_slabs.h"

namespace tcmalloc::testing {
namespace {

constexpr int64_t kKiB = 1024;
constexpr uint8_t k64 = kClassBySize[64];
constexpr uint8_t k512 = SmallestSizeClassFor(512);
constexpr uint8_t k1024 = SmallestSizeClassFor(1024);
constexpr uint8_t kLargest = SizeClassFor(kMaxSmallSize);
constexpr uint32_t kBatch = 32;

// A slab with its budget, and a thread that fills it.
class Slab {
 public:
  explicit Slab(int64_t limit) : budget(limit) {
    TestFence::Reset();
    TestFence::real = false;
    EXPECT_TRUE(slabs_.Reserve(1, CpuIds::kCpuId, TestFence::Call));
    thread_.emplace(slabs_, window_, CpuIds::kCpuId, &area_);
    SpinLockHolder holder(slab().lock());
    EXPECT_TRUE(slab().Initialize());
  }
  ~Slab() {
    CheckInvariants();
    TestFence::Reset();
  }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  CpuSlab& slab() { return slabs_.slab(0); }
  uint32_t capacity(uint8_t c) { return slab().capacity(c); }

  uint32_t Grow(uint8_t c, uint32_t least = 1, uint32_t batch = kBatch) {
    SpinLockHolder holder(slab().lock());
    excess = {};
    return budget.Grow(slab(), c, batch, least, &excess);
  }
  void Miss(uint8_t c) {
    SpinLockHolder holder(slab().lock());
    budget.NoteMiss(c);
  }
  // Keeps a batch of objects that are none in the depot, in an array of its own for each `number`.
  bool Keep(uint8_t c, uint32_t objects, size_t number = 0, Scatter scatter = Scatter::kInRows) {
    SpinLockHolder holder(slab().lock());
    return budget.Keep(slab(), c, {Array(number), objects}, scatter, arrays_);
  }
  // Takes the newest batch out of the depot.
  ObjectArray Pop(uint8_t c) {
    SpinLockHolder holder(slab().lock());
    const ObjectArray array = slab().depot().Pop(c);
    budget.Unkeep(CpuDepot::BytesOf(c, array.count));
    return array;
  }
  size_t NumberOf(ObjectArray array) const {
    return static_cast<size_t>(array.objects - objects_) / kArrayObjects;
  }
  void ShrinkUnused() {
    SpinLockHolder holder(slab().lock());
    excess = {};
    budget.ShrinkUnused(slab(), &excess);
  }
  std::set<uint8_t> FindIdle(SlabBudget::Search search = SlabBudget::Search::kByTime) {
    SpinLockHolder holder(slab().lock());
    std::set<uint8_t> idle;
    budget.FindIdle(slab(), search).ForEach([&idle](uint8_t c) { idle.insert(c); });
    return idle;
  }
  void LetGoAll() {
    SpinLockHolder holder(slab().lock());
    excess = {};
    budget.LetGoAll(slab(), &excess);
  }
  void Reset() {
    SpinLockHolder holder(slab().lock());
    budget.Reset(slab());
  }
  void GrowTo(uint8_t c, uint32_t capacity) { EXPECT_EQ(Grow(c, capacity, 1), capacity); }

  // Puts as many objects as there is room for into the slab; they are none that anybody may use.
  void Fill(uint8_t c) {
    std::vector<void*> objects(kMaxSlots[c], &objects);
    thread_->PushBatch(c, objects.data(), kMaxSlots[c]);
    EXPECT_EQ(slab().CountObjects(c), capacity(c));
  }
  void TakeOut(uint8_t c, uint32_t count) {
    std::vector<void*> objects(count);
    EXPECT_EQ(thread_->PopBatch(c, objects.data(), count), count);
  }

  // Returns the objects to be taken out of each class.
  std::map<uint8_t, uint32_t> Excess() {
    std::map<uint8_t, uint32_t> objects;
    excess.ForEach([&](uint8_t c) { objects[c] = SlabBudget::CountExcess(slab(), c); });
    return objects;
  }

  void CheckInvariants() {
    SpinLockHolder holder(slab().lock());
    slab().CheckInvariants();
    budget.CheckInvariants(slab());
  }

  SlabBudget budget;
  ClassSet excess;

 private:
  CpuSlabs slabs_;
  ObjectSpace space_;
  ChainArrays arrays_{space_.arena};
  static constexpr size_t kArrayObjects = 64;
  void** Array(size_t number) { return objects_ + number * kArrayObjects; }

  alignas(64) void* objects_[2048];
  FakeWindow& window_ = FakeWindow::OfAllTests();
  RseqArea area_;
  std::optional<SlabThread> thread_;
};

using Objects = std::map<uint8_t, uint32_t>;

TEST(SlabBudgetTest, StartsSlowly) {
  Slab slab(1 << 20);
  uint32_t capacity = 0;
  for (uint32_t expected : {1, 2, 4, 8, 16, 32, 64, 96, 128}) {
    capacity = slab.Grow(k64);
    EXPECT_EQ(capacity, expected);
    EXPECT_EQ(slab.capacity(k64), expected);
    EXPECT_EQ(slab.budget.claimed(), 64 * expected);
  }
  EXPECT_TRUE(slab.excess.empty());
}

TEST(SlabBudgetTest, TheDoublingStopsAtABatch) {
  Slab slab(1 << 20);
  for (uint32_t expected : {1, 2, 3, 6, 9}) EXPECT_EQ(slab.Grow(k64, 1, 3), expected);
}

TEST(SlabBudgetTest, GrowsAtOnceToWhatIsNeeded) {
  Slab slab(1 << 20);
  EXPECT_EQ(slab.Grow(k64, 100), 100u);
  EXPECT_EQ(slab.Grow(k64, 50), 132u) << "which is less than a batch more";
}

TEST(SlabBudgetTest, NoClassGrowsBeyondItsSlots) {
  Slab slab(int64_t{64} << 20);
  EXPECT_EQ(slab.Grow(k64, 1'000'000), kMaxSlots[k64]);
  EXPECT_EQ(slab.Grow(k64), kMaxSlots[k64]);
  EXPECT_EQ(slab.budget.claimed(), 64 * kMaxSlots[k64]);
}

TEST(SlabBudgetTest, TheLimitHolds) {
  Slab slab(1000);
  EXPECT_EQ(slab.Grow(k64, 10), 10u);
  EXPECT_EQ(slab.Grow(k64, 20), 15u) << "what fits";
  EXPECT_EQ(slab.Grow(k64, 20), 15u);
  EXPECT_TRUE(slab.excess.empty()) << "a class takes nothing from itself";
  EXPECT_EQ(slab.Grow(kLargest), 0u);
  EXPECT_LE(slab.budget.claimed(), 1000);
}

TEST(SlabBudgetTest, ALowerLimitIsReachedByUse) {
  Slab slab(64 * kKiB);
  slab.GrowTo(k1024, 60);
  slab.budget.SetLimit(16 * kKiB);
  EXPECT_EQ(slab.budget.limit(), 16 * kKiB);
  EXPECT_EQ(slab.capacity(k1024), 60u) << "nothing is taken at once";
  for (int miss = 0; miss < 8; ++miss) slab.Grow(k512);
  EXPECT_LE(slab.budget.claimed(), 16 * kKiB);
  slab.budget.SetLimit(64 * kKiB);
  slab.GrowTo(k1024, 40);
}

TEST(SlabBudgetTest, WhatIsNotUsedAtTheMomentGivesFirst) {
  Slab slab(64 * kKiB);
  slab.GrowTo(k64, 512);  // 32 KiB
  slab.GrowTo(k512, 64);  // 32 KiB
  slab.Fill(k64);
  EXPECT_EQ(slab.Grow(k1024, 16), 16u);
  EXPECT_EQ(slab.capacity(k64), 512u);
  EXPECT_EQ(slab.capacity(k512), 32u);
  EXPECT_TRUE(slab.excess.empty()) << "no object has to go";
}

TEST(SlabBudgetTest, WhatMissesFarLessOftenGivesObjects) {
  Slab slab(64 * kKiB);
  slab.GrowTo(k64, 512);
  slab.GrowTo(k512, 64);
  slab.Fill(k64);
  slab.Fill(k512);
  slab.Miss(k512);
  for (int miss = 0; miss < 3; ++miss) slab.Miss(k1024);
  EXPECT_EQ(slab.Grow(k1024, 16, 1), 16u);
  EXPECT_EQ(slab.capacity(k64), 256u);
  EXPECT_EQ(slab.capacity(k512), 64u);
  EXPECT_EQ(slab.Excess(), (Objects{{k64, 256}}));
}

TEST(SlabBudgetTest, WhatMissesAboutAsOftenKeepsItsObjects) {
  Slab slab(64 * kKiB);
  slab.GrowTo(k64, 512);
  slab.GrowTo(k1024, 32);
  slab.Fill(k64);
  slab.Fill(k1024);
  for (int miss = 0; miss < 3; ++miss) EXPECT_EQ(slab.Grow(k1024), 32u);
  EXPECT_EQ(slab.capacity(k64), 512u);
  EXPECT_EQ(slab.Grow(k1024), 32u + 16) << "four times as many, and twice what was refused";
  EXPECT_EQ(slab.capacity(k64), 256u);
}

TEST(SlabBudgetTest, MissesAreForgottenAfterTwoSweeps) {
  Slab slab(64 * kKiB);
  slab.GrowTo(k64, 512);
  slab.GrowTo(k1024, 32);
  slab.Fill(k64);
  slab.Fill(k1024);
  slab.ShrinkUnused();
  slab.TakeOut(k64, 1);
  EXPECT_EQ(slab.Grow(k1024), 32u) << "both missed before the sweep";
  slab.ShrinkUnused();
  EXPECT_EQ(slab.capacity(k64), 512u) << "it was used";
  EXPECT_EQ(slab.Grow(k1024), 48u);
  EXPECT_EQ(slab.capacity(k64), 256u);
}

TEST(SlabBudgetTest, EachClassMayHaveABatch) {
  Slab slab(64 * kKiB);
  slab.GrowTo(k64, 512);
  slab.GrowTo(k512, 64);
  slab.Fill(k64);
  slab.Fill(k512);
  EXPECT_EQ(slab.Grow(k1024, 16), 16u);
  EXPECT_EQ(slab.capacity(k64) + slab.capacity(k512) * 8, 512u + 512 - 256) << "one is enough";
  EXPECT_EQ(slab.Grow(k1024, 32), 32u);
  EXPECT_EQ(slab.capacity(k64), 256u);
  EXPECT_EQ(slab.capacity(k512), 32u);
  EXPECT_EQ(slab.Grow(k1024), 32u);
}

// A second search among the same classes would cost time for nothing.
TEST(SlabBudgetTest, WhatWasRefusedIsRefusedUntilTheNextSweep) {
  Slab slab(64 * kKiB);
  slab.GrowTo(k64, 256);  // 16 KiB
  slab.GrowTo(k512, 96);  // 48 KiB
  slab.Fill(k64);
  slab.Fill(k512);
  EXPECT_EQ(slab.Grow(k64, 512, 512), 512u) << "the other one had twice as much";
  EXPECT_EQ(slab.capacity(k512), 48u);
  slab.Fill(k64);
  EXPECT_EQ(slab.Grow(k512, 96, 96), 64u) << "which fits beside the other one";
  EXPECT_EQ(slab.Grow(k1024, 24), 0u);
  slab.ShrinkUnused();
  EXPECT_EQ(slab.Grow(k1024, 24), 24u);
}

TEST(SlabBudgetTest, NothingIsTakenForWhatCannotFit) {
  Slab slab(64 * kKiB);
  slab.GrowTo(k1024, 64);
  slab.Fill(k1024);
  EXPECT_EQ(slab.Grow(kLargest), 0u);
  EXPECT_EQ(slab.capacity(k1024), 64u);
}

TEST(SlabBudgetTest, NoMoreIsTakenThanIsNeeded) {
  Slab slab(64 * kKiB);
  for (uint8_t c : {k64, k512, k1024}) {
    slab.GrowTo(c, static_cast<uint32_t>(20 * kKiB / kSizeClasses[c].size));
  }
  slab.ShrinkUnused();
  EXPECT_EQ(slab.Grow(kClassBySize[256], 20), 20u);
  int halves = 0;
  for (uint8_t c : {k64, k512, k1024}) {
    if (slab.capacity(c) < 20 * kKiB / kSizeClasses[c].size) ++halves;
  }
  EXPECT_EQ(halves, 1);
}

TEST(SlabBudgetTest, WhereAllMissedAllGiveUp) {
  Slab slab(64 * kKiB);
  slab.GrowTo(k64, 512);
  slab.GrowTo(k512, 64);
  EXPECT_EQ(slab.Grow(k1024, 32), 32u);
  EXPECT_EQ(slab.capacity(k64), 256u);
  EXPECT_EQ(slab.capacity(k512), 32u);
}

TEST(SlabBudgetTest, ObjectsBeyondTheCapacityAreReported) {
  Slab slab(64 * kKiB);
  slab.GrowTo(k64, 512);
  slab.GrowTo(k512, 64);
  slab.Fill(k64);
  slab.Fill(k512);
  slab.TakeOut(k512, 20);
  EXPECT_EQ(slab.Grow(k1024, 32), 32u);
  EXPECT_EQ(slab.Excess(), (Objects{{k64, 256}, {k512, 12}}));
}

TEST(SlabBudgetTest, ObjectsBeyondACapacityThatWasTakenTwiceAreReportedOnce) {
  Slab slab(64 * kKiB);
  slab.GrowTo(k64, 1000);
  slab.Fill(k64);
  for (int miss = 0; miss < 3; ++miss) slab.Miss(k1024);
  EXPECT_EQ(slab.Grow(k1024, 30, 64), 30u);
  EXPECT_EQ(slab.Grow(k1024, 48, 64), 48u);
  EXPECT_EQ(slab.capacity(k64), 250u);
  EXPECT_EQ(slab.Excess(), (Objects{{k64, 1000 - 250}}));
}

TEST(SlabBudgetTest, WhatIsNotUsedShrinks) {
  Slab slab(1 << 20);
  slab.GrowTo(k64, 100);
  slab.GrowTo(k512, 100);
  slab.Fill(k64);
  slab.Fill(k512);
  slab.ShrinkUnused();
  EXPECT_EQ(slab.capacity(k64), 100u) << "it missed";
  slab.TakeOut(k64, 1);
  slab.ShrinkUnused();
  EXPECT_EQ(slab.capacity(k64), 100u) << "it served";
  EXPECT_EQ(slab.capacity(k512), 50u);
  EXPECT_EQ(slab.Excess(), (Objects{{k512, 50}}));
  slab.TakeOut(k512, 50);
  slab.ShrinkUnused();
  EXPECT_EQ(slab.capacity(k64), 50u);
  EXPECT_EQ(slab.capacity(k512), 50u);
  for (int i = 0; i < 7; ++i) slab.ShrinkUnused();
  EXPECT_EQ(slab.capacity(k64), 0u);
  EXPECT_EQ(slab.capacity(k512), 0u);
  EXPECT_EQ(slab.budget.claimed(), 0);
}

TEST(SlabBudgetTest, HalfOfWhatWasThereAtEverySweepGoes) {
  Slab slab(1 << 20);
  slab.GrowTo(k512, 100);
  slab.Fill(k512);
  const auto sweep = [&slab](uint32_t taken) {
    slab.Miss(k512);
    slab.TakeOut(k512, taken);
    slab.ShrinkUnused();
    slab.Fill(k512);
  };
  for (int i = 0; i < 4; ++i) sweep(0);
  for (uint32_t taken : {10, 40, 20}) sweep(taken);
  EXPECT_EQ(slab.capacity(k512), 100u);
  slab.Miss(k512);
  slab.ShrinkUnused();
  EXPECT_EQ(slab.capacity(k512), 100u - 60 / 2);
  EXPECT_EQ(slab.Excess(), (Objects{{k512, 60 / 2}}));
}

TEST(SlabBudgetTest, FewBytesThatAreNotNeededStay) {
  Slab slab(1 << 20);
  slab.GrowTo(k512, 10);
  slab.Fill(k512);
  for (int i = 0; i < 12; ++i) {
    slab.Miss(k512);
    slab.ShrinkUnused();
  }
  EXPECT_EQ(slab.capacity(k512), 10u);
}

TEST(SlabBudgetTest, IdleClassesAreFound) {
  Slab slab(1 << 20);
  slab.GrowTo(k64, 960);
  slab.GrowTo(k512, 160);
  slab.GrowTo(k1024, 80);
  for (uint8_t c : {k64, k512, k1024}) slab.Fill(c);
  EXPECT_TRUE(slab.FindIdle().empty()) << "they missed";
  slab.TakeOut(k64, 1);
  slab.Grow(k512);
  EXPECT_EQ(slab.FindIdle(), std::set<uint8_t>{k1024});
  EXPECT_EQ(slab.FindIdle(), (std::set<uint8_t>{k64, k512, k1024}));
  slab.TakeOut(k512, 100);
  slab.TakeOut(k1024, 60);
  slab.FindIdle();
  slab.TakeOut(k64, 600);
  EXPECT_TRUE(slab.FindIdle().empty()) << "there are few";
}

TEST(SlabBudgetTest, WhoSearchesByTimeDoesNotSeeOtherSearches) {
  Slab slab(1 << 20);
  slab.GrowTo(k1024, 80);
  slab.Fill(k1024);
  for (int i = 0; i < 2; ++i) slab.FindIdle(SlabBudget::Search::kForGrowth);
  EXPECT_TRUE(slab.FindIdle(SlabBudget::Search::kByTime).empty());
  EXPECT_EQ(slab.FindIdle(SlabBudget::Search::kByTime), std::set<uint8_t>{k1024});
}

TEST(SlabBudgetTest, ManyTicksCountAsAMiss) {
  Slab slab(1 << 20);
  int misses = 0;
  for (int i = 0; i < 160; ++i) misses += slab.budget.NoteTick() ? 1 : 0;
  EXPECT_EQ(misses, 10);
  EXPECT_FALSE(slab.budget.WasIdle(slab.slab()));
}

// A large request that is refused does not keep others from what there is.
TEST(SlabBudgetTest, LessThanWhatWasRefusedMayBeTaken) {
  Slab slab(64 * kKiB);
  slab.GrowTo(k64, 512);
  slab.GrowTo(k512, 64);
  slab.Fill(k64);
  slab.Fill(k512);
  EXPECT_EQ(slab.Grow(k1024, 48, 48), 32u) << "half of both others";
  slab.Fill(k1024);
  EXPECT_EQ(slab.Grow(kClassBySize[128], 32), 32u);
}

TEST(SlabBudgetTest, ResetTakesEverything) {
  Slab slab(1 << 20);
  for (size_t c = 1; c < kSizeClassCount; ++c) slab.Grow(static_cast<uint8_t>(c));
  EXPECT_GT(slab.budget.claimed(), 0);
  slab.Reset();
  EXPECT_EQ(slab.budget.claimed(), 0);
  for (size_t c = 1; c < kSizeClassCount; ++c)
    EXPECT_EQ(slab.capacity(static_cast<uint8_t>(c)), 0u);
  EXPECT_EQ(slab.Grow(k64), 1u);
}

TEST(SlabBudgetTest, SweepsAreDueEveryFewMisses) {
  Slab slab(1 << 20);
  std::vector<int> due;
  for (int i = 1; i <= 1024; ++i) {
    slab.Grow(k64);
    if (slab.budget.SweepIsDue()) due.push_back(i);
  }
  ASSERT_GE(due.size(), 2u);
  for (size_t i = 1; i < due.size(); ++i) EXPECT_EQ(due[i] - due[i - 1], due[0]);
}

TEST(SlabBudgetTest, IdleWithoutMisses) {
  Slab slab(1 << 20);
  EXPECT_TRUE(slab.budget.WasIdle(slab.slab()));
  slab.Grow(k64);
  EXPECT_FALSE(slab.budget.WasIdle(slab.slab()));
  EXPECT_TRUE(slab.budget.WasIdle(slab.slab()));
}

// Two slabs with the same limit, of which the first may take from the second.
class TakeFromTest : public ::testing::Test {
 protected:
  static constexpr int64_t kLimit = 256 * kKiB;
  static constexpr int64_t kStep = 64 * kKiB;

  static void RunShort(Slab& slab) {
    slab.Grow(k1024, kMaxSlots[k1024]);
    slab.Grow(k512, kMaxSlots[k512]);
    slab.Grow(kLargest, kMaxSlots[kLargest]);
  }
  void Take(bool idle) { rich_.budget.TakeFrom(poor_.budget, idle); }
  void ExpectLimits(int64_t rich, int64_t poor) {
    EXPECT_EQ(rich_.budget.limit(), rich);
    EXPECT_EQ(poor_.budget.limit(), poor);
  }

  Slab rich_{kLimit};
  Slab poor_{kLimit};
};

TEST_F(TakeFromTest, NothingWithoutNeed) {
  Take(true);
  Take(false);
  rich_.Grow(k64);
  Take(true);
  ExpectLimits(kLimit, kLimit);
}

TEST_F(TakeFromTest, AStepOfWhatIsIdle) {
  RunShort(rich_);
  RunShort(poor_);
  Take(true);
  ExpectLimits(kLimit + kStep, kLimit - kStep);
  Take(true);
  ExpectLimits(kLimit + kStep, kLimit - kStep);
  RunShort(rich_);
  Take(true);
  ExpectLimits(kLimit + 2 * kStep, kLimit - 2 * kStep);
}

TEST_F(TakeFromTest, AStepOfWhatHasRoom) {
  RunShort(rich_);
  poor_.Grow(k64);
  Take(false);
  ExpectLimits(kLimit + kStep, kLimit - kStep);
}

// A slab whose classes take from each other what all of them need is short as well.
TEST_F(TakeFromTest, WhereClassesThatMissedGiveUpThereIsNeed) {
  for (uint8_t c : {k1024, k512, k64}) {
    rich_.Grow(c, static_cast<uint32_t>(120 * kKiB / kSizeClasses[c].size));
    rich_.Fill(c);
  }
  EXPECT_LT(rich_.capacity(k512), 240u) << "what was needed was taken from another class";
  Take(true);
  ExpectLimits(kLimit + kStep, kLimit - kStep);
}

TEST_F(TakeFromTest, NothingOfWhatIsShortToo) {
  RunShort(rich_);
  RunShort(poor_);
  Take(false);
  ExpectLimits(kLimit, kLimit);
}

// So that slabs which are short of room end up with the same limit.
TEST_F(TakeFromTest, AStepOfWhatIsShortButMayHoldMore) {
  Slab larger(kLimit + 2 * kStep);
  RunShort(rich_);
  RunShort(larger);
  rich_.budget.TakeFrom(larger.budget, false);
  RunShort(rich_);
  rich_.budget.TakeFrom(larger.budget, false);
  EXPECT_EQ(rich_.budget.limit(), kLimit + kStep);
  EXPECT_EQ(larger.budget.limit(), kLimit + kStep);
}

TEST_F(TakeFromTest, UpToEightTimesTheFirstLimit) {
  Slab larger(32 * kLimit);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(rich_.Keep(kLargest, 1000)) << "short of room";
    rich_.budget.TakeFrom(larger.budget, true);
  }
  EXPECT_EQ(rich_.budget.limit(), 8 * kLimit);
  EXPECT_EQ(larger.budget.limit(), 25 * kLimit);
}

TEST_F(TakeFromTest, UpToTwiceALargeLimit) {
  constexpr int64_t kMiB = 1024 * kKiB;
  Slab large(20 * kMiB);
  Slab larger(400 * kMiB);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(large.Keep(kLargest, 1000)) << "short of room";
    large.budget.TakeFrom(larger.budget, true);
  }
  EXPECT_EQ(large.budget.limit(), 40 * kMiB);
}

TEST_F(TakeFromTest, NewLimitsKeepWhatWasTaken) {
  RunShort(rich_);
  Take(true);
  const int64_t rich = rich_.budget.limit();
  const int64_t poor = poor_.budget.limit();
  rich_.budget.SetLimit(kLimit + kKiB);
  poor_.budget.SetLimit(kLimit + kKiB);
  ExpectLimits(rich + kKiB, poor + kKiB);
}

// A slab that kept all that it took would hold many times its limit, and the other less than
// nothing.
TEST_F(TakeFromTest, LowerLimitsLessenWhatWasTaken) {
  for (int i = 0; i < 10; ++i) {
    RunShort(rich_);
    Take(true);
  }
  ExpectLimits(kLimit + 3 * kStep, kStep);
  rich_.budget.SetLimit(kLimit / 4);
  poor_.budget.SetLimit(kLimit / 4);
  ExpectLimits(kLimit / 4 + 3 * kStep / 4, kStep / 4);
  rich_.budget.SetLimit(kLimit);
  poor_.budget.SetLimit(kLimit);
  ExpectLimits(kLimit + 3 * kStep / 4, kLimit - 3 * kStep / 4);
}

TEST_F(TakeFromTest, DownToAQuarter) {
  for (int i = 0; i < 10; ++i) {
    RunShort(rich_);
    Take(true);
  }
  ExpectLimits(2 * kLimit - kStep, kStep);
}

TEST_F(TakeFromTest, NothingOfLessThanAStep) {
  Slab small(kStep - 1);
  for (int i = 0; i < 10; ++i) {
    RunShort(rich_);
    rich_.budget.TakeFrom(small.budget, true);
  }
  EXPECT_EQ(small.budget.limit(), kStep - 1);
  EXPECT_EQ(rich_.budget.limit(), kLimit);
}

TEST_F(TakeFromTest, TheNextMissMakesUpForWhatWasTaken) {
  RunShort(rich_);
  poor_.GrowTo(k1024, 120);
  poor_.GrowTo(k512, 240);
  poor_.Grow(k64, 200);
  Take(false);
  const int64_t limit = poor_.budget.limit();
  EXPECT_LT(limit, poor_.budget.claimed());
  poor_.Grow(k64, 1);
  EXPECT_LE(poor_.budget.claimed(), limit);
  EXPECT_GE(poor_.capacity(k64), 200u);
}

TEST(SlabBudgetTest, BatchesCountAgainstTheLimit) {
  Slab slab(10'000);
  ASSERT_TRUE(slab.Keep(k64, 100));
  EXPECT_EQ(slab.budget.claimed(), 100 * 64);
  EXPECT_FALSE(slab.Keep(k512, 100)) << "only batches of its own class make room";
  EXPECT_EQ(slab.slab().depot().CountKept(k64), 1u);
  slab.GrowTo(k1024, 1);
  slab.GrowTo(k1024, 2);
  EXPECT_TRUE(slab.excess.empty());
}

// The others keep their order.
TEST(SlabBudgetTest, TheOldestBatchesMakeRoomForOne) {
  Slab slab(20 * 10 * 64);
  for (size_t i = 0; i < 20; ++i) ASSERT_TRUE(slab.Keep(k64, 10, i));
  EXPECT_EQ(slab.slab().depot().CountLeaving(k64), 0u);
  ASSERT_TRUE(slab.Keep(k64, 10, 20));
  EXPECT_EQ(slab.slab().depot().CountLeaving(k64), 3u) << "an eighth";
  EXPECT_LE(slab.budget.claimed(), slab.budget.limit());
  slab.CheckInvariants();
  std::vector<size_t> kept;
  for (ObjectArray array = slab.Pop(k64); array.count > 0; array = slab.Pop(k64)) {
    kept.push_back(slab.NumberOf(array));
  }
  std::vector<size_t> newest(18);
  std::iota(newest.rbegin(), newest.rend(), size_t{3});
  EXPECT_EQ(kept, newest);
}

TEST(SlabBudgetTest, AClassOutgrowsTheSlabWherePiecesOfRowsFindNoRoom) {
  Slab slab(kNearKeptBytes + 100 * 64);
  const auto outgrows = [&slab] { return slab.slab().depot().outgrowth(k64).active(); };
  for (int64_t kept = 0; kept < kNearKeptBytes; kept += 1000 * 64) {
    ASSERT_TRUE(slab.Keep(k64, 1000, 0, Scatter::kInPieces));
  }
  EXPECT_FALSE(outgrows()) << "all found room";
  ASSERT_TRUE(slab.Keep(k64, 1000, 0, Scatter::kInRows));
  EXPECT_FALSE(outgrows()) << "rows are kept in any case";
  while (!outgrows()) ASSERT_TRUE(slab.Keep(k64, 1000, 0, Scatter::kInPieces));
  EXPECT_GE(slab.slab().depot().CountObjects(k64), kNearKeptBytes / 64);
  EXPECT_FALSE(slab.slab().depot().outgrowth(k512).active());
}

TEST(SlabBudgetTest, HalfOfTheBatchesMakeRoomForSlots) {
  Slab slab(10 * 64 * 10);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(slab.Keep(k64, 10));
  slab.GrowTo(k1024, 1);
  EXPECT_EQ(slab.Excess(), (Objects{{k64, 0}}));
  EXPECT_EQ(slab.slab().depot().CountKept(k64), 5u);
  EXPECT_EQ(slab.slab().depot().CountObjects(k64), 100u) << "somebody has to take them away";
}

TEST(SlabBudgetTest, BeyondALoweredLimitBatchesGo) {
  Slab slab(1 << 20);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(slab.Keep(k64, 10));
  slab.budget.SetLimit(10);
  slab.ShrinkUnused();
  EXPECT_EQ(slab.slab().depot().CountKept(k64), 5u);
  for (int i = 0; i < 3; ++i) slab.ShrinkUnused();
  EXPECT_EQ(slab.slab().depot().CountKept(k64), 0u);
  EXPECT_EQ(slab.budget.claimed(), 0);
}

TEST(SlabBudgetTest, AllBatchesGo) {
  Slab slab(1 << 20);
  for (uint8_t c : {k64, k1024}) {
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(slab.Keep(c, 10));
  }
  slab.LetGoAll();
  EXPECT_EQ(slab.budget.claimed(), 0);
  EXPECT_EQ(slab.Excess(), (Objects{{k64, 0}, {k1024, 0}}));
  EXPECT_EQ(slab.slab().depot().CountLeaving(k64), 5u);
  EXPECT_EQ(slab.slab().depot().CountLeaving(k1024), 5u);
}

// Another thread may have put them there after the others went.
TEST(SlabBudgetTest, ResetSparesBatches) {
  Slab slab(1 << 20);
  slab.GrowTo(k1024, 1);
  ASSERT_TRUE(slab.Keep(k64, 10));
  slab.Reset();
  EXPECT_EQ(slab.budget.claimed(), CpuDepot::BytesOf(k64, 10));
  slab.LetGoAll();
  EXPECT_EQ(slab.budget.claimed(), 0);
}

TEST(SlabBudgetTest, HalfOfALargeLimitIsForBatches) {
  Slab slab(64 << 20);
  slab.budget.NoteHeap(int64_t{1} << 30);
  for (int i = 0; i < 1000; ++i) {
    for (size_t c = 1; c < kSizeClassCount; ++c) slab.Grow(static_cast<uint8_t>(c));
  }
  EXPECT_LE(slab.budget.claimed(), 32 << 20);
  EXPECT_GT(slab.budget.claimed(), 31 << 20);
  while (slab.slab().depot().CountLeaving(k64) == 0) ASSERT_TRUE(slab.Keep(k64, kBatch));
  EXPECT_LE(slab.budget.claimed(), 64 << 20);
  EXPECT_GT(slab.budget.claimed(), 63 << 20);
}

TEST(SlabBudgetDeathTest, ACapacityThatNobodyClaimed) {
  EXPECT_DEATH(
      {
        Slab slab(1 << 20);
        {
          SpinLockHolder holder(slab.slab().lock());
          slab.slab().SetCapacity(k64, 1);
        }
        slab.CheckInvariants();
      },
      "64");
}

// Slabs of which slab 2 visits the others.
class SlabBudgetsTest : public ::testing::Test {
 protected:
  static constexpr size_t kSlabs = 4;
  static constexpr int kVisitor = 2;
  using Ids = std::multiset<int>;

  void SetUp() override { ASSERT_TRUE(budgets_.Reserve(kSlabs, kLimit)); }
  void TearDown() override {
    for (size_t i = 0; i < kSlabs; ++i) Reset(i);
  }

  SlabBudget& budget(size_t i) { return budgets_.budget(static_cast<int>(i)); }
  void Miss(size_t i, uint32_t least = 1) {
    SpinLockHolder holder(slabs_[i].slab().lock());
    slabs_[i].excess = {};
    budget(i).Grow(slabs_[i].slab(), k64, kBatch, least, &slabs_[i].excess);
  }
  void Reset(size_t i) {
    SpinLockHolder holder(slabs_[i].slab().lock());
    budget(i).Reset(slabs_[i].slab());
  }
  int VisitOther() {
    return budgets_.VisitOther(kVisitor, [this](int i) -> const CpuSlab& {
      return slabs_[static_cast<size_t>(i)].slab();
    });
  }
  // Returns the ids that so many visits found.
  Ids Visit(int count) {
    Ids found;
    for (int i = 0; i < count; ++i) found.insert(VisitOther());
    return found;
  }

  static constexpr int64_t kLimit = 32 * kKiB;

  SlabBudgets budgets_;
  std::array<Slab, kSlabs> slabs_ = {Slab(0), Slab(0), Slab(0), Slab(0)};
};

TEST_F(SlabBudgetsTest, AllBeginWithTheSameLimit) {
  for (size_t i = 0; i < kSlabs; ++i) EXPECT_EQ(budget(i).limit(), kLimit);
}

TEST_F(SlabBudgetsTest, SlabsThatHoldNothingAreNotVisited) {
  EXPECT_EQ(Visit(3), (Ids{-1, -1, -1}));
  Miss(0);
  EXPECT_EQ(Visit(1), Ids{-1}) << "not idle";
  EXPECT_EQ(Visit(3), (Ids{0, 0, 0}));
  Reset(0);
  EXPECT_EQ(Visit(3), (Ids{-1, -1, -1}));
}

TEST_F(SlabBudgetsTest, TheOthersAreVisitedInTurn) {
  for (size_t i = 0; i < kSlabs; ++i) Miss(i);
  EXPECT_EQ(Visit(3), (Ids{-1, -1, -1})) << "not idle";
  Miss(3);
  EXPECT_EQ(Visit(3), (Ids{-1, 0, 1}));
  EXPECT_EQ(Visit(3), (Ids{0, 1, 3}));
}

// Random calls, whose effects must be those that the description allows.
class RandomBudgetTest : public ::testing::TestWithParam<int64_t> {
 protected:
  static constexpr std::array<uint8_t, 5> kClasses = {kClassBySize[8], k64, k512, k1024, kLargest};
  using Capacities = std::array<uint32_t, kClasses.size()>;

  Capacities Read() {
    Capacities capacities;
    for (size_t i = 0; i < kClasses.size(); ++i) capacities[i] = slab_.capacity(kClasses[i]);
    return capacities;
  }
  static int64_t Bytes(const Capacities& capacities) {
    int64_t bytes = 0;
    for (size_t i = 0; i < kClasses.size(); ++i) {
      bytes += int64_t{capacities[i]} * kSizeClasses[kClasses[i]].size;
    }
    return bytes;
  }

  void Grow(size_t k, uint32_t least) {
    const Capacities before = Read();
    const uint8_t c = kClasses[k];
    const uint32_t batch = kSizeClasses[c].batch;
    const uint32_t step =
        before[k] < batch ? std::clamp(before[k] * 2, 1u, batch) : before[k] + batch;
    const uint32_t wanted = std::min<uint32_t>(std::max(step, least), kMaxSlots[c]);
    const uint32_t capacity = slab_.Grow(c, least, batch);
    ASSERT_EQ(capacity, slab_.capacity(c));
    const Capacities after = Read();
    ASSERT_GE(after[k], before[k]);
    ASSERT_LE(after[k], std::max(wanted, before[k]));
    Capacities needed = before;
    needed[k] = std::max(wanted, before[k]);
    const bool fits = Bytes(needed) <= slab_.budget.limit() || wanted <= before[k];
    const int64_t more = int64_t{needed[k] - before[k]} * kSizeClasses[c].size;
    const bool may_fit = more <= slab_.budget.limit();
    const int64_t twice = int64_t{2} * before[k] * kSizeClasses[c].size;
    for (size_t i = 0; i < kClasses.size(); ++i) {
      if (i == k) continue;
      ASSERT_LE(after[i], before[i]);
      if (fits) {
        ASSERT_EQ(after[i], before[i]) << "nobody had to give";
      }
      const bool is_rich = int64_t{after[i]} * kSizeClasses[kClasses[i]].size >= twice;
      if (after[k] < wanted && before[k] < batch && may_fit && is_rich && !refused_) {
        ASSERT_LE(after[i], before[i] / 2) << "refused while others kept theirs";
      }
    }
    refused_ |= after[k] < wanted && before[k] < batch && may_fit;
    if (wanted > before[k]) {
      ASSERT_LE(Bytes(after), std::max(slab_.budget.limit(), Bytes(before)));
    }
    ExpectExcess(before, after);
  }

  void ShrinkUnused() {
    const Capacities before = Read();
    slab_.ShrinkUnused();
    refused_ = false;
    const Capacities after = Read();
    for (size_t i = 0; i < kClasses.size(); ++i) {
      const uint32_t objects = slab_.slab().CountObjects(kClasses[i]);
      ASSERT_LE(after[i], before[i]);
      ASSERT_GE(after[i], std::min(before[i], objects) / 2);
    }
    ExpectExcess(before, after);
  }

  // Takes the excess out: of the classes that lost capacity, no more than that remains.
  void ExpectExcess(const Capacities& before, const Capacities& after) {
    const Objects excess = slab_.Excess();
    for (size_t i = 0; i < kClasses.size(); ++i) {
      const uint8_t c = kClasses[i];
      const uint32_t objects = slab_.slab().CountObjects(c);
      const uint32_t beyond = objects > after[i] ? objects - after[i] : 0;
      const auto entry = excess.find(c);
      ASSERT_EQ(entry != excess.end() ? entry->second : 0, after[i] < before[i] ? beyond : 0);
      if (entry != excess.end()) slab_.TakeOut(c, entry->second);
    }
  }

  Slab slab_{GetParam()};
  bool refused_ = false;  // a class without a batch, since the last sweep
};

TEST_P(RandomBudgetTest, TakesFromOthersOnlyWhatItMust) {
  std::mt19937 random(static_cast<uint32_t>(GetParam()));
  for (int i = 0; i < 20'000 && !HasFatalFailure(); ++i) {
    const size_t k = random() % kClasses.size();
    switch (random() % 8) {
      case 0:
        slab_.Fill(kClasses[k]);
        break;
      case 1:
        slab_.TakeOut(kClasses[k], static_cast<uint32_t>(
                                       random() % (slab_.slab().CountObjects(kClasses[k]) + 1)));
        break;
      case 2:
        if (random() % 8 == 0) ShrinkUnused();
        break;
      case 3:
        Grow(k, static_cast<uint32_t>(random() % 1200));
        break;
      default:
        Grow(k, 1);
    }
    slab_.CheckInvariants();
    ASSERT_LE(slab_.budget.claimed(), slab_.budget.limit());
  }
}

INSTANTIATE_TEST_SUITE_P(Limits, RandomBudgetTest,
                         ::testing::Values(0, 10'000, 64 * kKiB, 500'000, int64_t{3} << 19));

}  // namespace
}  // namespace tcmalloc::testing
