// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/per_cpu/sections.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "cache/per_cpu/cpu_slabs.h"
#include "fakes/one_cpu.h"
#include "unit/cache/per_cpu/test_slabs.h"

namespace tcmalloc::testing {
namespace {

// On a real area the kernel may abort any section; on a fake one, which it does not know, none.
struct Config {
  CpuIds ids;
  bool real_area;
};

std::string NameOf(const ::testing::TestParamInfo<Config>& info) {
  return std::string(info.param.ids == CpuIds::kMmCid ? "MmCid" : "CpuId") +
         (info.param.real_area ? "Real" : "Fake");
}

// One thread with one id: bound to its CPU for as long as the test runs.
class SectionsTest : public ::testing::TestWithParam<Config> {
 protected:
  static constexpr size_t kSize = 64;
  static constexpr uint8_t kClass = kClassBySize[kSize];
  static constexpr uint32_t kCapacity = 100;

  SectionsTest() { sched_getaffinity(0, sizeof(old_cpus_), &old_cpus_); }
  ~SectionsTest() override {
    sched_setaffinity(0, sizeof(old_cpus_), &old_cpus_);
    TestFence::Reset();
  }

  void SetUp() override {
    const Config& config = GetParam();
    if (config.real_area && !Has(config.ids)) GTEST_SKIP() << RseqStateName(Support().state);
    ASSERT_TRUE(StayOnThisCpu());
    TestFence::real = config.real_area;
    fake_area_.cpu_id = fake_area_.mm_cid = 1;
    const int count = config.real_area ? Support().id_count : 2;
    ASSERT_TRUE(slabs_.Reserve(count, config.ids, TestFence::Call));
    thread_.emplace(slabs_, window_, config.ids,
                    config.real_area ? CurrentRseqArea() : &fake_area_);
    slow_calls = {};
  }

  CpuSlab& slab() { return slabs_.slab(thread_->id()); }

  void Open(uint32_t capacity = kCapacity) {
    SpinLockHolder holder(slab().lock());
    ASSERT_TRUE(slab().Initialize());
    slab().SetCapacity(kClass, capacity);
  }

  // Fills the slab with so many objects and returns them in their order.
  std::vector<void*> Fill(size_t count) {
    std::vector<void*> objects;
    for (size_t i = 0; i < count; ++i) {
      objects.push_back(pool_.Take());
      EXPECT_TRUE(thread_->Push(kClass, objects.back()));
    }
    return objects;
  }

  FakeWindow& window_ = FakeWindow::OfAllTests();
  ObjectPool pool_{window_, kClass, 200};
  CpuSlabs slabs_;
  RseqArea fake_area_;
  std::optional<SlabThread> thread_;

