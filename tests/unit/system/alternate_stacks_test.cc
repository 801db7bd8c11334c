// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/alternate_stacks.h"

#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

namespace tcmalloc {
namespace {

constexpr char kStackPlaces[2] = {};

// Calls act(thread) in a thread that ends thereafter.
template <typename Act>
void InOtherThread(Act act) {
  std::thread thread([&] { act(::gettid()); });
  thread.join();
}

TEST(AlternateStacksTest, TwoThreadsShareOne) {
  AlternateStacks stacks;
  const pid_t self = ::gettid();
  EXPECT_FALSE(stacks.Change(self, nullptr, &kStackPlaces[0]));
  EXPECT_FALSE(stacks.Change(self, &kStackPlaces[0], &kStackPlaces[0])) << "the same thread again";
  InOtherThread([&](pid_t other) {
    EXPECT_FALSE(stacks.Change(other, nullptr, &kStackPlaces[1])) << "another stack";
    EXPECT_TRUE(stacks.Change(other, &kStackPlaces[1], &kStackPlaces[0]));
  });
}

TEST(AlternateStacksTest, AStackThatWasLeftIsFree) {
  AlternateStacks stacks;
  const pid_t self = ::gettid();
  stacks.Change(self, nullptr, &kStackPlaces[0]);
  stacks.Change(self, &kStackPlaces[0], &kStackPlaces[1]);
  InOtherThread([&](pid_t other) {
    EXPECT_FALSE(stacks.Change(other, nullptr, &kStackPlaces[0]));
    EXPECT_FALSE(stacks.Change(other, &kStackPlaces[0], nullptr));
  });
  EXPECT_FALSE(stacks.Change(self, &kStackPlaces[1], nullptr));
  EXPECT_FALSE(stacks.Change(self, nullptr, &kStackPlaces[0]));
}

TEST(AlternateStacksTest, AThreadThatEndedHasNone) {
  AlternateStacks stacks;
  pid_t ended = 0;
  InOtherThread([&](pid_t other) {
    stacks.Change(other, nullptr, &kStackPlaces[0]);
    ended = other;
  });
  // The kernel lets others join a thread before its number is free.
  while (::syscall(SYS_tgkill, ::getpid(), ended, 0) == 0) std::this_thread::yield();
  EXPECT_FALSE(stacks.Change(::gettid(), nullptr, &kStackPlaces[0]));
}

TEST(AlternateStacksTest, FailuresAreTheKernels) {
  stack_t old = {};
  errno = 0;
  EXPECT_EQ(SetAlternateStack(nullptr, &old), 0);
  stack_t small = {};
  small.ss_sp = const_cast<char*>(kStackPlaces);
  small.ss_size = 1;
  EXPECT_EQ(SetAlternateStack(&small, nullptr), -1);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(SetAlternateStack(reinterpret_cast<stack_t*>(16), nullptr), -1);
  EXPECT_EQ(errno, EFAULT);
  errno = 0;
  EXPECT_EQ(SetAlternateStack(&old, nullptr), 0);
  EXPECT_EQ(errno, 0);
}

// Takes a stack for signals with this much more than what the kernel puts there. Returns 0 if
// stacks count as unfit thereafter and the function was called, 1 if neither is so.
int TakeStackWith(size_t more) {
  static int calls = 0;
  static char bytes[size_t{256} << 10];
  CallWhenAlternateStacksAreUnfit([] { ++calls; });
  stack_t stack = {};
  stack.ss_sp = bytes;
  stack.ss_size = ::getauxval(AT_MINSIGSTKSZ) + more;
  if (SetAlternateStack(&stack, nullptr) != 0) return 2;
  ++stack.ss_size;
  if (SetAlternateStack(&stack, nullptr) != 0) return 2;
  if (calls == 1 && AlternateStacksAreUnfit()) return 0;
  return calls == 0 && !AlternateStacksAreUnfit() ? 1 : 3;
}

// A process that has seen one keeps that in mind.
TEST(AlternateStacksTest, ASmallOneIsToldOnce) {
  EXPECT_EXIT(_exit(TakeStackWith(2048)), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(_exit(TakeStackWith(16384)), ::testing::ExitedWithCode(1), "");
}

}  // namespace
}  // namespace tcmalloc
