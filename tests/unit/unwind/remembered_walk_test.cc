// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Walks that begin where the last one found the way, beside walks that remember nothing.

#include "unwind/remembered_walk.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "unit/unwind/calls.h"
#include "unit/unwind/captured_stack.h"
#include "unwind/machine.h"
#include "unwind/stack_trace.h"

namespace tcmalloc::testing {
namespace {

constexpr int kMost = 1024;

using Stack = CapturedStack<kMost>;

std::string Describe(const Stack& stack) {
  std::string text;
  for (int i = 0; i < stack.count; ++i) {
    text += " " + std::to_string(reinterpret_cast<uintptr_t>(stack.frames[i]));
  }
  return text;
}

// What is asked of a walk.
struct Request {
  int limit = kMost;
  int skip = 0;
};

// A walk that is asked for the sizes of frames remembers nothing.
Stack Fresh(const Registers& registers, const Request& request) {
  static thread_local int sizes[kMost];
  Stack stack;
  stack.count = CaptureCallers(
      registers, {.addresses = stack.frames.data(), .sizes = sizes, .limit = request.limit},
      request.skip);
  return stack;
}

// Expects that what the walk says it has read is there, and enough for its frames.
void CheckReads(const WalkReads& reads, const Registers& registers, const Stack& stack) {
  int returns = 0;
  for (uint32_t i = 0; i < reads.count; ++i) {
    const WalkReads::Read& read = reads.reads[i];
    const uintptr_t word =
        read.at != 0 ? machine::LoadWord(read.at) : registers.values[machine::kFramePointer];
    EXPECT_EQ(machine::StripAuthentication(word), read.value) << i;
    if (returns < stack.count &&
        read.value == reinterpret_cast<uintptr_t>(stack.frames[static_cast<size_t>(returns)])) {
      ++returns;
    }
  }
  if (reads.count != 0) {
    EXPECT_EQ(returns, stack.count);
  }
}

Stack Remembered(const Registers& registers, const Request& request) {
  Stack stack;
  WalkReads reads;
  stack.count = CaptureCallers(
      registers, {.addresses = stack.frames.data(), .limit = request.limit, .reads = &reads},
      request.skip);
  CheckReads(reads, registers, stack);
  if (request.skip != 0) {
    EXPECT_EQ(reads.count, 0U);
  }
  return stack;
}

// Does not ask what was read, so that the walk may pass frames.
Stack Passing(const Registers& registers, const Request& request) {
  Stack stack;
  stack.count = CaptureCallers(
      registers, {.addresses = stack.frames.data(), .limit = request.limit}, request.skip);
  return stack;
}

// Expects all walks to find the same. Returns false if they do not.
__attribute__((noinline)) bool Compare(const Request& request) {
  Registers registers;
  machine::ReadOwnRegisters(&registers);
  const Stack passing = Passing(registers, request);
  const Stack remembered = Remembered(registers, request);
  const Stack fresh = Fresh(registers, request);
  EXPECT_EQ(remembered, fresh) << "remembered:" << Describe(remembered)
                               << "\nfresh:" << Describe(fresh);
  EXPECT_EQ(passing, fresh) << "passing:" << Describe(passing) << "\nfresh:" << Describe(fresh);
  return remembered == fresh && passing == fresh;
}

// Makes calls of all kinds at random, and captures on the way down and up.
class RandomCalls {
 public:
  RandomCalls(unsigned seed, int captures) : random_(seed), left_(captures) {}

  void Run() {
    current = this;
    while (left_ > 0) Visit();
    current = nullptr;
  }

 private:
  static constexpr int kDeepest = 60;

  static void VisitCurrent() { current->Visit(); }

  __attribute__((noinline)) void Visit() {
    ++depth_;
    for (int calls = Below(4); calls >= 0 && left_ > 0; --calls) {
      if (Below(2) == 0) Capture();
      if (depth_ < kDeepest) CallOne();
    }
    --depth_;
  }

  void Capture() {
    --left_;
    const Request request = {.limit = Below(3) == 0 ? 1 + Below(30) : kMost,
                             .skip = Below(3) == 0 ? Below(8) : 0};
    if (!Compare(request)) left_ = 0;
  }

  void CallOne() {
    const Calls& calls = *kAllCalls[Below(static_cast<int>(kAllCallsCount))];
    switch (Below(9)) {
      case 0:
        calls.plain(VisitCurrent);
        break;
      case 1:
        calls.recursive(VisitCurrent, Below(20));
        break;
      case 2:
        calls.variable_array(VisitCurrent, static_cast<size_t>(Below(4)) * 16 + 1);
        break;
      case 3:
        calls.aligned(VisitCurrent);
        break;
      case 4:
        calls.aligned_variable_array(VisitCurrent, static_cast<size_t>(Below(4)) * 16 + 1);
        break;
      case 5:
        calls.busy(VisitCurrent);
        break;
      case 6:
        calls.through_libc(VisitCurrent);
        break;
      case 7:
        calls.tail_call(VisitCurrent);
        break;
      default:
        calls.many_arguments(VisitCurrent);
        break;
    }
  }

  int Below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }

