// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Walks that begin where the last one found the way, beside walks that remember nothing.

#ifndef TCMALLOC_TESTS_UNIT_UNWIND_COMPARED_WALKS_H_
#define TCMALLOC_TESTS_UNIT_UNWIND_COMPARED_WALKS_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "unit/unwind/captured_stack.h"
#include "unwind/machine.h"
#include "unwind/stack_trace.h"

namespace tcmalloc::testing {

class ComparedWalks {
 public:
  static constexpr int kMost = 1024;

  using Stack = CapturedStack<kMost>;

  // What is asked of a walk.
  struct Request {
    int limit = kMost;
    int skip = 0;
  };

  // Expects all walks to find the same. Returns false if they do not.
  __attribute__((noinline)) static bool Compare(const Request& request) {
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

 private:
  static std::string Describe(const Stack& stack) {
    std::string text;
    for (int i = 0; i < stack.count; ++i) {
      text +=
          " " + std::to_string(reinterpret_cast<uintptr_t>(stack.frames[static_cast<size_t>(i)]));
    }
    return text;
  }

  // A walk that is asked for the sizes of frames remembers nothing.
  static Stack Fresh(const Registers& registers, const Request& request) {
    static thread_local int sizes[kMost];
    Stack stack;
    stack.count = CaptureCallers(
        registers, {.addresses = stack.frames.data(), .sizes = sizes, .limit = request.limit},
        request.skip);
    return stack;
  }

  // Expects that what the walk says it has read is there, and enough for its frames.
  static void CheckReads(const WalkReads& reads, const Registers& registers, const Stack& stack) {
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

  static Stack Remembered(const Registers& registers, const Request& request) {
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
  static Stack Passing(const Registers& registers, const Request& request) {
    Stack stack;
    stack.count = CaptureCallers(
        registers, {.addresses = stack.frames.data(), .limit = request.limit}, request.skip);
    return stack;
  }
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_UNIT_UNWIND_COMPARED_WALKS_H_
