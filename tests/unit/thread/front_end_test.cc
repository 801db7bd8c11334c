// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The choice between the front ends, alone and as the process's heap makes it, in a program whose
// malloc is another one.

#include "thread/front_end.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "fakes/thread_sanitizer.h"
#include "heap/heap.h"
#include "system/system_calls.h"
#include "system/topology.h"
#include "thread/current_thread.h"

namespace tcmalloc::testing {
namespace {

// As many CPUs as the test says.
class FrontEndChoiceTest : public ::testing::Test {
 protected:
  static constexpr int kCpus = 3;
  static constexpr int kMany = 16 * kCpus;

  void SetUp() override {
    system_calls.sched_getaffinity = [](pid_t, size_t bytes, void* mask) {
      ++masks_read;
      const uint64_t word = (uint64_t{1} << kCpus) - 1;
      std::memset(mask, 0, bytes);
      std::memcpy(mask, &word, sizeof(word));
      return static_cast<int>(sizeof(word));
    };
    masks_read = 0;
  }
  void TearDown() override { system_calls.sched_getaffinity = real_system_calls.sched_getaffinity; }

  void StartThreads(int count, bool available = true) {
    for (int i = 0; i < count; ++i) {
      decided_ = choice_.NoteStart([&] {
        ++tries_;
        return available;
      });
    }
  }
  // How many times an end turned the choice.
  int EndThreads(int count) {
    int turns = 0;
    for (int i = 0; i < count; ++i) turns += choice_.NoteEnd() ? 1 : 0;
    return turns;
  }
  std::string Describe(const RseqSupport& support = {}) const {
    Message message;
    choice_.Describe(support, message);
    return std::string(message.view());
  }

  static inline std::atomic<int> masks_read = 0;

