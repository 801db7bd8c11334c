// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Stacks of functions that note their return addresses themselves.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "fakes/address_sanitizer.h"
#include "fakes/thread_sanitizer.h"
#include "unit/unwind/calls.h"
#include "unwind/stack_trace.h"

namespace tcmalloc::testing {
namespace {

constexpr int kMost = 4096;

// Runs the tests with the method that the environment names.
class ChosenMethod : public ::testing::Environment {
  void SetUp() override {
    const char* name = std::getenv("TCMALLOC_STACKTRACE_METHOD");
    if (name != nullptr) SetUnwindMethod(ParseUnwindMethod(name).value());
  }
};
[[maybe_unused]] const auto* const environment =
    ::testing::AddGlobalTestEnvironment(new ChosenMethod);

std::vector<void*> captured;  // by the last innermost function
std::vector<void*> expected;  // what was noted then, the innermost first

void Remember(void* const* frames, int count) {
  captured.assign(frames, frames + count);
  expected.assign(running.rbegin(), running.rend());
}

__attribute__((noinline)) void CaptureHere() {
  TCM_NOTE_CALL();
  static void* frames[kMost];
  Remember(frames, CaptureStack(frames, kMost, 0));
}

std::string Describe(const std::vector<void*>& addresses) {
  std::string text;
  for (void* address : addresses) {
    char line[32];
    std::snprintf(line, sizeof(line), "  %p\n", address);
    text += line;
  }
  return text;
}

// Expects all noted addresses to be there in their order. Others may lie between them.
void ExpectAllNoted(const std::string& what) {
  ASSERT_FALSE(expected.empty()) << what;
  auto next = expected.begin();
  for (void* address : captured) {
    if (next != expected.end() && *next == address) ++next;
  }
  EXPECT_TRUE(next == expected.end()) << what << "\ncaptured:\n"
                                      << Describe(captured) << "noted:\n"
                                      << Describe(expected);
}

// Expects the noted addresses and then only those below the test.
void ExpectExactly(const std::string& what) {
  ASSERT_GT(captured.size(), expected.size()) << what;
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), captured.begin()))
      << what << "\ncaptured:\n"
      << Describe(captured) << "noted:\n"
      << Describe(expected);
}

template <typename Test>
void ForAllOptions(Test test) {
  for (size_t i = 0; i < kAllCallsCount; ++i) {
    captured.clear();
    expected.clear();
    test(*kAllCalls[i]);
  }
}

TEST(GoldenTest, PlainCalls) {
  ForAllOptions([](const Calls& calls) {
    calls.plain(CaptureHere);
    ExpectExactly(calls.options);
  });
}

TEST(GoldenTest, Recursion) {
  ForAllOptions([](const Calls& calls) {
    calls.recursive(CaptureHere, 500);
    ExpectExactly(calls.options);
  });
}

