// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/thread_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <thread>
#include <vector>

namespace tcmalloc::testing {
namespace {

bool OtherThreadGetsIt(ThreadLock& lock) {
  bool taken = false;
  std::thread([&] {
    taken = lock.TryLock();
    if (taken) lock.Unlock();
  }).join();
  return taken;
}

TEST(ThreadLockTest, OneThreadHasItAtATime) {
  ThreadLock lock;
  ASSERT_TRUE(lock.Lock());
  EXPECT_FALSE(OtherThreadGetsIt(lock));
  lock.Unlock();
  EXPECT_TRUE(OtherThreadGetsIt(lock));
}

// As in a signal handler.
TEST(ThreadLockTest, WhoeverHasItDoesNotGetItAgain) {
  ThreadLock lock;
  ASSERT_TRUE(lock.TryLock());
  EXPECT_FALSE(lock.TryLock());
  EXPECT_FALSE(lock.Lock());
  lock.Unlock();
  EXPECT_TRUE(lock.Lock());
}

TEST(ThreadLockTest, ThreadsWaitForEachOther) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 1000;
  ThreadLock lock;
  int64_t count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds; ++round) {
        if (!lock.Lock()) continue;
        ++count;
        lock.Unlock();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, kThreads * kRounds);
}

TEST(ThreadLockTest, ItIsFreeInAChildOfFork) {
  ThreadLock lock;
  ASSERT_TRUE(lock.Lock());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(lock.Lock() ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(OtherThreadGetsIt(lock));
}

}  // namespace
}  // namespace tcmalloc::testing
