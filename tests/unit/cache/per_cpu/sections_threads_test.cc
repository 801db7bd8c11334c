// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// More threads than CPUs exchange objects through slabs, which are opened, resized, closed and
// drained meanwhile, while signal handlers use them too. Whoever gets an object from a slab claims
// it by compare-and-swap of its owner: an object that is lost, or handed out twice, is noticed.

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "cache/per_cpu/cpu_slabs.h"
#include "system/topology.h"
#include "unit/cache/per_cpu/object_store.h"
#include "unit/cache/per_cpu/test_slabs.h"

namespace tcmalloc::testing {
namespace {

constexpr size_t kSize = 64;
constexpr uint8_t kClass = kClassBySize[kSize];
constexpr int kSignals = 100;  // after each change of a slab
constexpr auto kDuration = std::chrono::milliseconds(1500);
constexpr auto kPatience = std::chrono::seconds(60);  // for threads that get no turn

// An object: the first word belongs to the slabs.
struct Block {
  uint64_t mark;
  std::atomic<uint32_t> owner;
};
static_assert(sizeof(Block) <= kSize);
constexpr uint32_t kNobody = 0;
constexpr uint32_t kNew = 1;
constexpr uint32_t kDrainer = 2;
constexpr uint32_t kFirstThread = 3;

std::atomic<int> wrong_owners = 0;

void Change(void* object, uint32_t from, uint32_t to) {
  if (!static_cast<Block*>(object)->owner.compare_exchange_strong(from, to)) ++wrong_owners;
}

struct Shared {
  CpuIds ids = CpuIds::kCpuId;
  FakeWindow window;
  CpuSlabs slabs;
  ObjectStore store;  // of objects that nobody has
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> moved = 0;
  std::atomic<uint64_t> aborts = 0;
  std::atomic<uint64_t> handled = 0;  // objects that signal handlers took out and put back
};

class Worker {
 public:
  Worker(Shared& shared, uint32_t tag)
      : shared_(shared),
        tag_(tag),
        random_(tag),
        thread_(shared.slabs, shared.window, shared.ids, CurrentRseqArea()) {
    current_ = this;
  }
  ~Worker() {
    current_ = nullptr;
    shared_.moved += moved_;
    shared_.aborts += thread_.aborts();
    for (void* object : mine_) GiveUp(object);
    if (held_by_handler_ != nullptr) GiveUp(held_by_handler_);
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void Run() {
    while (!shared_.stop.load(std::memory_order_relaxed)) Step();
  }

  // Takes an object out, or puts the one that it has back.
  static void OnSignal(int) {
    if (current_ != nullptr) current_->Handle();
  }

 private:
  static constexpr size_t kMostMine = 1000;
  static constexpr uint32_t kBatch = kSizeClasses[kClass].batch;

  void Step() {
    switch (random_() % 8) {
      case 0:
      case 1:
        if (mine_.size() < kMostMine) Got(thread_.Allocate(kSize));
        break;
      case 2:
        if (mine_.size() < kMostMine) Got(thread_.Pop(kClass));
        break;
      case 3:
      case 4:
        if (!mine_.empty()) Deallocate(Leave());
        break;
      case 5:
        if (!mine_.empty()) Push(Leave());
        break;
      case 6:
        if (mine_.size() < kMostMine) PopBatch();
        break;
      case 7:
        if (mine_.size() > kBatch) PushBatch();
        if (mine_.empty()) TakeNew();
    }
  }

  // Interrupts any of the others.
  void Handle() {
    if (held_by_handler_ == nullptr) {
      held_by_handler_ = thread_.Pop(kClass);
      if (held_by_handler_ != nullptr) Change(held_by_handler_, kNobody, tag_);
      return;
    }
    Change(held_by_handler_, tag_, kNobody);
    if (thread_.Push(kClass, held_by_handler_)) {
      held_by_handler_ = nullptr;
      ++shared_.handled;
    } else {
      Change(held_by_handler_, kNobody, tag_);
    }
  }

  void Got(void* object) {
    if (object == nullptr) return;
    Change(object, kNobody, tag_);
    mine_.push_back(object);
    ++moved_;
  }
  // An object that is nobody's, for a slab. Whoever claims it sees the mark.
  void* Leave(uint32_t mark = 0) {
    std::swap(mine_[random_() % mine_.size()], mine_.back());
    void* object = mine_.back();
    mine_.pop_back();
    SetMark(object, mark);
    Change(object, tag_, kNobody);
    return object;
  }
  void Keep(void* object) {
    Change(object, kNobody, tag_);
    mine_.push_back(object);
  }
  void GiveUp(void* object) {
    Change(object, tag_, kNew);
    shared_.store.Put(object);
  }
  void TakeNew() {
    void* object = shared_.store.Take();
    if (object == nullptr) return;
    Change(object, kNew, tag_);
    mine_.push_back(object);
  }

  void Deallocate(void* object) {
    slow_calls.deallocations.clear();
    thread_.Deallocate(object);
    for (void* refused : slow_calls.deallocations) Keep(refused);
    if (slow_calls.deallocations.empty()) ++moved_;
  }
  void Push(void* object) {
    if (!thread_.Push(kClass, object)) Keep(object);
  }
  void PopBatch() {
    std::array<void*, kBatch> out;
    const uint32_t n = thread_.PopBatch(kClass, out.data(), kBatch);
    for (uint32_t i = 0; i < n; ++i) Got(out[i]);
  }
  void PushBatch() {
    std::array<void*, kBatch> in;
    for (void*& object : in) object = Leave(thread_.mark());
    const uint32_t n = thread_.PushBatch(kClass, in.data(), kBatch);
    for (uint32_t i = n; i < kBatch; ++i) Keep(in[i]);
  }

  static inline thread_local Worker* current_ = nullptr;

  Shared& shared_;
  const uint32_t tag_;
  std::minstd_rand random_;
  SlabThread thread_;
  std::vector<void*> mine_;
  void* held_by_handler_ = nullptr;
  uint64_t moved_ = 0;
};

// Empties a closed slab into the store.
size_t Drain(Shared& shared, CpuSlab& slab) TCMALLOC_REQUIRES(slab.lock()) {
  size_t drained = 0;
  slab.Drain([&](uint8_t c, void* const* objects, uint32_t n) {
    EXPECT_EQ(c, kClass);
    for (uint32_t i = 0; i < n; ++i) {
      Change(objects[i], kNobody, kDrainer);
      EXPECT_EQ(MarkOf(objects[i]), FreeMarkBy(shared.ids).value());
      Change(objects[i], kDrainer, kNew);
      shared.store.Put(objects[i]);
    }
    drained += n;
  });
  return drained;
}

struct ManagerCounts {
  uint64_t closed = 0;
  uint64_t drained = 0;
};

// Acts as the owner of the slabs on one of them, from whatever CPU it runs on.
void Manage(Shared& shared, CpuSlab& slab, uint32_t choice, ManagerCounts& counts) {
  SpinLockHolder holder(slab.lock());
  if (slab.state() == SlabState::kUnused) {
    ASSERT_TRUE(slab.Initialize());
    slab.SetCapacity(kClass, kMaxSlots[kClass]);
    return;
  }
  if (choice % 4 != 0) {
    slab.SetCapacity(kClass, choice % kMaxSlots[kClass]);
    return;
  }
  ASSERT_TRUE(slab.Close());
  ++counts.closed;
  slab.CheckInvariants();
  if (choice % 8 == 0) counts.drained += Drain(shared, slab);
  ASSERT_TRUE(slab.Open());
}

class SectionsThreadsTest : public ::testing::TestWithParam<CpuIds> {};

TEST_P(SectionsThreadsTest, EveryObjectHasOneOwner) {
  if (!Has(GetParam())) GTEST_SKIP() << RseqStateName(Support().state);
  constexpr size_t kObjects = 10000;
  Shared shared;
  shared.ids = GetParam();
  ASSERT_TRUE(shared.slabs.Reserve(Support().id_count, GetParam(), FenceRseq));
  ObjectPool pool(shared.window, kClass, kObjects);
  for (void* object : pool.objects) {
    static_cast<Block*>(object)->owner = kNew;
    shared.store.Put(object);
  }
  wrong_owners = 0;
  struct sigaction action = {};
  struct sigaction old_action;
  action.sa_handler = Worker::OnSignal;
  action.sa_flags = SA_RESTART;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &old_action), 0);