  static thread_local RandomCalls* current;
  std::minstd_rand random_;
  int left_;
  int depth_ = 0;
};

thread_local RandomCalls* RandomCalls::current = nullptr;

TEST(RememberedWalkTest, FindsWhatAFreshWalkFinds) {
  for (unsigned seed = 1; seed <= 20; ++seed) RandomCalls(seed, 1000).Run();
}

// Each half of the program's functions is taken for the library that the walks begin in.
TEST(RememberedWalkTest, PassesFramesOfTheLibrary) {
  LoadedObject program;
  const auto middle = reinterpret_cast<uintptr_t>(kAllCalls[kAllCallsCount / 2]->plain);
  ASSERT_TRUE(FindLoadedObject(middle, /*runs=*/true, &program));
  for (unsigned seed = 1; seed <= 10; ++seed) {
    SetOwnLibrary(program.start, middle);
    RandomCalls(seed, 1000).Run();
    SetOwnLibrary(middle, program.end);
    RandomCalls(seed, 1000).Run();
  }
  SetOwnLibrary(0, 0);
}

TEST(RememberedWalkTest, FindsWhatAFreshWalkFindsInManyThreads) {
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 8; ++seed) {
    threads.emplace_back([seed] { RandomCalls(seed, 2000).Run(); });
  }
  for (std::thread& thread : threads) thread.join();
}

// Deeper than what is remembered.
TEST(RememberedWalkTest, FollowsDeepStacks) {
  for (size_t i = 0; i < kAllCallsCount; ++i) {
    for (const int depth : {70, 79, 80, 81, 300}) {
      kAllCalls[i]->recursive(+[] { Compare({}); }, depth);
      kAllCalls[i]->recursive(+[] { Compare({.limit = 100}); }, depth);
    }
  }
}

__attribute__((noinline)) void CompareWithinSignal(int, siginfo_t*, void* context) {
  static Stack remembered;
  static Stack fresh;
  static int sizes[kMost];
  const auto capture = [&](Stack* stack, int* frame_sizes) {
    stack->count = CaptureInterrupted(
        context, {.addresses = stack->frames.data(), .sizes = frame_sizes, .limit = kMost}, 0);
  };
  capture(&remembered, nullptr);
  capture(&fresh, sizes);
  EXPECT_EQ(remembered, fresh);
  Compare({});
}

TEST(RememberedWalkTest, StartsInHandlers) {
  struct sigaction action = {};
  struct sigaction old = {};
  action.sa_sigaction = CompareWithinSignal;
  action.sa_flags = SA_SIGINFO;
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &old), 0);
  for (size_t i = 0; i < kAllCallsCount; ++i) {
    kAllCalls[i]->recursive(
        +[] {
          Compare({});
          ::raise(SIGUSR1);
          Compare({});
        },
        10);
  }
  ::sigaction(SIGUSR1, &old, nullptr);
}

TEST(RememberedWalkTest, IsRefusedWhileAnotherWalkHasIt) {
  RememberedWalk* walk = ClaimRememberedWalk();
  ASSERT_NE(walk, nullptr);
  EXPECT_EQ(ClaimRememberedWalk(), nullptr);
  Compare({});
  walk->Release();
  EXPECT_EQ(ClaimRememberedWalk(), walk);
  walk->Release();
}

__attribute__((noinline)) void CaptureTwice(RememberedWalk* walk, size_t* first, size_t* second) {
  Registers registers;
  machine::ReadOwnRegisters(&registers);
  Stack stack;
  for (size_t* const size : {first, second}) {
    Walker walker(registers, true, Walker::Precision::kFewRegisters, walk->objects());
    walk->Walk(walker, {.addresses = stack.frames.data(), .limit = kMost}, 0, &stack.count);
    walk->CheckInvariants();
    *size = walk->size();
  }
}

TEST(RememberedWalkTest, RemembersEachFrameOnce) {
  const auto walk = std::make_unique<RememberedWalk>();
  size_t first = 0;
  size_t second = 0;
  CaptureTwice(walk.get(), &first, &second);
  EXPECT_GT(first, 3u);
  EXPECT_EQ(second, first);
}

__attribute__((no_sanitize("address", "thread"))) void Store(uintptr_t* place, uintptr_t word) {
  *place = word;
}

__attribute__((no_sanitize("address", "thread"))) uintptr_t Load(const uintptr_t* place) {
  return *place;
}

// Changes the words of the frames above, one at a time: each that led to a caller is read again.
__attribute__((noinline)) void ChangeEachWord() {
  constexpr size_t kWords = 300;
  auto* const begin = static_cast<uintptr_t*>(__builtin_frame_address(0));
  for (size_t i = 2; i < kWords; ++i) {
    const uintptr_t word = Load(begin + i);
    for (const uintptr_t changed : {uintptr_t{0}, word + 16, word - 16, word + 256}) {
      if (!Compare({})) return;
      Store(begin + i, changed);
      const bool same = Compare({});
      Store(begin + i, word);
      if (!same) return;
    }
  }
}

TEST(RememberedWalkTest, SeesEachChangedWord) {
  for (size_t i = 0; i < kAllCallsCount; ++i) {
    const Calls& calls = *kAllCalls[i];
    calls.recursive(ChangeEachWord, 3);
    calls.busy(ChangeEachWord);
    calls.variable_array(ChangeEachWord, 48);
    calls.aligned(ChangeEachWord);
    calls.aligned_variable_array(ChangeEachWord, 48);
    calls.many_arguments(ChangeEachWord);
  }
}

}  // namespace
}  // namespace tcmalloc::testing