 private:
  cpu_set_t old_cpus_;
};

TEST_P(SectionsTest, AllocateReturnsWhatWasFreedLast) {
  Open();
  void* a = pool_.Take();
  void* b = pool_.Take();
  thread_->Deallocate(a);
  thread_->Deallocate(b);
  EXPECT_EQ(MarkOf(a), thread_->mark());
  EXPECT_EQ(slab().CountObjects(kClass), 2u);

  EXPECT_EQ(thread_->Allocate(kSize), b);
  EXPECT_EQ(thread_->Allocate(kSize), a);
  EXPECT_EQ(*static_cast<uint64_t*>(a), 0u);
  EXPECT_EQ(slab().CountObjects(kClass), 0u);
  EXPECT_EQ(slow_calls.allocations, 0);
  EXPECT_TRUE(slow_calls.deallocations.empty());
}

TEST_P(SectionsTest, AllocateClearsTheFirstWord) {
  Open();
  auto* object = static_cast<uint64_t*>(pool_.Take());
  object[0] = object[1] = UINT64_MAX;
  thread_->Deallocate(object);
  ASSERT_EQ(thread_->Allocate(kSize), object);
  EXPECT_EQ(object[0], 0u);
  EXPECT_EQ(object[1], UINT64_MAX);
}

TEST_P(SectionsTest, AllocateCountsItsBytes) {
  Open();
  Fill(3);
  const uint64_t before = thread_->clock().allocated_bytes();
  thread_->Allocate(kSize);
  thread_->Allocate(kSize - 5);
  EXPECT_EQ(thread_->clock().allocated_bytes(), before + kSize + kSize - 5);
}

TEST_P(SectionsTest, AllocateFromAnEmptySlabIsSlowAndCountsNothing) {
  Open();
  const uint64_t before = thread_->clock().allocated_bytes();
  EXPECT_EQ(thread_->Allocate(kSize), nullptr);
  EXPECT_EQ(slow_calls.allocations, 1);
  EXPECT_EQ(slow_calls.last_size, kSize);
  EXPECT_EQ(thread_->clock().allocated_bytes(), before);
}

TEST_P(SectionsTest, AllocateIsSlowWhenTheClockExpires) {
  Open();
  Fill(1);
  while (!thread_->clock().WouldExpire(kSize)) thread_->clock().Advance(kSize);
  const uint64_t before = thread_->clock().allocated_bytes();
  EXPECT_EQ(thread_->Allocate(kSize), nullptr);
  EXPECT_EQ(slow_calls.allocations, 1);
  EXPECT_EQ(thread_->clock().allocated_bytes(), before);
  EXPECT_EQ(slab().CountObjects(kClass), 1u);
}

// Both take the same way but for the slow path that they know.
TEST_P(SectionsTest, MallocIsAllocateWithTheSlowPathOfTheHeader) {
  Open();
  Fill(1);
  const uint64_t before = thread_->clock().allocated_bytes();
  void* object = thread_->Malloc(kSize);
  ASSERT_NE(object, nullptr);
  EXPECT_EQ(*static_cast<uint64_t*>(object), 0u);
  EXPECT_EQ(thread_->clock().allocated_bytes(), before + kSize);
  EXPECT_EQ(slow_calls.allocations, 0);
  for (const size_t size : {kSize, kClassBySize.size(), size_t{1} << 63, SIZE_MAX}) {
    EXPECT_EQ(thread_->Malloc(size), nullptr);
    EXPECT_EQ(slow_calls.last_size, size);
  }
  EXPECT_EQ(thread_->clock().allocated_bytes(), before + kSize);
}

TEST_P(SectionsTest, AllocateKnowsTheSizesOfTheTable) {
  Open();
  const uint64_t before = thread_->clock().allocated_bytes();
  for (const size_t size :
       {kClassBySize.size(), kClassBySize.size() + 1, size_t{4096},
        size_t{EventClock::kMeanInterval}, size_t{EventClock::kLongestInterval}, size_t{1} << 20,
        size_t{1} << 40, size_t{1} << 62, size_t{1} << 63, (size_t{1} << 63) + kSize,
        SIZE_MAX - (size_t{1} << 40), SIZE_MAX - kSlabBytes, SIZE_MAX - kSize, SIZE_MAX}) {
    EXPECT_EQ(thread_->Allocate(size), nullptr);
    EXPECT_EQ(slow_calls.last_size, size);
  }
  EXPECT_EQ(thread_->clock().allocated_bytes(), before);
  constexpr uint8_t kLast = kClassBySize.back();
  {
    SpinLockHolder holder(slab().lock());
    slab().SetCapacity(kLast, 1);
  }
  ObjectPool largest(window_, kLast, 1);
  void* object = largest.Take();
  thread_->Deallocate(object);
  EXPECT_EQ(thread_->Allocate(kClassBySize.size() - 1), object);
}

TEST_P(SectionsTest, EverySizeIsServedByItsClass) {
  Open();
  for (size_t size = 0; size < kClassBySize.size(); size += 7) {
    const uint8_t c = kClassBySize[size];
    {
      SpinLockHolder holder(slab().lock());
      slab().SetCapacity(c, 1);
    }
    ObjectPool one(window_, c, 1);
    void* object = one.Take();
    thread_->Deallocate(object);
    EXPECT_EQ(thread_->Allocate(size), object) << size;
  }
}

TEST_P(SectionsTest, DeallocateToAFullSlabIsSlow) {
  Open(2);
  Fill(2);
  void* object = pool_.Take();
  thread_->Deallocate(object);
  EXPECT_EQ(slow_calls.deallocations, std::vector<void*>{object});
  EXPECT_EQ(MarkOf(object), 0u);
  EXPECT_EQ(slab().CountObjects(kClass), 2u);
}

TEST_P(SectionsTest, DeallocateOfAMarkedObjectIsSlow) {
  Open();
  void* object = pool_.Take();
  thread_->Deallocate(object);
  thread_->Deallocate(object);
  EXPECT_EQ(slow_calls.deallocations, std::vector<void*>{object});
  EXPECT_EQ(slab().CountObjects(kClass), 1u);
}

TEST_P(SectionsTest, DeallocateRefusesWhatHasNoClass) {
  Open();
  Fill(1);
  char* object = static_cast<char*>(pool_.Take());
  auto* outside = reinterpret_cast<char*>(FakeWindow::kEndOfUserSpace);
  std::vector<void*> foreign = {nullptr,
                                object + 1,
                                object + 4,
                                object + 7,
                                outside,
                                reinterpret_cast<void*>(uint64_t{1} << 63),
                                reinterpret_cast<void*>(UINT64_MAX - 7),
                                &foreign};
  for (void* address : foreign) thread_->Deallocate(address);
  EXPECT_EQ(slow_calls.deallocations, foreign);
  EXPECT_EQ(slab().CountObjects(kClass), 1u);
}

TEST_P(SectionsTest, DeallocateBehindALowerLimitIsSlow) {
  Open();
  void* object = pool_.Take();
  thread_->lists->header.link_limit = static_cast<int64_t>(ReferenceTo(object));
  thread_->Deallocate(object);
  EXPECT_EQ(slow_calls.deallocations, std::vector<void*>{object});
  ++thread_->lists->header.link_limit;
  thread_->Deallocate(object);
  EXPECT_EQ(slab().CountObjects(kClass), 1u);
}

TEST_P(SectionsTest, PopAndPush) {
  Open(2);
  EXPECT_EQ(thread_->Pop(kClass), nullptr);
  void* a = pool_.Take();
  void* b = pool_.Take();
  SetMark(b, thread_->mark());
  EXPECT_TRUE(thread_->Push(kClass, a));
  EXPECT_TRUE(thread_->Push(kClass, b)) << "a mark is no reason to refuse";
  EXPECT_EQ(MarkOf(a), thread_->mark());
  EXPECT_FALSE(thread_->Push(kClass, pool_.Take()));
  EXPECT_EQ(thread_->Pop(kClass), b);
  EXPECT_EQ(*static_cast<uint64_t*>(b), 0u);
  EXPECT_EQ(thread_->Pop(kClass), a);
  EXPECT_EQ(thread_->Pop(kClass), nullptr);
}

TEST_P(SectionsTest, PopCountedCountsItsBytes) {
  Open();
  const std::vector<void*> objects = Fill(2);
  const uint64_t before = thread_->clock().allocated_bytes();
  EXPECT_EQ(thread_->PopCounted(kClass, kSize), objects[1]);
  EXPECT_EQ(*static_cast<uint64_t*>(objects[1]), 0u);
  EXPECT_EQ(thread_->PopCounted(kClass, kSize - 3), objects[0]);
  EXPECT_EQ(thread_->clock().allocated_bytes(), before + kSize + kSize - 3);
  EXPECT_EQ(thread_->PopCounted(kClass, kSize), nullptr) << "the slab is empty";
  EXPECT_EQ(thread_->clock().allocated_bytes(), before + kSize + kSize - 3);
}

// The clock is never negative, not even by a size that is a negative number.
TEST_P(SectionsTest, PopCountedRefusesWhatTheClockHasNotLeft) {
  Open();
  Fill(1);
  const uint64_t before = thread_->clock().allocated_bytes();
  EXPECT_EQ(thread_->PopCounted(kClass, EventClock::kLongestInterval + 1), nullptr);
  EXPECT_EQ(thread_->PopCounted(kClass, SIZE_MAX), nullptr);
  EXPECT_EQ(thread_->clock().allocated_bytes(), before);
  while (!thread_->clock().WouldExpire(kSize)) thread_->clock().Advance(kSize);
  EXPECT_EQ(thread_->PopCounted(kClass, kSize), nullptr);
  EXPECT_EQ(slab().CountObjects(kClass), 1u);
  EXPECT_FALSE(thread_->clock().WouldExpire(0));
}

TEST_P(SectionsTest, PopBatchTakesTheTopInTheOrderOfSlots) {
  Open();
  const std::vector<void*> objects = Fill(10);
  std::array<void*, 20> out{};
  ASSERT_EQ(thread_->PopBatch(kClass, out.data(), 4), 4u);
  EXPECT_TRUE(std::equal(out.begin(), out.begin() + 4, objects.begin() + 6));
  EXPECT_EQ(out[4], nullptr);
  EXPECT_EQ(MarkOf(out[0]), thread_->mark());
  ASSERT_EQ(thread_->PopBatch(kClass, out.data(), 20), 6u);
  EXPECT_TRUE(std::equal(out.begin(), out.begin() + 6, objects.begin()));
  EXPECT_EQ(thread_->PopBatch(kClass, out.data(), 20), 0u);
}

TEST_P(SectionsTest, PushBatchTakesTheFrontThatFits) {
  Open(10);
  Fill(3);
  std::array<void*, 9> in{};
  for (void*& object : in) object = pool_.Take();
  EXPECT_EQ(thread_->PushBatch(kClass, in.data(), 2), 2u);
  EXPECT_EQ(thread_->PushBatch(kClass, in.data() + 2, 7), 5u);
  EXPECT_EQ(MarkOf(in[0]), 0u) << "objects are not touched";
  EXPECT_EQ(thread_->PushBatch(kClass, in.data() + 7, 2), 0u);
  for (int i = 6; i >= 0; --i) EXPECT_EQ(thread_->Pop(kClass), in[static_cast<size_t>(i)]);
  EXPECT_EQ(slab().CountObjects(kClass), 3u);
}

TEST_P(SectionsTest, EmptyBatchesMoveNothing) {
  Open();
  Fill(1);
  void* object = nullptr;
  EXPECT_EQ(thread_->PopBatch(kClass, &object, 0), 0u);
  EXPECT_EQ(thread_->PushBatch(kClass, &object, 0), 0u);
  EXPECT_EQ(object, nullptr);
  EXPECT_EQ(slab().CountObjects(kClass), 1u);
}

TEST_P(SectionsTest, OnlyTheLowByteOfAClassCounts) {
  Open();
  const auto dirty = static_cast<uint32_t>(kClass) | 0xabcdef00u;
  const auto pop = reinterpret_cast<void* (*)(uint32_t, FastThread)>(
      reinterpret_cast<uintptr_t>(SectionsFor(GetParam().ids).pop));
  const std::vector<void*> objects = Fill(1);
  EXPECT_EQ(pop(dirty, thread_->lists.get()), objects[0]);
}

TEST_P(SectionsTest, CapacityLimitsWhatIsTakenIn) {
  Open(4);
  Fill(4);
  {
    SpinLockHolder holder(slab().lock());
    slab().SetCapacity(kClass, 1);
  }
  std::array<void*, 3> in = {pool_.Take(), pool_.Take(), pool_.Take()};
  EXPECT_FALSE(thread_->Push(kClass, in[0]));
  EXPECT_EQ(thread_->PushBatch(kClass, in.data(), 3), 0u);
  EXPECT_EQ(slab().CountObjects(kClass), 4u) << "a lower capacity takes nothing away";
  while (thread_->Pop(kClass) != nullptr) continue;
  EXPECT_EQ(thread_->PushBatch(kClass, in.data(), 3), 1u);
}

// A slab that nobody may use yet, or at present, is empty and full at once.
void ExpectRefusal(SlabThread& thread, uint8_t c, size_t size, ObjectPool& pool) {
  std::array<void*, 2> objects = {pool.Take(), pool.Take()};
  slow_calls = {};
  EXPECT_EQ(thread.Allocate(size), nullptr);
  EXPECT_EQ(slow_calls.allocations, 1);
  thread.Deallocate(objects[0]);
  EXPECT_EQ(slow_calls.deallocations, std::vector<void*>{objects[0]});
  EXPECT_EQ(thread.Pop(c), nullptr);
  EXPECT_FALSE(thread.Push(c, objects[0]));
  EXPECT_EQ(thread.PopBatch(c, objects.data(), 2), 0u);
  EXPECT_EQ(thread.PushBatch(c, objects.data(), 2), 0u);
}

TEST_P(SectionsTest, UnusedSlabRefuses) { ExpectRefusal(*thread_, kClass, kSize, pool_); }

TEST_P(SectionsTest, ClosedSlabRefuses) {
  Open();
  const std::vector<void*> objects = Fill(5);
  SpinLockHolder holder(slab().lock());
  ASSERT_TRUE(slab().Close());
  ExpectRefusal(*thread_, kClass, kSize, pool_);
  ASSERT_TRUE(slab().Open());
  EXPECT_EQ(thread_->Pop(kClass), objects[4]);
}

TEST_P(SectionsTest, ClosedEmptyAndFullSlabsRefuse) {
  Open(2);
  for (int filled = 0; filled <= 2; filled += 2) {
    SpinLockHolder holder(slab().lock());
    ASSERT_TRUE(slab().Close());
    ExpectRefusal(*thread_, kClass, kSize, pool_);
    ASSERT_TRUE(slab().Open());
    Fill(2 - static_cast<size_t>(filled));
  }
}

// The states in between, seen by sections that run inside the fences.
SlabThread* thread_in_fence;
ObjectPool* pool_in_fence;

TEST_P(SectionsTest, HalfInitializedSlabRefuses) {
  thread_in_fence = &*thread_;
  pool_in_fence = &pool_;
  TestFence::on_call = [] { ExpectRefusal(*thread_in_fence, kClass, kSize, *pool_in_fence); };
  Open();
  TestFence::on_call = nullptr;
  EXPECT_EQ(TestFence::calls, 2);
  Fill(1);
}

TEST_P(SectionsTest, SlabsOfOtherIdsAreNotTouched) {
  Open();
  Fill(5);
  for (int i = 0; i < slabs_.count(); ++i) {
    if (i == thread_->id()) continue;
    for (size_t c = 1; c < kSizeClassCount; ++c) {
      EXPECT_EQ(slabs_.slab(i).CountObjects(static_cast<uint8_t>(c)), 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Areas, SectionsTest,
                         ::testing::Values(Config{CpuIds::kMmCid, true},
                                           Config{CpuIds::kMmCid, false},
                                           Config{CpuIds::kCpuId, true},
                                           Config{CpuIds::kCpuId, false}),
                         NameOf);

}  // namespace
}  // namespace tcmalloc::testing
