// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cpu_profile/program_action.h"

#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

#include "system/alternate_stacks.h"

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

// Makes the threads' stacks for signals unfit for the rest of the process.
void TakeSmallStack() {
  static char bytes[size_t{64} << 10];
  stack_t stack = {};
  stack.ss_sp = bytes;
  stack.ss_size = ::getauxval(AT_MINSIGSTKSZ) + 2048;
  if (SetAlternateStack(&stack, nullptr) != 0) _exit(2);
}

void EndUnless(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  _exit(1);
}

[[noreturn]] void ReinstallAndEnd() {
  ProgramAction action;
  const auto handler = [](int, siginfo_t*, void*) {};
  EndUnless(action.Take(SIGURG, handler), "not taken");
  EndUnless(RunsOnAlternateStack(), "on the stack of the thread");
  TakeSmallStack();
  action.Reinstall();
  EndUnless(!RunsOnAlternateStack(), "on a small stack");
  EndUnless(action.IsInPlace(), "not in place");
  signal(SIGURG, SIG_IGN);
  EndUnless(action.Take(SIGURG, handler), "not taken again");
  EndUnless(!RunsOnAlternateStack(), "on a small stack again");
  _exit(0);
}

TEST(ProgramActionTest, AvoidsAlternateStacksThatAreUnfit) {
  EXPECT_EXIT(ReinstallAndEnd(), ::testing::ExitedWithCode(0), "");
}

TEST(ProgramActionTest, ReinstallsNothingWhereItWasReplaced) {
  ProgramAction replaced;
  ASSERT_TRUE(replaced.Take(SIGURG, [](int, siginfo_t*, void*) {}));
  signal(SIGURG, SIG_IGN);
  replaced.Reinstall();
  EXPECT_FALSE(replaced.IsInPlace());
}

}  // namespace
}  // namespace tcmalloc