  const uint32_t thread_count = 4 * std::thread::hardware_concurrency();
  std::atomic<uint32_t> may_end = 0;
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < thread_count; ++i) {
    threads.emplace_back([&shared, &may_end, i] {
      Worker(shared, kFirstThread + i).Run();
      // A thread that is gone can be sent no signal.
      while (may_end == 0) std::this_thread::yield();
    });
  }

  ManagerCounts counts;
  std::minstd_rand random(1);
  // The kernel's numbers end far above those of the CPUs that there are.
  const auto used_slabs = static_cast<unsigned long>(PossibleCpus());
  const auto end = std::chrono::steady_clock::now() + kDuration;
  const auto give_up = end + kPatience;
  for (auto now = end - kDuration; now < end || (counts.drained == 0 && now < give_up);
       now = std::chrono::steady_clock::now()) {
    CpuSlab& slab = shared.slabs.slab(static_cast<int>(random() % used_slabs));
    Manage(shared, slab, static_cast<uint32_t>(random() >> 4), counts);
    for (int i = 0; i < kSignals; ++i) {
      pthread_kill(threads[random() % threads.size()].native_handle(), SIGUSR1);
    }
  }
  shared.stop = true;
  may_end = 1;
  for (std::thread& thread : threads) thread.join();
  sigaction(SIGUSR1, &old_action, nullptr);

  for (int i = 0; i < shared.slabs.count(); ++i) {
    CpuSlab& slab = shared.slabs.slab(i);
    SpinLockHolder holder(slab.lock());
    if (slab.state() != SlabState::kOpen) continue;
    ASSERT_TRUE(slab.Close());
    Drain(shared, slab);
  }
  EXPECT_EQ(wrong_owners, 0);
  EXPECT_EQ(shared.store.size(), kObjects);
  for (void* object = shared.store.Take(); object != nullptr; object = shared.store.Take()) {
    Change(object, kNew, kNobody);
  }
  EXPECT_EQ(wrong_owners, 0) << "an object was there twice";
  EXPECT_GT(shared.moved, 0u);
  EXPECT_GT(shared.handled, 0u);
  EXPECT_GT(counts.closed, 0u);
  EXPECT_GT(counts.drained, 0u);
  RecordProperty("moved", std::to_string(shared.moved));
  RecordProperty("aborts", std::to_string(shared.aborts));
}

INSTANTIATE_TEST_SUITE_P(Ids, SectionsThreadsTest,
                         ::testing::Values(CpuIds::kMmCid, CpuIds::kCpuId), [](const auto& ids) {
                           return ids.param == CpuIds::kMmCid ? "MmCid" : "CpuId";
                         });

}  // namespace
}  // namespace tcmalloc::testing
