// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "thread/thread_parts.h"

#include <gtest/gtest.h>

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

TEST_F(ThreadPartsTest, APartThatSomebodyHasIsNotTaken) {
  EXPECT_EQ(parts_.Take(), 1);
  EXPECT_FALSE(parts_.TryTake(1));
  EXPECT_TRUE(parts_.TryTake(2));
  parts_.Return(1);
  EXPECT_TRUE(parts_.TryTake(1));
  EXPECT_EQ(parts_.Take(), 3);
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
    EXPECT_FALSE(parts_.TryTake(1));
  }
}

TEST_F(ThreadPartsTest, OneThreadAtATimeHasAPart) {
  constexpr int kThreads = 4;
  constexpr int kTurns = 20'000;
  long turns = 0;  // guarded by part 1
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kTurns; ++i) {
        while (!parts_.TryTake(1)) std::this_thread::yield();
        ++turns;
        parts_.Return(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(turns, long{kThreads} * kTurns);
}

}  // namespace
}  // namespace tcmalloc
