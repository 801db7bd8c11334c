// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "upkeep/background_thread.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "system/system_calls.h"

namespace tcmalloc::testing {
namespace {

constinit std::atomic<int> created{0};
// What the threads did.
constinit std::atomic<int> rounds{0};
constinit std::atomic<int> runners{0};
constinit std::atomic<bool> fork_is_under_way{false};

constexpr BackgroundWork kWork = {.run =
                                      [](uint64_t* wait) {
                                        if (fork_is_under_way) return false;
                                        ++rounds;
                                        rounds.notify_all();
                                        *wait = 1;
                                        return true;
                                      },
                                  .runner_comes = [] { ++runners; },
                                  .runner_goes = [] { --runners; },
                                  .is_interrupted = [] { return false; }};

class BackgroundThreadTest : public ::testing::Test {
 protected:
  BackgroundThreadTest() {
    created = 0;
    rounds = 0;
    fork_is_under_way = false;
    system_calls.pthread_create = [](pthread_t* thread, const pthread_attr_t* attributes,
                                     void* (*body)(void*), void* argument) {
      ++created;
      return real_system_calls.pthread_create(thread, attributes, body, argument);
    };
  }
  ~BackgroundThreadTest() override {
    background_.Stop();
    EXPECT_EQ(runners, 0);
    system_calls = real_system_calls;
  }

  static uint64_t SignalMask() {
    uint64_t mask = 0;
    EXPECT_EQ(real_system_calls.rt_sigprocmask(SIG_BLOCK, nullptr, &mask), 0);
    return mask;
  }

  BackgroundThread background_{kWork};
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

TEST_F(BackgroundThreadTest, WorksAgainAndAgain) {
  background_.Start();
  for (int seen = rounds; seen < 3; seen = rounds) rounds.wait(seen);
  EXPECT_EQ(runners, 1);
}

// The process goes on to handlers of exit that may ask for the thread.
TEST_F(BackgroundThreadTest, NothingStartsAfterAnEndThatWasNotAwaited) {
  BackgroundWork work = kWork;
  work.is_interrupted = [] { return true; };
  static pthread_t left = {};
  system_calls.pthread_create = [](pthread_t* thread, const pthread_attr_t* attributes,
                                   void* (*body)(void*), void* argument) {
    ++created;
    const int error = real_system_calls.pthread_create(thread, attributes, body, argument);
    left = *thread;
    return error;
  };
  BackgroundThread background(work);
  EXPECT_TRUE(background.Start());
  background.StopAtExit();
  EXPECT_FALSE(background.Start());
  EXPECT_FALSE(background.enabled());
  background.Stop();
  EXPECT_EQ(created, 1);
  EXPECT_EQ(pthread_join(left, nullptr), 0);
  runners = 0;
}

TEST_F(BackgroundThreadTest, DoesNothingWhileAForkIsUnderWay) {
  fork_is_under_way = true;
  static std::atomic<int> waits;
  waits = 0;
  system_calls.futex = [](uint32_t* word, int operation, uint32_t value, const timespec* timeout) {
    if (timeout != nullptr) {
      ++waits;
      waits.notify_all();
    }
    return real_system_calls.futex(word, operation, value, timeout);
  };
  background_.Start();
  for (int seen = waits; seen < 2; seen = waits) waits.wait(seen);
  EXPECT_EQ(rounds, 0);
  fork_is_under_way = false;
  for (int seen = rounds; seen < 1; seen = rounds) rounds.wait(seen);
}

}  // namespace
}  // namespace tcmalloc::testing
