// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Quick walks, beside walks that remember nothing.

#include "unwind/quick_walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "unit/unwind/calls.h"
#include "unit/unwind/loaded_plugin.h"
#include "unwind/cfi.h"
#include "unwind/loaded_objects.h"
#include "unwind/machine.h"
#include "unwind/stack_trace.h"

namespace tcmalloc::testing {
namespace {

constexpr uint32_t kMost = QuickWalk::kMostFrames;

using Addresses = std::vector<void*>;

// Returns where the function begins that a call of which returns to `address`.
uintptr_t FunctionOf(const void* address) {
  const uintptr_t pc = reinterpret_cast<uintptr_t>(address) - 1;
  LoadedObject object;
  FrameRules rules;
  if (!FindLoadedObject(pc, /*runs=*/true, &object) || !ReadFrameRules(object, pc, nullptr, &rules))
    return 0;
  return rules.function;
}

// Leaves out the frames of functions that are further in.
Addresses WithoutRepeated(const Addresses& all) {
  Addresses left;
  std::vector<uintptr_t> functions;
  for (void* address : all) {
    const uintptr_t function = FunctionOf(address);
    if (std::ranges::find(functions, function) != functions.end()) continue;
    functions.push_back(function);
    left.push_back(address);
  }
  return left;
}

// A walk that is asked for the sizes of frames remembers nothing.
Addresses Fresh(const QuickWalk::Frame& frame, uint32_t limit) {
  Registers registers;
  registers.known = 0;
  registers.Set(machine::kStackPointer, frame.sp);
  registers.Set(machine::kFramePointer, frame.frame_pointer);
  registers.Set(machine::kPc, frame.pc);
  void* addresses[kMost];
  int sizes[kMost];
  addresses[0] = reinterpret_cast<void*>(frame.pc);
  const int rest = CaptureCallers(
      registers, {.addresses = addresses + 1, .sizes = sizes, .limit = static_cast<int>(limit) - 1},
      0);
  return Addresses(addresses, addresses + 1 + rest);
}

struct Outcome {
  int quick = 0;  // walks
  int other = 0;
};

// Compares the walks from where this function will return to. Returns false if they differ.
__attribute__((noinline)) bool Compare(QuickWalk& quick, uint32_t limit, Outcome* outcome) {
  const QuickWalk::Frame frame = {
      .sp = reinterpret_cast<uintptr_t>(__builtin_dwarf_cfa()),
      .frame_pointer = *static_cast<const uintptr_t*>(__builtin_frame_address(0)),
      .pc = machine::StripAuthentication(reinterpret_cast<uintptr_t>(__builtin_return_address(0)))};
  void* addresses[kMost];
  WalkReads reads;
  const uint32_t count = quick.Walk(frame, addresses, limit, &reads);
  for (uint32_t i = 0; i < reads.count; ++i) {
    const WalkReads::Read& read = reads.reads[i];
    const uintptr_t word = read.at != 0 ? machine::LoadWord(read.at) : frame.frame_pointer;
    EXPECT_EQ(machine::StripAuthentication(word), read.value) << i;
  }
  ++(count != 0 ? outcome->quick : outcome->other);
  if (count == 0) {
    EXPECT_EQ(reads.count, 0U);
    return true;
  }
  const Addresses found(addresses, addresses + count);
  const Addresses wanted = WithoutRepeated(Fresh(frame, limit));
  EXPECT_EQ(found, wanted);
  return found == wanted;
}

// Makes calls of all kinds at random, and compares on the way down and up.
class RandomCalls {
 public:
  RandomCalls(unsigned seed, int walks) : random_(seed), left_(walks) {}

  Outcome Run() {
    current = this;
    while (left_ > 0) Visit();
    current = nullptr;
    return outcome_;
  }

 private:
  static constexpr int kDeepest = 20;

  static void VisitCurrent() { current->Visit(); }

  __attribute__((noinline)) void Visit() {
    ++depth_;
    for (int calls = Below(4); calls >= 0 && left_ > 0; --calls) {
      if (Below(2) == 0) {
        --left_;
        const uint32_t limit = Below(3) == 0 ? 2 + static_cast<uint32_t>(Below(kMost - 1)) : kMost;
        if (!Compare(*quick_, limit, &outcome_)) left_ = 0;
      }
      if (depth_ < kDeepest) CallOne();
    }
    --depth_;
  }

  void CallOne() {
    const Calls& calls = *kAllCalls[Below(static_cast<int>(kAllCallsCount))];
    switch (Below(6)) {
      case 0:
        return calls.plain(VisitCurrent);
      case 1:
        return calls.recursive(VisitCurrent, Below(20));
      case 2:
        return calls.variable_array(VisitCurrent, static_cast<size_t>(Below(4)) * 16 + 1);
      case 3:
        return calls.busy(VisitCurrent);
      case 4:
        return calls.through_libc(VisitCurrent);
      default:
        return calls.many_arguments(VisitCurrent);
    }
  }

  int Below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }

  static thread_local RandomCalls* current;
  std::minstd_rand random_;
  int left_;
  int depth_ = 0;
  Outcome outcome_;
  std::unique_ptr<QuickWalk> quick_ = std::make_unique<QuickWalk>();
};

thread_local RandomCalls* RandomCalls::current = nullptr;

TEST(QuickWalkTest, FindsWhatAFreshWalkFinds) {
  Outcome all;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const Outcome outcome = RandomCalls(seed, 500).Run();
    all.quick += outcome.quick;
    all.other += outcome.other;
  }
  EXPECT_GT(all.quick, 1000) << "of " << all.quick + all.other;
}

TEST(QuickWalkTest, FindsWhatAFreshWalkFindsInAThread) {
  Outcome outcome;
  std::thread([&] { outcome = RandomCalls(7, 2000).Run(); }).join();
  EXPECT_GT(outcome.quick, 0);
}

thread_local QuickWalk* quick_of_test;
thread_local Outcome outcome_of_test;

// The two libraries have the same code, but for the size of the frame.
TEST(QuickWalkTest, ALibraryInPlaceOfAnotherIsToldApart) {
  const auto quick = std::make_unique<QuickWalk>();
  quick_of_test = quick.get();
  outcome_of_test = {};
  int same_place = 0;
  LoadedPlugin::CallBack last = nullptr;
  for (int i = 0; i < 20; ++i) {
    for (const char* name : {"libunwind_plugin_a.so", "libunwind_plugin_b.so"}) {
      const LoadedPlugin plugin(name);
      if (plugin.call_back() == last) ++same_place;
      last = plugin.call_back();
      for (int call = 0; call < 2; ++call) {
        plugin.call_back()(+[] { Compare(*quick_of_test, kMost, &outcome_of_test); });
      }
    }
  }
  EXPECT_GT(outcome_of_test.quick, 0);
  if (same_place == 0) GTEST_SKIP() << "no library came to the place of another";
}

}  // namespace
}  // namespace tcmalloc::testing
