// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/per_cpu/cpu_slab.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "cache/per_cpu/cpu_slabs.h"
#include "cache/per_cpu/slab_layout.h"
#include "system/auxv.h"
#include "system/own_memory.h"
#include "system/system_calls.h"
#include "unit/cache/per_cpu/test_slabs.h"

namespace tcmalloc::testing {
namespace {

// Fences need no kernel here: the only thread is in no section when it calls one.
class CpuSlabTest : public ::testing::Test {
 protected:
  static constexpr uint8_t kSmall = 1;
  static constexpr uint8_t kClass = kClassBySize[64];
  static constexpr auto kLargest = static_cast<uint8_t>(kSizeClassCount - 1);

  CpuSlabTest() {
    TestFence::Reset();
    TestFence::real = false;
  }
  ~CpuSlabTest() override { TestFence::Reset(); }

  void SetUp() override {
    ASSERT_TRUE(slabs_.Reserve(3, CpuIds::kCpuId, TestFence::Call));
    area_.cpu_id = 1;
    thread_.emplace(slabs_, window_, CpuIds::kCpuId, &area_);
  }

  CpuSlab& slab() { return slabs_.slab(1); }

  void Open(uint32_t capacity) {
    SpinLockHolder holder(slab().lock());
    ASSERT_TRUE(slab().Initialize());
    for (const uint8_t c : {kSmall, kClass, kLargest}) {
      slab().SetCapacity(c, std::min<uint32_t>(capacity, kMaxSlots[c]));
    }
  }

  std::map<uint8_t, std::vector<void*>> Drain() TCMALLOC_REQUIRES(slab().lock()) {
    std::map<uint8_t, std::vector<void*>> drained;
    slab().Drain([&drained](uint8_t c, void* const* objects, uint32_t n) {
      EXPECT_TRUE(drained[c].empty()) << "one call for each class";
      drained[c].assign(objects, objects + n);
    });
    return drained;
  }

  // Returns true if malloc's section finds an object for the size.
  bool Serves(size_t size) TCMALLOC_REQUIRES(slab().lock()) {
    const uint8_t c = SizeClassFor(size);
    ObjectPool one(window_, c, 1);
    void* object = one.Take();
    slab().SetCapacity(c, 1);
    thread_->clock().Initialize(1);
    EXPECT_TRUE(thread_->Push(c, object));
    const bool serves = thread_->Allocate(size) == object;
    EXPECT_EQ(thread_->Pop(c), serves ? nullptr : object);
    return serves;
  }

