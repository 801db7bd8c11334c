// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Walks that begin where the last one found the way, beside walks that remember nothing.

#include "unwind/remembered_walk.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <memory>

#include "unit/unwind/calls.h"
#include "unit/unwind/compared_walks.h"
#include "unit/unwind/random_calls.h"
#include "unwind/machine.h"
#include "unwind/stack_trace.h"

namespace tcmalloc::testing {
namespace {

using Stack = ComparedWalks::Stack;

constexpr int kMost = ComparedWalks::kMost;

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

// Deeper than what is remembered.
TEST(RememberedWalkTest, FollowsDeepStacks) {
  for (size_t i = 0; i < kAllCallsCount; ++i) {
    for (const int depth : {70, 79, 80, 81, 300}) {
      kAllCalls[i]->recursive(+[] { ComparedWalks::Compare({}); }, depth);
      kAllCalls[i]->recursive(+[] { ComparedWalks::Compare({.limit = 100}); }, depth);
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
  ComparedWalks::Compare({});
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
          ComparedWalks::Compare({});
          ::raise(SIGUSR1);
          ComparedWalks::Compare({});
        },
        10);
  }
  ::sigaction(SIGUSR1, &old, nullptr);
}

TEST(RememberedWalkTest, IsRefusedWhileAnotherWalkHasIt) {
  RememberedWalk* walk = ClaimRememberedWalk();
  ASSERT_NE(walk, nullptr);
  EXPECT_EQ(ClaimRememberedWalk(), nullptr);
  ComparedWalks::Compare({});
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
      if (!ComparedWalks::Compare({})) return;
      Store(begin + i, changed);
      const bool same = ComparedWalks::Compare({});
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
