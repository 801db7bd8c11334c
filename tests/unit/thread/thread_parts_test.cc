// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "thread/thread_parts.h"

#include <gtest/gtest.h>

#include <iterator>
#include <numeric>
#include <thread>
#include <vector>

#include "thread/thread_state.h"

namespace tcmalloc {
namespace {

class ThreadPartsTest : public ::testing::Test {
 protected:
  ~ThreadPartsTest() override { thread_state.quarantine_part = 0; }

  ThreadParts parts_;
};

TEST_F(ThreadPartsTest, TheLowestIsTakenUntilThereIsNone) {
  EXPECT_EQ(parts_.highest(), 0);
  for (uint8_t number = 1; number <= ThreadParts::kCount; ++number) {
    EXPECT_EQ(parts_.Take(), number);
    EXPECT_EQ(parts_.highest(), number);
  }
  EXPECT_EQ(parts_.Take(), 0);
  parts_.Return(5);
  parts_.Return(3);
  EXPECT_EQ(parts_.Take(), 3);
  EXPECT_EQ(parts_.Take(), 5);
  EXPECT_EQ(parts_.Take(), 0);
}

TEST_F(ThreadPartsTest, WhatAThreadLeftIsTakenOnce) {
  EXPECT_EQ(parts_.Take(), 1);
  EXPECT_FALSE(parts_.TryTakeLeft(1)) << "the thread has it";
  EXPECT_FALSE(parts_.TryTakeLeft(2)) << "no thread had it";
  parts_.Return(1);
  EXPECT_TRUE(parts_.TryTakeLeft(1));
  EXPECT_EQ(parts_.Take(), 2) << "it is being emptied";
  parts_.Return(1);
  EXPECT_FALSE(parts_.TryTakeLeft(1)) << "it is empty";
  EXPECT_EQ(parts_.Take(), 1);
  parts_.Return(1);
  EXPECT_TRUE(parts_.TryTakeLeft(1));
}

TEST_F(ThreadPartsTest, AThreadThatEndedReturnsItsOwn) {
  parts_.ReturnOwn();
  thread_state.quarantine_part = parts_.Take();
  parts_.ReturnOwn();
  EXPECT_EQ(thread_state.quarantine_part, 0);
  EXPECT_EQ(parts_.Take(), 1);
}

TEST_F(ThreadPartsTest, APartInTheMiddleOfAChangeStaysTaken) {
  EXPECT_EQ(parts_.Take(), 1);
  for (const uint8_t part : {ThreadState::kBelowChecks, uint8_t{ThreadParts::kCount + 1}}) {
    thread_state.quarantine_part = part;
    parts_.ReturnOwn();
    EXPECT_EQ(thread_state.quarantine_part, part);
    EXPECT_FALSE(parts_.TryTakeLeft(1));
  }
}

TEST_F(ThreadPartsTest, OneThreadAtATimeHasAPart) {
  constexpr int kThreads = 4;
  constexpr int kTurns = 20'000;
  long turns[kThreads + 1] = {};  // each guarded by the part of that number
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kTurns; ++i) {
        const uint8_t part = parts_.Take();
        ++turns[part];
        parts_.Return(part);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::accumulate(std::begin(turns), std::end(turns), 0L), long{kThreads} * kTurns);
}

}  // namespace
}  // namespace tcmalloc