  FrontEndChoice choice_;
  int tries_ = 0;
  bool decided_ = false;  // for the thread that started last
};

TEST_F(FrontEndChoiceTest, FewThreadsHaveTheirOwn) {
  StartThreads(kMany);
  EXPECT_EQ(choice_.wanted(), FrontEnd::kPerThread);
  EXPECT_EQ(tries_, 0) << "nothing is made before it is wanted";
  EXPECT_EQ(EndThreads(kMany), 0);
  EXPECT_LE(masks_read, 2) << "not one for each thread";
}

TEST_F(FrontEndChoiceTest, ManyThreadsShareThoseOfCpus) {
  StartThreads(kMany + 1);
  EXPECT_EQ(choice_.wanted(), FrontEnd::kPerCpu);
  StartThreads(100);
  EXPECT_EQ(choice_.wanted(), FrontEnd::kPerCpu);
  EXPECT_EQ(tries_, 1);
}

TEST_F(FrontEndChoiceTest, AsManyCpusAsItIsTold) {
  choice_.Configure(FrontEndOption::kAuto, [] { return 2; });
  StartThreads(32);
  EXPECT_EQ(choice_.wanted(), FrontEnd::kPerThread);
  StartThreads(1);
  EXPECT_EQ(choice_.wanted(), FrontEnd::kPerCpu);
  EXPECT_EQ(masks_read, 0);
}

TEST_F(FrontEndChoiceTest, NobodyAsksForFewThreads) {
  choice_.Configure(FrontEndOption::kAuto, [] { return ++masks_read; });
  StartThreads(16);
  EXPECT_EQ(masks_read, 0) << "too few for a single CPU";
}

TEST_F(FrontEndChoiceTest, FollowsTheNumberOfCpus) {
  choice_.SetUsableCpus(100);
  StartThreads(kMany - 1);
  choice_.SetUsableCpus(1);
  StartThreads(1);
  EXPECT_EQ(choice_.wanted(), FrontEnd::kPerCpu);
  choice_.SetUsableCpus(100);
  EXPECT_EQ(EndThreads(1), 1);
  EXPECT_EQ(choice_.wanted(), FrontEnd::kPerThread);
}

TEST_F(FrontEndChoiceTest, ThreadsThatEndedDoNotCount) {
  for (int i = 0; i < 1000; ++i) {
    StartThreads(1);
    EndThreads(1);
  }
  EXPECT_EQ(choice_.wanted(), FrontEnd::kPerThread);
}

// The two numbers lie apart, so that a few threads that come and go do not turn it each time.
TEST_F(FrontEndChoiceTest, TurnsBackWhenFewAreLeft) {
  StartThreads(kMany + 1);
  EXPECT_EQ(EndThreads(kMany + 1 - kMany / 2 - 1), 0);
  EXPECT_EQ(choice_.wanted(), FrontEnd::kPerCpu);
  EXPECT_EQ(EndThreads(1), 1);
  EXPECT_EQ(choice_.wanted(), FrontEnd::kPerThread);
  EXPECT_EQ(EndThreads(kMany / 2), 0);
}

TEST_F(FrontEndChoiceTest, TurnsAgainAndAgain) {
  for (int round = 0; round < 10; ++round) {
    StartThreads(kMany + 1);
    EXPECT_EQ(choice_.wanted(), FrontEnd::kPerCpu);
    EXPECT_EQ(EndThreads(kMany + 1), 1);
    EXPECT_EQ(choice_.wanted(), FrontEnd::kPerThread);
  }
  EXPECT_EQ(tries_, 1);
}

TEST_F(FrontEndChoiceTest, PerThreadWhateverTheNumber) {
  choice_.Configure(FrontEndOption::kPerThread);
  StartThreads(10 * kMany);
  EXPECT_EQ(choice_.wanted(), FrontEnd::kPerThread);
  EXPECT_EQ(tries_, 0);
  EXPECT_EQ(masks_read, 0);
  EXPECT_EQ(EndThreads(10 * kMany), 0);
}

TEST_F(FrontEndChoiceTest, PerCpuWhateverTheNumber) {
  choice_.Configure(FrontEndOption::kPerCpu);
  StartThreads(1);
  EXPECT_EQ(choice_.wanted(), FrontEnd::kPerCpu);
  EXPECT_EQ(EndThreads(1), 0);
  EXPECT_EQ(choice_.wanted(), FrontEnd::kPerCpu);
  StartThreads(1);
  EXPECT_EQ(tries_, 1);
}

TEST_F(FrontEndChoiceTest, WhatCannotBeHadIsTriedOnce) {
  for (FrontEndOption option : {FrontEndOption::kAuto, FrontEndOption::kPerCpu}) {
    choice_.Configure(option);
    StartThreads(10 * kMany, false);
    EXPECT_EQ(choice_.wanted(), FrontEnd::kPerThread);
    EXPECT_EQ(tries_, 1);
    EXPECT_EQ(EndThreads(10 * kMany), 0);
  }
}

// Threads that start while one of them tries.
TEST_F(FrontEndChoiceTest, NobodyGoesThereBeforeTheCachesAreMade) {
  choice_.Configure(FrontEndOption::kPerCpu);
  EXPECT_TRUE(choice_.NoteStart([&] {
    StartThreads(1);
    EXPECT_FALSE(decided_);
    EXPECT_EQ(choice_.wanted(), FrontEnd::kPerThread);
    return true;
  }));
  EXPECT_EQ(tries_, 0);
  EXPECT_EQ(choice_.wanted(), FrontEnd::kPerCpu);
  StartThreads(1);
  EXPECT_TRUE(decided_);
}

TEST_F(FrontEndChoiceTest, FewThreadsNeedNoDecision) {
  StartThreads(kMany);
  EXPECT_TRUE(decided_);
  EXPECT_TRUE(choice_.NoteStart([&] {
    EndThreads(2);
    StartThreads(1);
    EXPECT_TRUE(decided_);
    return true;
  }));
}

TEST_F(FrontEndChoiceTest, InAForkedChildNobodyIsTrying) {
  choice_.Configure(FrontEndOption::kPerCpu);
  EXPECT_TRUE(choice_.NoteStart([&] {
    choice_.ResetAfterFork(0);
    StartThreads(1);
    EXPECT_TRUE(decided_);
    return true;
  }));
  EXPECT_EQ(tries_, 1);
  choice_.ResetAfterFork(0);
  StartThreads(1);
  EXPECT_EQ(tries_, 1) << "what was decided stays";
}

TEST_F(FrontEndChoiceTest, ThreadsStartAndEndAtOnce) {
  constexpr int kThreads = 4;
  std::atomic<int> tries = 0;
  std::barrier start(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      for (int round = 0; round < 1000; ++round) {
        for (int j = 0; j <= kMany; ++j)
          static_cast<void>(choice_.NoteStart([&] { return ++tries == 1; }));
        for (int j = 0; j <= kMany; ++j) choice_.NoteEnd();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(tries, 1);
  StartThreads(kMany + 1);
  EXPECT_EQ(choice_.wanted(), FrontEnd::kPerCpu);
  EXPECT_EQ(EndThreads(kMany + 1), 1) << "every start has its end";
}

TEST_F(FrontEndChoiceTest, SaysWhatIsChosenAndWhy) {
  EXPECT_EQ(Describe(), "per thread, chosen by the number of threads");
  choice_.Configure(FrontEndOption::kPerThread);
  EXPECT_EQ(Describe(), "per thread");
}

TEST_F(FrontEndChoiceTest, SaysWhichNumbersTheCpusGoBy) {
  RseqSupport support = {.state = RseqState::kUsable, .ids = CpuIds::kMmCid, .has_mm_cid = true};
  StartThreads(kMany + 1);
  EXPECT_EQ(Describe(support), "per CPU, chosen by the number of threads; CPUs by mm_cid");
  support.ids = CpuIds::kCpuId;
  support.own_registration = true;
  EXPECT_EQ(Describe(support),
            "per CPU, chosen by the number of threads; CPUs by cpu_id, own registration of rseq");
  support.has_mm_cid = false;
  EXPECT_EQ(Describe(support),
            "per CPU, chosen by the number of threads; CPUs by cpu_id, for the kernel has no "
            "mm_cid, own registration of rseq");
}

TEST_F(FrontEndChoiceTest, SaysWhyCachesOfCpusCannotBeHad) {
  choice_.Configure(FrontEndOption::kPerCpu);
  StartThreads(1, false);
  for (RseqState state :
       {RseqState::kNoKernelSupport, RseqState::kForbidden, RseqState::kSelfTestFailed,
        RseqState::kNoMembarrier, RseqState::kBadIds}) {
    EXPECT_EQ(Describe({.state = state}),
              std::string("per thread; not per CPU: ") + RseqStateName(state));
  }
  EXPECT_EQ(Describe({.state = RseqState::kUsable}),
            "per thread; not per CPU: no memory for the caches");
}

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
                       ? heap.cpus().Allocate(current_cache->lists(), kClass, 64)
                       : current_cache->AllocateSlow(kClass, 64);
    LeaveSlowPath(entry);
    *static_cast<void**>(object) = object;
    return object;
  }
  static void Free(void* object) {
    EXPECT_EQ(*static_cast<void**>(object), object);
    *static_cast<void**>(object) = nullptr;
    const Entry entry = Enter();
    if (entry == Entry::kCpuCache) {
      heap.cpus().Deallocate(current_cache->lists(), object, kClass);
    } else {
      current_cache->FreeSlow(object, kClass);
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
      EXPECT_TRUE(current_cache->share().linked());
    }
    work();
    last_phase.arrive_and_wait();
    current_cache->CheckInvariants();
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
