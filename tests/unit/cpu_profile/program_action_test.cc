// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cpu_profile/program_action.h"

#include <gtest/gtest.h>

#include <atomic>

namespace tcmalloc {
namespace {

constinit ProgramAction kept;
std::atomic<int> mine = 0;
std::atomic<int> programs = 0;
std::atomic<bool> blocked_itself = false;

void OnSignal(int, siginfo_t* info, void* context) {
  ++mine;
  kept.Forward(info, context);
}

void OfProgram(int signal) {
  ++programs;
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  blocked_itself = sigismember(&mask, signal) == 1;
}

TEST(ProgramActionTest, SignalsOfFaults) {
  EXPECT_TRUE(IsFaultSignal(SIGSEGV));
  EXPECT_FALSE(IsFaultSignal(SIGPROF));
}

TEST(ProgramActionTest, KeepsWhatTheProgramWants) {
  for (const int refused : {SIGSEGV, SIGABRT, SIGKILL, 0, 65}) {
    EXPECT_FALSE(kept.Take(refused, OnSignal)) << refused;
  }
  EXPECT_EQ(kept.signal(), 0);
  signal(SIGUSR2, OfProgram);
  ASSERT_TRUE(kept.Take(SIGUSR2, OnSignal));
  ASSERT_TRUE(kept.Take(SIGUSR2, OnSignal));
  EXPECT_EQ(kept.signal(), SIGUSR2);
  raise(SIGUSR2);
  EXPECT_EQ(mine, 1);
  EXPECT_EQ(programs, 1);
  EXPECT_TRUE(blocked_itself);

  struct sigaction action = {};
  struct sigaction old = {};
  action.sa_handler = SIG_DFL;
  kept.Exchange(&action, &old);
  EXPECT_EQ(old.sa_handler, OfProgram);
  raise(SIGUSR2);
  EXPECT_EQ(mine, 2);
  EXPECT_EQ(programs, 1);

  action.sa_handler = OfProgram;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  kept.Exchange(&action, nullptr);
  raise(SIGUSR2);
  EXPECT_EQ(programs, 2);
  EXPECT_FALSE(blocked_itself);
  raise(SIGUSR2);
  EXPECT_EQ(programs, 2);
  EXPECT_TRUE(kept.IsInPlace());
  signal(SIGUSR2, SIG_IGN);
  EXPECT_FALSE(kept.IsInPlace());
}

bool RunsOnAlternateStack() {
  struct sigaction action = {};
  sigaction(SIGURG, nullptr, &action);
  return (action.sa_flags & SA_ONSTACK) != 0;
}

TEST(ProgramActionTest, AvoidsAlternateStacks) {
  ProgramAction on_own_stack;
  const auto handler = [](int, siginfo_t*, void*) {};
  ASSERT_TRUE(on_own_stack.Take(SIGURG, handler));
  EXPECT_TRUE(RunsOnAlternateStack());
  on_own_stack.AvoidAlternateStacks();
  EXPECT_FALSE(RunsOnAlternateStack());
  EXPECT_TRUE(on_own_stack.IsInPlace());
  signal(SIGURG, SIG_IGN);
  ASSERT_TRUE(on_own_stack.Take(SIGURG, handler));
  EXPECT_FALSE(RunsOnAlternateStack()) << "taken again";
}

// What replaced the profiler's handler stays.
TEST(ProgramActionTest, AvoidsAlternateStacksWhereItWasReplaced) {
  ProgramAction replaced;
  ASSERT_TRUE(replaced.Take(SIGURG, [](int, siginfo_t*, void*) {}));
  signal(SIGURG, SIG_IGN);
  replaced.AvoidAlternateStacks();
  EXPECT_FALSE(replaced.IsInPlace());
}

}  // namespace
}  // namespace tcmalloc
