// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// More threads than CPUs exchange objects through the caches of CPUs, which are flushed meanwhile
// and have too little budget. Whoever gets an object claims it by compare-and-swap of its owner: an
// object that is lost, or handed out twice, is noticed.

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "fakes/thread_sanitizer.h"
#include "unit/cache/per_cpu/object_store.h"
#include "unit/cache/per_cpu/test_cpu_cache.h"

namespace tcmalloc::testing {
namespace {

constexpr size_t kSizes[] = {16, 64, 64, 64, 256, 1024, 4096, 32 << 10};
constexpr auto kDuration = std::chrono::milliseconds(1000);
constexpr uint32_t kNobody = 0;

// The first word belongs to the caches.
struct Block {
  uint64_t link;
  std::atomic<uint32_t> owner;
};
static_assert(sizeof(Block) <= 16);

struct Shared {
  Shared(CpuIds ids, size_t bytes_per_cpu) : cpus(ids, Support().id_count, bytes_per_cpu) {}

  TestCpus cpus;
  ObjectStore store;  // of objects that one thread allocated, for others to free
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> operations = 0;
  std::atomic<int> wrong_owners = 0;
};

class Worker {
 public:
  Worker(Shared& shared, uint32_t tag) : shared_(shared), tag_(tag), random_(tag) {}

  void Run() {
    while (!shared_.stop.load(std::memory_order_relaxed)) {
      // Threads end and begin.
      TestCpuThread thread(shared_.cpus);
      ASSERT_NE(thread.thread(), nullptr);
      for (int i = 0; i < kLife && !shared_.stop.load(std::memory_order_relaxed); ++i) Step(thread);
    }
    TestCpuThread thread(shared_.cpus);
    while (!mine_.empty()) Free(thread, Leave());
    shared_.operations += operations_;
  }

 private:
  static constexpr int kLife = 20'000;
  static constexpr size_t kMostMine = 500;
  static constexpr size_t kMostStored = 20'000;

  void Change(void* object, uint32_t from, uint32_t to) {
    if (!static_cast<Block*>(object)->owner.compare_exchange_strong(from, to)) {
      ++shared_.wrong_owners;
    }
  }
  void* Leave() {
    std::swap(mine_[random_() % mine_.size()], mine_.back());
    void* object = mine_.back();
    mine_.pop_back();
    return object;
  }

  void Step(TestCpuThread& thread) {
    ++operations_;
    const size_t pick = random_() % 16;
    if (pick == 0 && mine_.size() > 10) return Give();
    if (pick == 1) return Receive(thread);
    // In turns the thread mostly allocates and mostly frees.
    const bool grow = operations_ / 1000 % 2 == 0;
    if (mine_.empty() || (mine_.size() < kMostMine && (pick < 6 || (grow && pick < 12)))) {
      Allocate(thread);
    } else {
      Free(thread, Leave());
    }
  }

  void Allocate(TestCpuThread& thread) {
    void* object = thread.Allocate(SizeClassFor(kSizes[random_() % std::size(kSizes)]));
    Change(object, kNobody, tag_);
    mine_.push_back(object);
  }
  void Free(TestCpuThread& thread, void* object) {
    Change(object, tag_, kNobody);
    thread.Free(object);
  }
  void Give() {
    if (shared_.store.size() < kMostStored) shared_.store.Put(Leave());
  }
  void Receive(TestCpuThread& thread) {
    void* object = shared_.store.Take();
    if (object == nullptr) return;
    static_cast<Block*>(object)->owner.store(tag_, std::memory_order_relaxed);
    Free(thread, object);
  }

  Shared& shared_;
  const uint32_t tag_;
  std::minstd_rand random_;
  std::vector<void*> mine_;
  uint64_t operations_ = 0;
};

struct Config {
  CpuIds ids;
  size_t bytes_per_cpu;
};

class CpuCacheThreadsTest : public ::testing::TestWithParam<Config> {};

// Keeps moving between CPUs, and the caches from settling.
void Disturb(Shared& shared) {
  cpu_set_t usable;
  ASSERT_EQ(sched_getaffinity(0, sizeof(usable), &usable), 0);
  std::minstd_rand random(99);
  TestCpuThread thread(shared.cpus);
  const auto end = std::chrono::steady_clock::now() + kDuration;
  while (std::chrono::steady_clock::now() < end) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(random() % CPU_SETSIZE, &one);
    if (CPU_AND(&one, &one, &usable); CPU_COUNT(&one) == 0) continue;
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    for (size_t size : kSizes) thread.Free(thread.Allocate(SizeClassFor(size)));
    if (random() % 4 == 0) shared.cpus.cache.Flush();
    shared.cpus.cache.CheckInvariants();
  }
  sched_setaffinity(0, sizeof(usable), &usable);
}

TEST_P(CpuCacheThreadsTest, EveryObjectHasOneOwner) {
  if (!Has(GetParam().ids)) GTEST_SKIP() << RseqStateName(Support().state);
  if (kThreadSanitizer) GTEST_SKIP() << "see fakes/thread_sanitizer.h";
  TestFence::Reset();
  Shared shared(GetParam().ids, GetParam().bytes_per_cpu);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 4 * std::thread::hardware_concurrency(); ++i) {
    threads.emplace_back([&shared, i] { Worker(shared, i + 1).Run(); });
  }
  Disturb(shared);
  shared.stop = true;
  for (std::thread& thread : threads) thread.join();
  {
    TestCpuThread thread(shared.cpus);
    while (void* object = shared.store.Take()) thread.Free(object);
  }
  EXPECT_EQ(shared.wrong_owners, 0);
  EXPECT_GT(shared.operations, 0u);
  EXPECT_GT(TestFence::calls, 0);
  EXPECT_EQ(shared.cpus.cache.stats().threads, 0u);
  shared.cpus.cache.CheckInvariants();
  EXPECT_EQ(shared.cpus.ObjectsOut(), shared.cpus.CachedObjects());
  shared.cpus.cache.Flush();
  EXPECT_EQ(shared.cpus.ObjectsOut(), 0u);
  RecordProperty("operations", std::to_string(shared.operations));
}

INSTANTIATE_TEST_SUITE_P(Configs, CpuCacheThreadsTest,
                         ::testing::Values(Config{CpuIds::kMmCid, size_t{3} << 19},
                                           Config{CpuIds::kMmCid, size_t{128} << 10},
                                           Config{CpuIds::kCpuId, size_t{128} << 10}));

}  // namespace
}  // namespace tcmalloc::testing