TEST(GoldenTest, ArraysOfVariableSize) {
  ForAllOptions([](const Calls& calls) {
    for (size_t bytes : {1, 100, 5000, 100'000, 3'000'000}) {
      calls.variable_array(CaptureHere, bytes);
      ExpectExactly(calls.options);
    }
  });
}

TEST(GoldenTest, AlignedFrames) {
  ForAllOptions([](const Calls& calls) {
    calls.aligned(CaptureHere);
    ExpectExactly(calls.options);
    calls.aligned_variable_array(CaptureHere, 1000);
    ExpectExactly(calls.options);
  });
}

TEST(GoldenTest, FunctionsThatUseManyRegisters) {
  ForAllOptions([](const Calls& calls) {
    calls.busy(CaptureHere);
    ExpectExactly(calls.options);
  });
}

TEST(GoldenTest, ManyArguments) {
  ForAllOptions([](const Calls& calls) {
    calls.many_arguments(CaptureHere);
    ExpectExactly(calls.options);
  });
}

TEST(GoldenTest, CallbacksFromLibc) {
  ForAllOptions([](const Calls& calls) {
    calls.through_libc(CaptureHere);
    ExpectAllNoted(calls.options);
  });
}

TEST(GoldenTest, TailCalls) {
  ForAllOptions([](const Calls& calls) {
    calls.tail_call(CaptureHere);
    ExpectAllNoted(calls.options);
  });
}

TEST(GoldenTest, ExceptionsInFlight) {
  ForAllOptions([](const Calls& calls) {
    calls.in_destructor(CaptureHere);
    ExpectAllNoted(calls.options);
    calls.in_catch(CaptureHere);
    ExpectExactly(calls.options);
  });
}

// Walks by frame pointers until the end of the test.
class ByFramePointers {
 public:
  ByFramePointers() { SetUnwindMethod(UnwindMethod::kFramePointers); }
  ~ByFramePointers() { SetUnwindMethod(before_); }

 private:
  const UnwindMethod before_ = unwind_method();
};

bool KeepsFramePointers(const Calls& calls) {
  return std::string_view(calls.options).find("no-omit") != std::string_view::npos;
}

TEST(GoldenTest, FramePointers) {
  const ByFramePointers by_frame_pointers;
  ForAllOptions([](const Calls& calls) {
    if (!KeepsFramePointers(calls)) return;
    calls.recursive(CaptureHere, 50);
    ExpectAllNoted(calls.options);
    calls.aligned_variable_array(CaptureHere, 1000);
    ExpectAllNoted(calls.options);
  });
}

TEST(GoldenTest, FramePointersWhereThereAreNone) {
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "the innermost function has one";
  const ByFramePointers by_frame_pointers;
  ForAllOptions([](const Calls& calls) {
    if (KeepsFramePointers(calls)) return;
    calls.recursive(CaptureHere, 50);
    ExpectExactly(calls.options);
    // One function has a frame pointer for reasons of its own, and those of the test have none.
    calls.variable_array(CaptureHere, 100);
    ExpectExactly(calls.options);
    EXPECT_GT(captured.size(), expected.size() + 2) << calls.options;
  });
}

TEST(GoldenTest, OtherThreads) {
  std::thread thread([] {
    ForAllOptions([](const Calls& calls) {
      calls.busy(CaptureHere);
      ExpectExactly(calls.options);
    });
  });
  thread.join();
}

// Handlers of a signal that is raised in the innermost function.
void CaptureInHandler(int) {
  static void* frames[kMost];
  Remember(frames, CaptureStack(frames, kMost, 0));
}
void CaptureContextInHandler(int, siginfo_t*, void* context) {
  static void* frames[kMost];
  Remember(frames, CaptureStackFrom(context, frames, kMost, 0));
}

__attribute__((noinline)) void RaiseHere() {
  TCM_NOTE_CALL();
  ::raise(SIGUSR1);
}

class HandlerFor {
 public:
  HandlerFor(void (*plain)(int), void (*full)(int, siginfo_t*, void*), int flags) {
    struct sigaction action = {};
    action.sa_flags = flags;
    if (plain != nullptr) {
      action.sa_handler = plain;
    } else {
      action.sa_sigaction = full;
      action.sa_flags |= SA_SIGINFO;
    }
    ::sigaction(SIGUSR1, &action, &old_);
  }
  ~HandlerFor() { ::sigaction(SIGUSR1, &old_, nullptr); }

 private:
  struct sigaction old_;
};

class AlternateStack {
 public:
  AlternateStack() : memory_(64 << 10) {
    const stack_t stack = {.ss_sp = memory_.data(), .ss_flags = 0, .ss_size = memory_.size()};
    ::sigaltstack(&stack, nullptr);
  }
  ~AlternateStack() {
    const stack_t none = {.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
    ::sigaltstack(&none, nullptr);
  }

 private:
  std::vector<char> memory_;
};

TEST(GoldenTest, SignalHandlers) {
  const HandlerFor handler(CaptureInHandler, nullptr, 0);
  ForAllOptions([](const Calls& calls) {
    calls.busy(RaiseHere);
    ExpectAllNoted(calls.options);
  });
}

TEST(GoldenTest, SignalHandlersOnAnAlternateStack) {
  const AlternateStack stack;
  const HandlerFor handler(CaptureInHandler, nullptr, SA_ONSTACK);
  ForAllOptions([](const Calls& calls) {
    calls.busy(RaiseHere);
    ExpectAllNoted(calls.options);
  });
}

TEST(GoldenTest, InterruptedContexts) {
  const AlternateStack stack;
  for (int flags : {0, SA_ONSTACK}) {
    const HandlerFor handler(nullptr, CaptureContextInHandler, flags);
    ForAllOptions([](const Calls& calls) {
      calls.busy(RaiseHere);
      ExpectAllNoted(calls.options);
    });
  }
}

}  // namespace
}  // namespace tcmalloc::testing
