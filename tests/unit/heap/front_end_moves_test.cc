// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Threads that change their front end on the process's heap, in a program whose malloc is another
// one.

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <thread>
#include <vector>

#include "fakes/current_cache.h"
#include "fakes/thread_sanitizer.h"
#include "heap/heap.h"
#include "system/topology.h"

namespace tcmalloc::testing {
namespace {

// The heap of this process, as malloc and free use it. Every block bears its address.
class HeapFrontEndTest : public ::testing::Test {
 protected:
  static constexpr uint8_t kClass = SizeClassFor(64);

  void SetUp() override {
    if (kThreadSanitizer) GTEST_SKIP() << "see fakes/thread_sanitizer.h";
    heap.EnsureInitialized();
  }

  // With a front end, which a thread has not while another one finds out which there are.
  static Entry Enter() {
    Entry entry = EnterSlowPath();
    for (; entry == Entry::kUncached; entry = EnterSlowPath()) {
      LeaveSlowPath(entry);
      std::this_thread::yield();
    }
    return entry;
  }
  static Entry EntryNow() {
    const Entry entry = Enter();
    LeaveSlowPath(entry);
    return entry;
  }
  static void* Allocate() {
    const Entry entry = Enter();
    void* object = entry == Entry::kCpuCache
                       ? heap.cpus().Allocate(CpuThread::Of(current_thread.header()), kClass, 64)
                       : CurrentCache()->AllocateSlow(kClass, 64);
    LeaveSlowPath(entry);
    *static_cast<void**>(object) = object;
    return object;
  }
  static void Free(void* object) {
    EXPECT_EQ(*static_cast<void**>(object), object);
    *static_cast<void**>(object) = nullptr;
    const Entry entry = Enter();
    if (entry == Entry::kCpuCache) {
      heap.cpus().Deallocate(CpuThread::Of(current_thread.header()), object, kClass);
    } else {
      CurrentCache()->FreeSlow(object, kClass);
    }
    LeaveSlowPath(entry);
  }
  static void FreeAll(std::vector<void*>& objects) {
    for (void* object : objects) Free(object);
    objects.clear();
  }
  static size_t ObjectsOut() { return heap.central(kClass).stats().allocated_objects; }
};

TEST_F(HeapFrontEndTest, ThreadsMoveToTheCachesOfCpusAndBack) {
  const auto few = static_cast<size_t>(UsableCpus());
  const size_t many = std::max<size_t>(16 * few, 40);
  heap.Shed(nullptr, Length(0));
  const size_t out = ObjectsOut();
  const size_t caches = heap.caches().stats().caches;
  const size_t cpu_threads = heap.cpus().stats().threads;
  // The first `few` threads outlive the others.
  std::barrier phase(static_cast<long>(many));
  std::barrier last_phase(static_cast<long>(few));
  const auto run = [&](size_t i) {
    std::vector<void*> objects;
    const auto work = [&] {
      for (int j = 0; j < 500; ++j) objects.push_back(Allocate());
      for (int j = 0; j < 300; ++j) {
        Free(objects.front());
        objects.erase(objects.begin());
      }
    };
    work();
    phase.arrive_and_wait();
    const bool usable = heap.rseq_support().state == RseqState::kUsable;
    const Entry expected = usable ? Entry::kCpuCache : Entry::kThreadCache;
    EXPECT_EQ(EntryNow(), expected);
    work();
    EXPECT_EQ(EntryNow(), expected);
    phase.arrive_and_wait();
    if (i == 0 && usable) {
      EXPECT_EQ(heap.cpus().stats().threads, cpu_threads + many);
      EXPECT_GT(heap.cpus().CountObjects(kClass), 0u);
      heap.caches().ForEach(
          [](const Cache& cache) { EXPECT_EQ(cache.CountObjects(kClass), 0u) << "retired"; });
      heap.cpus().CheckInvariants();
    }
    phase.arrive_and_wait();
    if (i >= few) return FreeAll(objects);
    while (heap.front_end().wanted() == FrontEnd::kPerCpu) std::this_thread::yield();
    EXPECT_EQ(EntryNow(), Entry::kThreadCache);
    {
      SpinLockHolder holder(heap.budget().lock());
      EXPECT_TRUE(CurrentCache()->share().linked());
    }
    work();
    last_phase.arrive_and_wait();
    CurrentCache()->CheckInvariants();
    heap.budget().CheckInvariants();
    FreeAll(objects);
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < many; ++i) threads.emplace_back(run, i);
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(heap.caches().stats().caches, caches);
  EXPECT_EQ(heap.cpus().stats().threads, cpu_threads);
  heap.Shed(nullptr, Length(0));
  EXPECT_EQ(heap.cpus().CountObjects(kClass), 0u);
  EXPECT_EQ(ObjectsOut(), out) << "nothing is lost";
  heap.budget().CheckInvariants();
  heap.cpus().CheckInvariants();
}

// Both of a thread's records go when it ends, whichever it used last, and are used again.
TEST_F(HeapFrontEndTest, RecordsOfThreadsThatMovedAreReused) {
  const auto many = static_cast<size_t>(16 * UsableCpus());
  const auto run_threads = [&] {
    std::barrier phase(static_cast<long>(many));
    std::vector<std::thread> threads;
    for (size_t i = 0; i < many; ++i) {
      threads.emplace_back([&] {
        Free(Allocate());
        phase.arrive_and_wait();
        Free(Allocate());
        phase.arrive_and_wait();
      });
    }
    for (std::thread& thread : threads) thread.join();
  };
  // Which front end the later ones begin with is chance.
  for (int i = 0; i < 10; ++i) run_threads();
  const size_t caches = heap.caches().stats().caches;
  const size_t used = heap.arena().stats().used_bytes;
  for (int i = 0; i < 10; ++i) run_threads();
  EXPECT_EQ(heap.caches().stats().caches, caches);
  EXPECT_EQ(heap.cpus().stats().threads, 0u);
  // At most one of each record for each thread.
  EXPECT_LE(heap.arena().stats().used_bytes - used, many * (sizeof(Cache) + sizeof(CpuThread)));
}

}  // namespace
}  // namespace tcmalloc::testing
