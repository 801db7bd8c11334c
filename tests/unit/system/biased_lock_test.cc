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

  // The analysis does not see a lock that is taken in an expectation.
  bool TakenByOther() TCMALLOC_NO_THREAD_SAFETY_ANALYSIS { return lock_.TryLockByOther(); }
  void LeftByOther() TCMALLOC_NO_THREAD_SAFETY_ANALYSIS { lock_.UnlockByOther(); }

  BiasedLock lock_{LockRank::kFullChains};
};

TEST_F(BiasedLockTest, AnotherThreadGetsItWhileTheOwnerIsOutside) {
  ASSERT_TRUE(FenceThreads());
  lock_.Lock();
  EXPECT_FALSE(TakenByOther());
  lock_.Unlock();
  ASSERT_TRUE(TakenByOther());
  EXPECT_FALSE(TakenByOther());
  LeftByOther();
  lock_.Lock();
  lock_.Unlock();
}

TEST_F(BiasedLockTest, WithoutAFenceOnlyTheOwnerGetsIt) {
  system_calls.membarrier = [](int, unsigned, int) {
    errno = ENOSYS;
    return -1;
  };
  errno = EDOM;
  EXPECT_FALSE(FenceThreads());
  EXPECT_FALSE(TakenByOther());
  EXPECT_EQ(errno, EDOM);
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
