// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "base/spin_lock.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace tcmalloc {
namespace {

constinit SpinLock constant_lock(LockRank::kPageHeap);
static_assert(std::is_trivially_destructible_v<SpinLock>);
static_assert(sizeof(SpinLock) <= 8);

bool IsFree(SpinLock& lock) TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
  const bool taken = lock.TryLock();
  if (taken) lock.Unlock();
  return taken;
}

TEST(SpinLockTest, IsFreeBeforeItIsTakenAndAfterwards) {
  EXPECT_TRUE(IsFree(constant_lock));
  constant_lock.Lock();
  std::thread([] { EXPECT_FALSE(IsFree(constant_lock)); }).join();
  constant_lock.Unlock();
  EXPECT_TRUE(IsFree(constant_lock));
}

TEST(SpinLockTest, TryLockFailsWhereAnotherThreadHoldsIt) {
  SpinLock lock(LockRank::kPageHeap);
  bool first = lock.TryLock();
  ASSERT_TRUE(first);
  bool second = true;
  std::thread([&]() TCMALLOC_NO_THREAD_SAFETY_ANALYSIS { second = lock.TryLock(); }).join();
  EXPECT_FALSE(second);
  if (first) lock.Unlock();
  EXPECT_TRUE(IsFree(lock));
}

TEST(SpinLockTest, ExcludesOtherThreads) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 20'000;
  SpinLock lock(LockRank::kPageHeap);
  int64_t counter = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        SpinLockHolder holder(lock);
        ++counter;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter, int64_t{kThreads} * kRounds);
}

bool IsAsleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(") ");
  return name_end != std::string::npos && text[name_end + 2] == 'S';
}

std::atomic<int> interruptions{0};

// Threads that wait for one lock, which the test holds.
class SleepersTest : public ::testing::Test {
 protected:
  void Start(int count) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this] {
        errno = ENOENT;
        ids_[started_.fetch_add(1)] = ::gettid();
        SpinLockHolder holder(lock_);
        if (errno != ENOENT) ++errors_;
      });
    }
  }
  void AwaitSleep() {
    for (size_t i = 0; i < threads_.size(); ++i) {
      while (ids_[i] == 0 || !IsAsleep(ids_[i])) std::this_thread::yield();
    }
  }
  void Join() {
    for (std::thread& thread : threads_) thread.join();
    EXPECT_EQ(errors_, 0);
    EXPECT_TRUE(IsFree(lock_));
  }

  SpinLock lock_{LockRank::kPageHeap};
  std::vector<std::thread> threads_;

 private:
  std::atomic<size_t> started_{0};
  std::atomic<pid_t> ids_[16] = {};
  std::atomic<int> errors_{0};
};

TEST_F(SleepersTest, AllAreWoken) {
  lock_.Lock();
  Start(8);
  AwaitSleep();
  lock_.Unlock();
  Join();
}

// A signal ends the wait in the kernel with an error, which the waiting thread must not see.
TEST_F(SleepersTest, SignalsChangeNothing) {
  struct sigaction action = {};
  struct sigaction saved = {};
  action.sa_handler = [](int) { ++interruptions; };
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &saved), 0);
  lock_.Lock();
  Start(4);
  AwaitSleep();
  for (std::thread& thread : threads_) {
    const int before = interruptions;
    ::pthread_kill(thread.native_handle(), SIGUSR1);
    while (interruptions == before) std::this_thread::yield();
  }
  AwaitSleep();
  lock_.Unlock();
  Join();
  ASSERT_EQ(::sigaction(SIGUSR1, &saved, nullptr), 0);
}

TEST(SpinLockTest, CountsInDebugBuildsOnly) {
  SpinLock lock(LockRank::kPageHeap);
  const LockCounts before = CurrentLockCounts();
  for (int i = 0; i < 5; ++i) {
    SpinLockHolder holder(lock);
  }
  const LockCounts after = CurrentLockCounts();
  EXPECT_EQ(after.acquisitions - before.acquisitions, kDebugChecks ? 5u : 0u);
  EXPECT_EQ(after.contentions, before.contentions);
}

TEST(SpinLockTest, CountsEachRankByItself) {
  SpinLock lock(LockRank::kPageHeap);
  const LockCounts before = CurrentLockCounts(LockRank::kPageHeap);
  const LockCounts others = CurrentLockCounts(LockRank::kSystem);
  for (int i = 0; i < 5; ++i) {
    SpinLockHolder holder(lock);
  }
  EXPECT_EQ(CurrentLockCounts(LockRank::kPageHeap).acquisitions - before.acquisitions,
            kDebugChecks ? 5u : 0u);
  EXPECT_EQ(CurrentLockCounts(LockRank::kSystem).acquisitions, others.acquisitions);
}

TEST(SpinLockTest, RanksUpwardsAreAllowedInAnyOrderOfRelease) {
  SpinLock low(LockRank::kTransferCache);
  SpinLock high(LockRank::kPageHeap);
  low.Lock();
  high.Lock();
  low.Unlock();
  high.Unlock();
  high.Lock();
  high.Unlock();
  low.Lock();
  low.Unlock();
}

// Takes a lock of a lower rank while it holds one of a higher rank.
void TakeInWrongOrder() TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
  SpinLock low(LockRank::kTransferCache);
  SpinLock high(LockRank::kPageHeap);
  high.Lock();
  low.Lock();
}

TEST(SpinLockDeathTest, WrongOrderIsNoticedInDebugBuilds) {
  if (!kDebugChecks) GTEST_SKIP() << "ranks are not checked in this build";
  EXPECT_DEATH(TakeInWrongOrder(), "check failed");
}

void WaitForSecondOfOneRank() TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
  SpinLock first(LockRank::kTransferCache);
  SpinLock second(LockRank::kTransferCache);
  first.Lock();
  second.Lock();
}
void TrySecondOfOneRank() TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
  SpinLock first(LockRank::kTransferCache);
  SpinLock second(LockRank::kTransferCache);
  first.Lock();
  static_cast<void>(second.TryLock());
}

TEST(SpinLockDeathTest, TwoLocksOfOneRankAreRefusedInDebugBuilds) {
  if (!kDebugChecks) GTEST_SKIP() << "ranks are not checked in this build";
  EXPECT_DEATH(WaitForSecondOfOneRank(), "check failed");
  EXPECT_DEATH(TrySecondOfOneRank(), "check failed");
}

TEST(SpinLockTest, LocksOfOneRankMayBeHeldOneAfterTheOther) {
  SpinLock first(LockRank::kTransferCache);
  SpinLock second(LockRank::kTransferCache);
  for (SpinLock* lock : {&first, &second, &first}) {
    SpinLockHolder holder(*lock);
    std::thread([lock] { EXPECT_FALSE(IsFree(*lock)); }).join();
  }
}

TEST(SpinLockTest, ALockThatIsOnlyTriedMayBreakTheOrder) {
  SpinLock low(LockRank::kTransferCache);
  SpinLock high(LockRank::kPageHeap);
  SpinLockHolder holder(high);
  const bool taken = low.TryLock();
  EXPECT_TRUE(taken);
  if (taken) low.Unlock();
}

}  // namespace
}  // namespace tcmalloc
