// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <gperftools/stacktrace.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

namespace {

constexpr int kMost = 64;

struct Captured {
  void* frames[kMost];
  int sizes[kMost];
  int count = 0;
};

void* return_address;

__attribute__((noinline)) void CaptureTrace(Captured* captured, int skip) {
  return_address = __builtin_extract_return_addr(__builtin_return_address(0));
  captured->count = GetStackTrace(captured->frames, kMost, skip);
}

__attribute__((noinline)) void CaptureFrames(Captured* captured, int skip) {
  return_address = __builtin_extract_return_addr(__builtin_return_address(0));
  captured->count = GetStackFrames(captured->frames, captured->sizes, kMost, skip);
}

TEST(StacktraceTest, FirstAddressIsInTheCaller) {
  Captured captured;
  CaptureTrace(&captured, 0);
  ASSERT_GT(captured.count, 3);
  EXPECT_EQ(captured.frames[1], return_address);
  CaptureTrace(&captured, 1);
  EXPECT_EQ(captured.frames[0], return_address);
}

TEST(StacktraceTest, FramesHaveSizes) {
  Captured captured;
  CaptureFrames(&captured, 1);
  ASSERT_GT(captured.count, 3);
  EXPECT_EQ(captured.frames[0], return_address);
  EXPECT_GT(captured.sizes[0], 0);
  EXPECT_LT(captured.sizes[0], 100'000);
}

TEST(StacktraceTest, WithoutAContextTheCallerIsMeant) {
  Captured captured;
  Captured same;
  captured.count = GetStackTraceWithContext(captured.frames, kMost, 1, nullptr);
  same.count = GetStackFramesWithContext(same.frames, same.sizes, kMost, 1, nullptr);
  ASSERT_GT(captured.count, 3);
  EXPECT_EQ(captured.count, same.count);
  EXPECT_TRUE(std::equal(captured.frames, captured.frames + captured.count, same.frames));
}

Captured interrupted;

void Handle(int, siginfo_t*, void* context) {
  interrupted.count = GetStackTraceWithContext(interrupted.frames, kMost, 0, context);
  // The handler, and the kernel's return from it.
  for (const int skip : {-1, 1, 2}) {
    Captured same;
    same.count = GetStackTraceWithContext(same.frames, kMost, skip, context);
    EXPECT_EQ(same.count, interrupted.count) << skip;
    EXPECT_EQ(same.frames[0], interrupted.frames[0]) << skip;
  }
  Captured skipped;
  skipped.count = GetStackTraceWithContext(skipped.frames, kMost, 3, context);
  EXPECT_EQ(skipped.count, interrupted.count - 1);
  EXPECT_EQ(skipped.frames[0], interrupted.frames[1]);
  skipped.count = GetStackFramesWithContext(skipped.frames, skipped.sizes, kMost, 4, context);
  EXPECT_EQ(skipped.count, interrupted.count - 2);
  EXPECT_EQ(skipped.frames[0], interrupted.frames[2]);
}

__attribute__((noinline)) void Raise() {
  return_address = __builtin_extract_return_addr(__builtin_return_address(0));
  ::raise(SIGUSR1);
  asm volatile("");
}

TEST(StacktraceTest, WithAContextWhatWasInterruptedIsMeant) {
  struct sigaction action = {};
  action.sa_sigaction = Handle;
  action.sa_flags = SA_SIGINFO;
  struct sigaction old;
  ::sigaction(SIGUSR1, &action, &old);
  Raise();
  ::sigaction(SIGUSR1, &old, nullptr);
  const auto end = interrupted.frames + interrupted.count;
  EXPECT_NE(std::find(interrupted.frames, end, return_address), end);
}

}  // namespace
