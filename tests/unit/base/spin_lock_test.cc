// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "base/spin_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace tcmalloc {
namespace {

constinit SpinLock constant_lock(LockRank::kPageHeap);
static_assert(std::is_trivially_destructible_v<SpinLock>);
static_assert(sizeof(SpinLock) <= 8);

TEST(SpinLockTest, KnowsWhetherItIsHeld) {
  EXPECT_FALSE(constant_lock.IsHeld());
  constant_lock.Lock();
  EXPECT_TRUE(constant_lock.IsHeld());
  constant_lock.Unlock();
  EXPECT_FALSE(constant_lock.IsHeld());
}

TEST(SpinLockTest, TryLockFailsWhereAnotherThreadHoldsIt) {
  SpinLock lock(LockRank::kPageHeap);
  bool first = lock.TryLock();
  ASSERT_TRUE(first);
  bool second = true;
  std::thread([&]() TCMALLOC_NO_THREAD_SAFETY_ANALYSIS { second = lock.TryLock(); }).join();
  EXPECT_FALSE(second);
  if (first) lock.Unlock();
  EXPECT_FALSE(lock.IsHeld());
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

// The holder waits until the others have had time to give up spinning: they must be woken, all of
// them, and must not have changed errno.
TEST(SpinLockTest, WakesEverySleeper) {
  constexpr int kThreads = 8;
  SpinLock lock(LockRank::kPageHeap);
  std::atomic<int> started{0};
  std::atomic<int> errors{0};
  std::vector<std::thread> threads;
  lock.Lock();
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      errno = ENOENT;
      ++started;
      SpinLockHolder holder(lock);
      if (errno != ENOENT) ++errors;
    });
  }
  while (started < kThreads) std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  lock.Unlock();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(errors, 0);
  EXPECT_FALSE(lock.IsHeld());
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

// 0 if the child of a fork can use what its parent held.
int UseInChild(SpinLock& lock) TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
  lock.ResetAfterFork();
  ResetHeldLocksAfterFork();
  if (lock.IsHeld()) return 1;
  SpinLock low(LockRank::kTransferCache);
  low.Lock();
  lock.Lock();
  lock.Unlock();
  low.Unlock();
  return 0;
}

TEST(SpinLockTest, ChildOfAForkStartsWithoutLocks) {
  SpinLock lock(LockRank::kPageHeap);
  lock.Lock();
  const pid_t child = ::fork();
  if (child == 0) _exit(UseInChild(lock));
  lock.Unlock();
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace tcmalloc
