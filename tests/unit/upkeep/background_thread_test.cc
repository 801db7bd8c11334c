// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "upkeep/background_thread.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "heap/heap.h"
#include "system/system_calls.h"

namespace tcmalloc::testing {
namespace {

constinit std::atomic<int> created{0};

class BackgroundThreadTest : public ::testing::Test {
 protected:
  BackgroundThreadTest() {
    heap.EnsureInitialized();
    created = 0;
    system_calls.pthread_create = [](pthread_t* thread, const pthread_attr_t* attributes,
                                     void* (*body)(void*), void* argument) {
      ++created;
      return real_system_calls.pthread_create(thread, attributes, body, argument);
    };
  }
  ~BackgroundThreadTest() override {
    background_.Stop();
    system_calls = real_system_calls;
  }

  static uint64_t SignalMask() {
    uint64_t mask = 0;
    EXPECT_EQ(real_system_calls.rt_sigprocmask(SIG_BLOCK, nullptr, &mask), 0);
    return mask;
  }

  BackgroundThread background_;
};

TEST_F(BackgroundThreadTest, IsThereOnceUntilItIsStopped) {
  EXPECT_FALSE(background_.enabled());
  EXPECT_TRUE(background_.Start());
  EXPECT_TRUE(background_.Start());
  EXPECT_TRUE(background_.enabled());
  EXPECT_EQ(created, 1);
  background_.Stop();
  background_.Stop();
  EXPECT_FALSE(background_.enabled());
  EXPECT_TRUE(background_.Start());
  EXPECT_EQ(created, 2);
}

TEST_F(BackgroundThreadTest, LeavesTheCallerAsItWas) {
  const uint64_t mask = SignalMask();
  errno = 77;
  background_.Start();
  background_.Stop();
  EXPECT_EQ(errno, 77);
  EXPECT_EQ(SignalMask(), mask);
  int state = -1;
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
  EXPECT_EQ(state, PTHREAD_CANCEL_ENABLE);
}

TEST_F(BackgroundThreadTest, ARefusedThreadCanBeTriedAgain) {
  const auto create = system_calls.pthread_create;
  system_calls.pthread_create = [](pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) {
    return EAGAIN;
  };
  EXPECT_FALSE(background_.Start());
  EXPECT_FALSE(background_.enabled());
  system_calls.pthread_create = create;
  EXPECT_TRUE(background_.Start());
  EXPECT_TRUE(background_.enabled());
}

TEST_F(BackgroundThreadTest, NoneThatWouldTakeSignals) {
  system_calls.rt_sigprocmask = [](int, const uint64_t*, uint64_t*) {
    errno = EPERM;
    return -1;
  };
  EXPECT_FALSE(background_.Start());
  EXPECT_EQ(created, 0);
}

TEST_F(BackgroundThreadTest, TheLastWordCounts) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 200;
  for (const bool last : {true, false}) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([this, t] {
        for (int i = 0; i < kRounds; ++i) {
          if ((i + t) % 2 == 0) {
            background_.Start();
          } else {
            background_.Stop();
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    if (last) {
      EXPECT_TRUE(background_.Start());
    } else {
      background_.Stop();
    }
    EXPECT_EQ(background_.enabled(), last);
  }
}

TEST_F(BackgroundThreadTest, TheIntervalIsWhatWasSet) {
  EXPECT_EQ(background_.interval(), 0u);
  background_.set_interval(UINT64_MAX);
  background_.Start();
  EXPECT_EQ(background_.interval(), UINT64_MAX);
  // It wakes up for it all the same.
  background_.Stop();
}

TEST_F(BackgroundThreadTest, DoesNotComeBackAfterAForkWhereItWasStopped) {
  background_.Start();
  background_.Stop();
  background_.ResetAfterFork();
  background_.Restart();
  EXPECT_EQ(created, 1);
  EXPECT_FALSE(background_.enabled());
}

}  // namespace
}  // namespace tcmalloc::testing
