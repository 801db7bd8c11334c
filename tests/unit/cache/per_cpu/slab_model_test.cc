// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Random operations of a thread that moves between ids, and of whoever manages the slabs, compared
// with a list of objects for each slab and class. See replay.h.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cache/per_cpu/cpu_slabs.h"
#include "model/replay.h"
#include "unit/cache/per_cpu/test_slabs.h"

namespace tcmalloc::testing {
namespace {

class SlabMachine {
 public:
  enum Op : unsigned {
    kAllocate,
    kDeallocate,
    kPop,
    kPush,
    kPopBatch,
    kPushBatch,
    kMigrate,
    kSetCapacity,
    kClose,
    kDrain,
    kOpen,
    kRefuseFence
  };
  static constexpr const char* kNames[] = {"kAllocate", "kDeallocate", "kPop",     "kPush",
                                           "kPopBatch", "kPushBatch",  "kMigrate", "kSetCapacity",
                                           "kClose",    "kDrain",      "kOpen",    "kRefuseFence"};

  explicit SlabMachine(CpuIds ids) : ids_(ids) {
    TestFence::Reset();
    TestFence::real = false;
    EXPECT_TRUE(slabs_.Reserve(kSlabs, ids, TestFence::Call));
    thread_.emplace(slabs_, window_, ids, &area_);
    for (size_t i = 0; i < kClasses.size(); ++i) {
      pools_[i] = std::make_unique<ObjectPool>(window_, kClasses[i], kObjects);
    }
    Migrate(0);
  }
  ~SlabMachine() { TestFence::Reset(); }
  SlabMachine(const SlabMachine&) = delete;
  SlabMachine& operator=(const SlabMachine&) = delete;

  void Do(const Action& action) {
    const size_t k = action.a % kClasses.size();
    const int target = static_cast<int>(action.a / 8 % kSlabs);
    switch (action.op) {
      case kAllocate:
        return Allocate(k);
      case kDeallocate:
        return Deallocate(k);
      case kPop:
        return ExpectTop(k, thread_->Pop(kClasses[k]));
      case kPush:
        return Push(k);
      case kPopBatch:
        return PopBatch(k, static_cast<uint32_t>(action.b % kMostBatch));
      case kPushBatch:
        return PushBatch(k, static_cast<uint32_t>(action.b % kMostBatch));
      case kMigrate:
        return Migrate(static_cast<uint32_t>(target));
      case kSetCapacity:
        return SetCapacity(target, k, action.b);
      case kClose:
        return Close(target);
      case kDrain:
        return Drain(target);
      case kOpen:
        return Open(target);
      case kRefuseFence:
        TestFence::refused = 1;
    }
  }

  void CheckAll() {
    for (int i = 0; i < kSlabs; ++i) {
      CpuSlab& slab = slabs_.slab(i);
      SpinLockHolder holder(slab.lock());
      slab.CheckInvariants();
      ASSERT_EQ(slab.state(), model_[static_cast<size_t>(i)].state);
      for (size_t k = 0; k < kClasses.size(); ++k) {
        ASSERT_EQ(slab.CountObjects(kClasses[k]), model_[static_cast<size_t>(i)].objects[k].size());
        for (void* object : model_[static_cast<size_t>(i)].objects[k]) {
          ASSERT_TRUE(slab.Holds(object, kClasses[k]));
          ASSERT_EQ(MarkOf(object), thread_->mark());
        }
      }
    }
  }

  void Finish() {
    TestFence::refused = 0;
    for (int i = 0; i < kSlabs; ++i) {
      if (model_[static_cast<size_t>(i)].state == SlabState::kOpen) Close(i);
      Drain(i);
    }
    for (const auto& pool : pools_) ASSERT_EQ(pool->objects.size(), kObjects);
  }

 private:
  static constexpr int kSlabs = 3;
  static constexpr std::array<uint8_t, 3> kClasses = {kClassBySize[8], kClassBySize[64],
                                                      kClassBySize[1024]};
  static constexpr size_t kObjects = 4000;
  static constexpr uint32_t kMostBatch = 250;

  struct ModelSlab {
    SlabState state = SlabState::kUnused;
    std::array<std::vector<void*>, kClasses.size()> objects;
    std::array<size_t, kClasses.size()> capacity{};
  };

  ModelSlab& here() { return model_[static_cast<size_t>(thread_->id())]; }
  size_t Stock(size_t k) { return here().state == SlabState::kOpen ? here().objects[k].size() : 0; }
  size_t Room(size_t k) {
    const size_t count = here().objects[k].size();
    return here().state == SlabState::kOpen && count < here().capacity[k]
               ? here().capacity[k] - count
               : 0;
  }

  void ExpectTop(size_t k, void* object) {
    if (Stock(k) == 0) {
      ASSERT_EQ(object, nullptr);
      return;
    }
    ASSERT_EQ(object, here().objects[k].back());
    ASSERT_EQ(*static_cast<uint64_t*>(object), 0u);
    here().objects[k].pop_back();
    pools_[k]->objects.push_back(object);
  }

  void Allocate(size_t k) {
    slow_calls = {};
    const size_t before = Stock(k);
    const uint64_t counted = thread_->clock().allocated_bytes();
    const size_t size = kSizeClasses[kClasses[k]].size;
    void* object = thread_->Allocate(size);
    if (object == nullptr && before != 0) {
      // The clock has expired.
      ASSERT_EQ(slow_calls.allocations, 1);
      ASSERT_EQ(thread_->clock().allocated_bytes(), counted);
      thread_->clock().AdvanceSlow(size);
      return;
    }
    ASSERT_EQ(slow_calls.allocations, before == 0 ? 1 : 0);
    ASSERT_EQ(thread_->clock().allocated_bytes(), counted + (before == 0 ? 0 : size));
    ExpectTop(k, object);
  }

