// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/biased_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <thread>
#include <vector>

#include "system/system_calls.h"

namespace tcmalloc::testing {
namespace {

class BiasedLockTest : public ::testing::Test {
 protected:
  ~BiasedLockTest() override { system_calls = real_system_calls; }

  // True if a thread that does not own the lock gets it now. It gives it back at once.
  bool OtherGetsIt() {
    bool taken = false;
    std::thread([&] {
      if (!lock_.TryLockByOther()) return;
      taken = true;
      lock_.UnlockByOther();
    }).join();
    return taken;
  }

  BiasedLock lock_{LockRank::kFullChains};
};

TEST_F(BiasedLockTest, AnotherThreadGetsItWhileTheOwnerIsOutside) {
  ASSERT_TRUE(FenceThreads());
  lock_.Lock();
  EXPECT_FALSE(OtherGetsIt());
  lock_.Unlock();
  EXPECT_TRUE(OtherGetsIt());
  lock_.Lock();
  lock_.Unlock();
}

TEST_F(BiasedLockTest, OneThreadBesideTheOwnerHasItAtATime) {
  ASSERT_TRUE(FenceThreads());
  bool taken = lock_.TryLockByOther();
  ASSERT_TRUE(taken);
  EXPECT_FALSE(OtherGetsIt());
  if (taken) lock_.UnlockByOther();
  EXPECT_TRUE(OtherGetsIt());
}

// The owner enters twice, or takes a lock that is to be taken before.
void EnterTwice() TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
  BiasedLock mine(LockRank::kFullChains);
  BiasedLock another(LockRank::kFullChains);
  mine.Lock();
  another.Lock();
}
void EnterInWrongOrder() TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
  BiasedLock mine(LockRank::kFullChains);
  SpinLock lower(LockRank::kThreadCaches);
  mine.Lock();
  lower.Lock();
}
void TakeAnotherOneInside() TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
  BiasedLock mine(LockRank::kFullChains);
  BiasedLock another(LockRank::kFullChains);
  mine.Lock();
  static_cast<void>(another.TryLockByOther());
}

TEST(BiasedLockDeathTest, TheOwnersRankCountsInDebugBuilds) {
  if (!kDebugChecks) GTEST_SKIP() << "ranks are not checked in this build";
  EXPECT_DEATH(EnterTwice(), "check failed");
  EXPECT_DEATH(EnterInWrongOrder(), "check failed");
  EXPECT_DEATH(TakeAnotherOneInside(), "check failed");
}

// The owner that waited for another thread holds the rank once, and gives it back.
TEST_F(BiasedLockTest, TheOwnersRankIsFreeAfterwards) {
  if (!FenceThreads()) GTEST_SKIP() << "the kernel has no fence";
  std::atomic<bool> taken{false};
  std::thread other([&]() TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
    while (!lock_.TryLockByOther()) {
    }
    taken = true;
    std::this_thread::yield();
    lock_.UnlockByOther();
  });
  while (!taken) std::this_thread::yield();
  lock_.Lock();
  lock_.Unlock();
  other.join();
  SpinLock lower(LockRank::kThreadCaches);
  SpinLockHolder holder(lower);
}

TEST_F(BiasedLockTest, WithoutAFenceOnlyTheOwnerGetsIt) {
  system_calls.membarrier = [](int, unsigned, int) {
    errno = ENOSYS;
    return -1;
  };
  errno = EDOM;
  EXPECT_FALSE(FenceThreads());
  const bool taken = lock_.TryLockByOther();
  EXPECT_FALSE(taken);
  EXPECT_EQ(errno, EDOM);
  if (taken) lock_.UnlockByOther();
  lock_.Lock();
  lock_.Unlock();
}

constinit int registrations = 0;
constinit bool registered = false;

TEST_F(BiasedLockTest, AProcessRegistersBeforeItsFirstFence) {
  registrations = 0;
  registered = false;
  system_calls.membarrier = [](int command, unsigned, int) {
    // The registration is the command after the fence of its kind.
    constexpr int kFence = 1 << 3;
    if (command != kFence) {
      registered = ++registrations > 0;
      return 0;
    }
    errno = EPERM;
    return registered ? 0 : -1;
  };
  EXPECT_TRUE(FenceThreads());
  EXPECT_TRUE(FenceThreads());
  EXPECT_EQ(registrations, 1);
}

// The counter is no atomic: what it ends at says whether two threads were ever inside at once.
TEST_F(BiasedLockTest, NobodyIsInsideBesideAnother) {
  if (!FenceThreads()) GTEST_SKIP() << "the kernel has no fence";
  constexpr int kOthers = 2;
  constexpr uint64_t kRounds = 300'000;
  uint64_t counter = 0;
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> by_others{0};
  std::vector<std::thread> others;
  for (int i = 0; i < kOthers; ++i) {
    others.emplace_back([&] {
      while (!stop.load()) {
        if (!lock_.TryLockByOther()) continue;
        ++counter;
        ++by_others;
        lock_.UnlockByOther();
      }
    });
  }
  for (uint64_t i = 0; i < kRounds || by_others.load() < 100; ++i) {
    BiasedLockHolder holder(lock_);
    ++counter;
    if (i >= kRounds) --counter;
  }
  stop = true;
  for (std::thread& other : others) other.join();
  EXPECT_EQ(counter, kRounds + by_others.load());
}

}  // namespace
}  // namespace tcmalloc::testing