  FakeWindow& window_ = FakeWindow::OfAllTests();
  ObjectPool small_{window_, kSmall, 2000};
  ObjectPool pool_{window_, kClass, 100};
  ObjectPool largest_{window_, kLargest, 4};
  CpuSlabs slabs_;
  RseqArea area_;
  std::optional<SlabThread> thread_;
};

TEST(SlabLayoutTest, RegionsDoNotOverlapAndFitTheSlab) {
  size_t next = TCM_SLOTS / kSlotBytes;
  for (size_t c = kSizeClassCount - 1; c > 0; --c) {
    EXPECT_EQ(kSlabBegin[c], next + 1) << "the slot before holds the top of an empty class";
    EXPECT_GE(kMaxSlots[c], 2 * kSizeClasses[c].batch);
    next += 1 + kMaxSlots[c];
  }
  EXPECT_LE(next * kSlotBytes, kSlabBytes);
}

TEST_F(CpuSlabTest, UnusedSlabIsEmpty) {
  EXPECT_EQ(slab().state(), SlabState::kUnused);
  EXPECT_EQ(slab().CountObjects(kClass), 0u);
  EXPECT_FALSE(slab().Holds(this, kClass));
  SpinLockHolder holder(slab().lock());
  slab().CheckInvariants();
}

TEST_F(CpuSlabTest, CountsThePagesItUses) {
  const size_t before = own_bytes.get();
  Open(0);
  const size_t opened = own_bytes.get();
  EXPECT_GT(opened, before);
  EXPECT_LT(opened, before + kSlabBytes / 2);
  SpinLockHolder holder(slab().lock());
  slab().SetCapacity(kSmall, kMaxSlots[kSmall]);
  const size_t grown = own_bytes.get();
  EXPECT_GE(grown + 2 * KernelPageSize(), opened + kMaxSlots[kSmall] * kSlotBytes);
  EXPECT_LE(grown, opened + kMaxSlots[kSmall] * kSlotBytes + 2 * KernelPageSize());
  slab().SetCapacity(kSmall, 1);
  slab().SetCapacity(kSmall, kMaxSlots[kSmall]);
  EXPECT_EQ(own_bytes.get(), grown);
}

TEST_F(CpuSlabTest, InitializeUsesTwoFencesOfItsCpu) {
  Open(10);
  EXPECT_EQ(TestFence::calls, 2);
  EXPECT_EQ(TestFence::last_cpu, 1);
  EXPECT_EQ(slab().state(), SlabState::kOpen);
  EXPECT_EQ(slab().capacity(kClass), 10u);
  EXPECT_EQ(slab().capacity(2), 0u);
  EXPECT_EQ(slabs_.slab(0).state(), SlabState::kUnused);
  SpinLockHolder holder(slab().lock());
  slab().CheckInvariants();
}

TEST_F(CpuSlabTest, ConcurrencyIdsNeedFencesOfAllCpus) {
  CpuSlabs slabs;
  ASSERT_TRUE(slabs.Reserve(2, CpuIds::kMmCid, TestFence::Call));
  SpinLockHolder holder(slabs.slab(1).lock());
  ASSERT_TRUE(slabs.slab(1).Initialize());
  EXPECT_EQ(TestFence::last_cpu, -1);
}

TEST_F(CpuSlabTest, InitializeMayBeRepeatedAfterARefusedFence) {
  SpinLockHolder holder(slab().lock());
  TestFence::refused = 1;
  EXPECT_FALSE(slab().Initialize());
  EXPECT_FALSE(thread_->Push(kClass, pool_.Take()));
  // The first fence succeeds, the second is refused.
  TestFence::on_call = [] {
    TestFence::refused = 1;
    TestFence::on_call = nullptr;
  };
  EXPECT_FALSE(slab().Initialize());
  EXPECT_EQ(TestFence::calls, 3);
  EXPECT_EQ(slab().state(), SlabState::kUnused);
  EXPECT_FALSE(thread_->Push(kClass, pool_.Take()));
  EXPECT_EQ(thread_->Pop(kClass), nullptr);
  ASSERT_TRUE(slab().Initialize());
  slab().SetCapacity(kClass, 1);
  EXPECT_TRUE(thread_->Push(kClass, pool_.Take()));
  slab().CheckInvariants();
}

TEST_F(CpuSlabTest, CloseAndOpenKeepWhatIsThere) {
  Open(5);
  void* object = pool_.Take();
  ASSERT_TRUE(thread_->Push(kClass, object));
  TestFence::calls = 0;
  SpinLockHolder holder(slab().lock());
  ASSERT_TRUE(slab().Close());
  EXPECT_EQ(TestFence::calls, 1);
  EXPECT_EQ(slab().state(), SlabState::kClosed);
  EXPECT_EQ(slab().CountObjects(kClass), 1u);
  EXPECT_TRUE(slab().Holds(object, kClass));
  slab().CheckInvariants();
  ASSERT_TRUE(slab().Open());
  EXPECT_EQ(TestFence::calls, 1) << "nothing changed that needs a fence";
  slab().CheckInvariants();
  EXPECT_EQ(thread_->Pop(kClass), object);
}

TEST_F(CpuSlabTest, SizesAreListedByRowsUntilTheSlabIsClosed) {
  Open(10);
  SpinLockHolder holder(slab().lock());
  constexpr size_t kFirst = 2 * CpuSlab::kRowSizes;
  constexpr size_t kLast = 3 * CpuSlab::kRowSizes - 1;
  EXPECT_FALSE(slab().Lists(kFirst));
  EXPECT_FALSE(Serves(kFirst));
  slab().ListSizes(kFirst + 5);
  for (const size_t size : {kFirst, kFirst + 1, kLast}) {
    EXPECT_TRUE(slab().Lists(size));
    EXPECT_TRUE(Serves(size));
  }
  for (const size_t size : {kFirst - 1, kLast + 1}) {
    EXPECT_FALSE(slab().Lists(size));
    EXPECT_FALSE(Serves(size));
  }
  ASSERT_TRUE(slab().Close());
  EXPECT_FALSE(slab().Lists(kFirst));
  slab().ListSizes(kFirst);
  EXPECT_FALSE(slab().Lists(kFirst)) << "not while it is closed";
  EXPECT_EQ(thread_->Allocate(kFirst), nullptr);
  ASSERT_TRUE(slab().Open());
  EXPECT_FALSE(Serves(kFirst));
  slab().CheckInvariants();
}

TEST_F(CpuSlabTest, EveryListedSizeIsServedByItsClass) {
  Open(10);
  SpinLockHolder holder(slab().lock());
  for (size_t size = kClassBySize.size(); size < CpuSlab::kListedSizes; size += 97) {
    slab().ListSizes(size);
    EXPECT_TRUE(Serves(size)) << size;
  }
}

TEST_F(CpuSlabTest, BuffersOf64KiBAreListed) {
  Open(10);
  SpinLockHolder holder(slab().lock());
  constexpr size_t kSize = size_t{64} << 10;
  slab().ListSizes(kSize);
  EXPECT_TRUE(slab().Lists(kSize));
  EXPECT_TRUE(Serves(kSize));
  ASSERT_TRUE(slab().Close());
  ASSERT_TRUE(slab().Open());
  EXPECT_FALSE(Serves(kSize));
}

TEST_F(CpuSlabTest, RefusedFenceLeavesTheSlabOpen) {
  Open(5);
  ASSERT_TRUE(thread_->Push(kClass, pool_.Take()));
  SpinLockHolder holder(slab().lock());
  TestFence::refused = 1;
  EXPECT_FALSE(slab().Close());
  EXPECT_EQ(slab().state(), SlabState::kOpen);
  slab().CheckInvariants();
  EXPECT_NE(thread_->Pop(kClass), nullptr);
  EXPECT_TRUE(slab().Close());
}

TEST_F(CpuSlabTest, DrainHandsOutEverythingInOrder) {
  Open(1000);
  std::map<uint8_t, std::vector<void*>> expected;
  for (auto& [c, pool, count] : {std::tuple<uint8_t, ObjectPool&, int>{kSmall, small_, 900},
                                 {kClass, pool_, 7},
                                 {kLargest, largest_, 2}}) {
    for (int i = 0; i < count; ++i) {
      expected[c].push_back(pool.Take());
      ASSERT_TRUE(thread_->Push(c, expected[c].back()));
    }
  }
  SpinLockHolder holder(slab().lock());
  ASSERT_TRUE(slab().Close());
  EXPECT_EQ(Drain(), expected);
  EXPECT_EQ(slab().CountObjects(kSmall), 0u);
  EXPECT_TRUE(Drain().empty());
  slab().CheckInvariants();

  TestFence::calls = 0;
  TestFence::refused = 1;
  EXPECT_FALSE(slab().Open());
  EXPECT_EQ(slab().state(), SlabState::kClosed);
  EXPECT_FALSE(thread_->Push(kClass, pool_.Take()));
  ASSERT_TRUE(slab().Open());
  EXPECT_EQ(TestFence::calls, 2) << "a changed top needs one";
  EXPECT_EQ(thread_->Pop(kClass), nullptr);
  EXPECT_TRUE(thread_->Push(kClass, pool_.Take()));
}

TEST_F(CpuSlabTest, CapacitySetOnAClosedSlabHoldsOnceItIsOpen) {
  Open(5);
  SpinLockHolder holder(slab().lock());
  ASSERT_TRUE(slab().Close());
  slab().SetCapacity(kClass, 1);
  slab().CheckInvariants();
  EXPECT_FALSE(thread_->Push(kClass, pool_.Take()));
  ASSERT_TRUE(slab().Open());
  EXPECT_TRUE(thread_->Push(kClass, pool_.Take()));
  EXPECT_FALSE(thread_->Push(kClass, pool_.Take()));
  slab().CheckInvariants();
}

TEST_F(CpuSlabTest, EveryClassHoldsAsManyAsItsMaximum) {
  Open(0);
  SpinLockHolder holder(slab().lock());
  int object = 0;
  for (size_t i = 1; i < kSizeClassCount; ++i) {
    const auto c = static_cast<uint8_t>(i);
    slab().SetCapacity(c, kMaxSlots[c]);
    while (thread_->PushBatch(c, std::vector<void*>(100, &object).data(), 100) != 0) continue;
    EXPECT_EQ(slab().CountObjects(c), kMaxSlots[c]);
  }
  slab().CheckInvariants();
  for (size_t c = 1; c < kSizeClassCount; ++c) {
    EXPECT_EQ(slab().CountObjects(static_cast<uint8_t>(c)), kMaxSlots[c]) << "regions overlap";
  }
}

TEST_F(CpuSlabTest, HoldsFindsWhatIsThere) {
  Open(5);
  void* object = pool_.Take();
  EXPECT_FALSE(slabs_.Holds(object, kClass));
  ASSERT_TRUE(thread_->Push(kClass, object));
  EXPECT_TRUE(slabs_.Holds(object, kClass));
  EXPECT_FALSE(slabs_.Holds(object, kSmall));
  EXPECT_FALSE(slabs_.slab(0).Holds(object, kClass));
  EXPECT_EQ(slabs_.CountObjects(kClass), 1u);
  thread_->Pop(kClass);
  EXPECT_FALSE(slabs_.Holds(object, kClass)) << "the slot is above the top";
}

TEST_F(CpuSlabTest, TooManySlabsAreRefused) {
  CpuSlabs slabs;
  EXPECT_FALSE(slabs.Reserve(static_cast<int>(kMaxSlabs) + 1, CpuIds::kCpuId, TestFence::Call));
  EXPECT_EQ(slabs.count(), 0);
}

int mmaps_allowed;

TEST_F(CpuSlabTest, ReserveFailsWhereMemoryCannotBeHad) {
  const SystemCalls saved = system_calls;
  system_calls.mmap = [](void* address, size_t bytes, int protection, int flags, int fd,
                         off_t offset) {
    if (mmaps_allowed-- <= 0) return MAP_FAILED;
    return real_system_calls.mmap(address, bytes, protection, flags, fd, offset);
  };
  for (int allowed : {0, 1}) {
    mmaps_allowed = allowed;
    CpuSlabs slabs;
    EXPECT_FALSE(slabs.Reserve(3, CpuIds::kCpuId, TestFence::Call));
    EXPECT_EQ(slabs.memory(), nullptr);
    EXPECT_EQ(slabs.count(), 0);
  }
  system_calls = saved;
}

rlim_t address_limit;

TEST_F(CpuSlabTest, ReserveLeavesMostOfALimitedAddressSpaceToTheHeap) {
  const SystemCalls saved = system_calls;
  system_calls.getrlimit = [](int resource, rlimit* limit) {
    limit->rlim_cur = resource == RLIMIT_AS ? address_limit : RLIM_INFINITY;
    return 0;
  };
  CpuSlabs slabs;
  address_limit = 8 * 3 * kSlabBytes - 1;
  EXPECT_FALSE(slabs.Reserve(3, CpuIds::kCpuId, TestFence::Call));
  EXPECT_EQ(slabs.count(), 0);
  address_limit = 8 * 3 * kSlabBytes;
  EXPECT_TRUE(slabs.Reserve(3, CpuIds::kCpuId, TestFence::Call));
  system_calls = saved;
}

TEST_F(CpuSlabTest, AbandonObjectsForgetsThemAndServesOn) {
  slab().AbandonObjects();  // unused
  EXPECT_EQ(slab().state(), SlabState::kUnused);
  Open(5);
  ASSERT_TRUE(thread_->Push(kClass, pool_.Take()));
  ASSERT_TRUE(thread_->Push(kClass, pool_.Take()));
  slab().AbandonObjects();
  EXPECT_EQ(slab().CountObjects(kClass), 0u);
  void* const object = pool_.Take();
  ASSERT_TRUE(thread_->Push(kClass, object));
  SpinLockHolder holder(slab().lock());
  slab().CheckInvariants();
  ASSERT_TRUE(slab().Close());
  EXPECT_EQ(Drain()[kClass], std::vector<void*>{object});
}

using CpuSlabDeathTest = CpuSlabTest;

TEST_F(CpuSlabDeathTest, InvariantsNoticeAnOverrun) {
  Open(5);
  auto* tops = reinterpret_cast<SlotWord*>(slabs_.memory() + kSlabBytes + TCM_TOP);
  tops[kClass] = kSlabBegin[kClass] + kMaxSlots[kClass] + 1U;
  SpinLockHolder holder(slab().lock());
  EXPECT_DEATH(slab().CheckInvariants(), "check failed");
}

TEST_F(CpuSlabDeathTest, InvariantsNoticeATopThatIsNoCopy) {
  Open(5);
  ASSERT_TRUE(thread_->Push(kClass, pool_.Take()));
  auto* tops = reinterpret_cast<SlotWord*>(slabs_.memory() + kSlabBytes + TCM_TOP);
  tops[kClass] += SlotWord{64} << TCM_INDEX_BITS;
  SpinLockHolder holder(slab().lock());
  ASSERT_TRUE(slab().Close());
  EXPECT_DEATH(slab().CheckInvariants(), "check failed");
}

}  // namespace
}  // namespace tcmalloc::testing