  void Deallocate(size_t k) {
    void* object = pools_[k]->Take();
    slow_calls = {};
    const bool taken = Room(k) != 0;
    SetMark(object, 0);
    thread_->Deallocate(object);
    ASSERT_EQ(slow_calls.deallocations.size(), taken ? 0u : 1u);
    (taken ? here().objects[k] : pools_[k]->objects).push_back(object);
  }

  void Push(size_t k) {
    void* object = pools_[k]->Take();
    const bool taken = Room(k) != 0;
    ASSERT_EQ(thread_->Push(kClasses[k], object), taken);
    (taken ? here().objects[k] : pools_[k]->objects).push_back(object);
  }

  void PopBatch(size_t k, uint32_t n) {
    std::array<void*, kMostBatch> out;
    const size_t expected = std::min<size_t>(n, Stock(k));
    ASSERT_EQ(thread_->PopBatch(kClasses[k], out.data(), n), expected);
    auto& objects = here().objects[k];
    ASSERT_TRUE(
        std::equal(objects.end() - static_cast<ptrdiff_t>(expected), objects.end(), out.begin()));
    objects.resize(objects.size() - expected);
    for (size_t i = 0; i < expected; ++i) pools_[k]->objects.push_back(out[i]);
  }

  void PushBatch(size_t k, uint32_t n) {
    std::vector<void*> in;
    for (uint32_t i = 0; i < n; ++i) {
      in.push_back(pools_[k]->Take());
      SetMark(in.back(), thread_->mark());
    }
    const size_t expected = std::min<size_t>(n, Room(k));
    ASSERT_EQ(thread_->PushBatch(kClasses[k], in.data(), n), expected);
    for (size_t i = 0; i < n; ++i) {
      (i < expected ? here().objects[k] : pools_[k]->objects).push_back(in[i]);
    }
  }

  void Migrate(uint32_t id) { (ids_ == CpuIds::kMmCid ? area_.mm_cid : area_.cpu_id) = id; }

  void SetCapacity(int i, size_t k, uint64_t pick) {
    if (model_[static_cast<size_t>(i)].state == SlabState::kUnused) return;
    const size_t capacity = pick % (kMaxSlots[kClasses[k]] + 1u);
    SpinLockHolder holder(slabs_.slab(i).lock());
    slabs_.slab(i).SetCapacity(kClasses[k], static_cast<uint32_t>(capacity));
    model_[static_cast<size_t>(i)].capacity[k] = capacity;
  }

  void Close(int i) {
    if (model_[static_cast<size_t>(i)].state != SlabState::kOpen) return;
    const bool refused = TestFence::refused > 0;
    SpinLockHolder holder(slabs_.slab(i).lock());
    ASSERT_EQ(slabs_.slab(i).Close(), !refused);
    if (!refused) model_[static_cast<size_t>(i)].state = SlabState::kClosed;
  }

  void Drain(int i) {
    if (model_[static_cast<size_t>(i)].state != SlabState::kClosed) return;
    SpinLockHolder holder(slabs_.slab(i).lock());
    slabs_.slab(i).Drain([this, i](uint8_t c, void* const* objects, uint32_t n) {
      const size_t k =
          static_cast<size_t>(std::find(kClasses.begin(), kClasses.end(), c) - kClasses.begin());
      ASSERT_LT(k, kClasses.size());
      ASSERT_EQ(std::vector<void*>(objects, objects + n),
                model_[static_cast<size_t>(i)].objects[k]);
      pools_[k]->objects.insert(pools_[k]->objects.end(), objects, objects + n);
      model_[static_cast<size_t>(i)].objects[k].clear();
    });
    for (const auto& objects : model_[static_cast<size_t>(i)].objects) ASSERT_TRUE(objects.empty());
  }

  // Opens a slab that was closed or never used.
  void Open(int i) {
    CpuSlab& slab = slabs_.slab(i);
    SpinLockHolder holder(slab.lock());
    if (slab.state() == SlabState::kOpen) return;
    const int calls = TestFence::calls;
    const bool refused = TestFence::refused > 0;
    const bool opened = slab.state() == SlabState::kUnused ? slab.Initialize() : slab.Open();
    ASSERT_EQ(opened, !refused || TestFence::calls == calls);
    if (opened) model_[static_cast<size_t>(i)].state = SlabState::kOpen;
  }

  CpuIds ids_;
  FakeWindow window_;
  RseqArea area_;
  CpuSlabs slabs_;
  std::optional<SlabThread> thread_;
  std::array<std::unique_ptr<ObjectPool>, kClasses.size()> pools_;  // objects in no slab
  std::array<ModelSlab, kSlabs> model_;
};

class SlabModelTest : public ::testing::TestWithParam<CpuIds> {};

TEST_P(SlabModelTest, RandomActions) {
  for (const uint64_t seed : ModelSeeds()) {
    SCOPED_TRACE(seed);
    SlabMachine machine(GetParam());
    const Actions actions = RandomActions(seed, 4000, {10, 15, 10, 15, 5, 10, 10, 10, 2, 1, 5, 1},
                                          {15, 10, 15, 10, 10, 5, 10, 5, 3, 3, 5, 1});
    if (!Replay(machine, actions)) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Ids, SlabModelTest, ::testing::Values(CpuIds::kMmCid, CpuIds::kCpuId));

}  // namespace
}  // namespace tcmalloc::testing
