// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The choice between the front ends.

#include "thread/front_end.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "system/system_calls.h"

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

TEST_F(FrontEndChoiceTest, AForkedChildKnowsThatThreadsAreLost) {
  StartThreads(1);
  choice_.ResetAfterFork(1);
  EXPECT_FALSE(choice_.has_lost_threads());
  StartThreads(1);
  choice_.ResetAfterFork(1);
  EXPECT_TRUE(choice_.has_lost_threads());
  choice_.ResetAfterFork(1);
  EXPECT_TRUE(choice_.has_lost_threads());
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

}  // namespace
}  // namespace tcmalloc::testing
