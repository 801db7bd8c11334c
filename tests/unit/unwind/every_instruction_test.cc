// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Interrupts functions after each of their instructions, by the processor's trap flag, and walks
// the stack from there: in prologues and epilogues, in procedure linkage tables, while the dynamic
// linker binds a function, and inside libc.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "unit/unwind/calls.h"
#include "unwind/stack_trace.h"

extern "C" const char tcm_stepping_ends;
extern "C" const char tcm_stepping_ended;

namespace tcmalloc::testing {
namespace {

constexpr int kMost = 256;

void* return_address;  // of the function that is stepped through
int steps = 0;
int lost = 0;
void* first_lost[kMost];
int first_lost_count = 0;

// Instructions that the tables of this test know nothing of.
bool IsEndOfStepping(const void* address) {
  return address >= &tcm_stepping_ends && address < &tcm_stepping_ended;
}

void Handle(int, siginfo_t*, void* context) {
  void* frames[kMost];
  const int count = CaptureStackFrom(context, frames, kMost, 0);
  if (IsEndOfStepping(frames[0])) return;
  ++steps;
  if (std::find(frames, frames + count, return_address) != frames + count) return;
  if (lost++ != 0) return;
  std::copy(frames, frames + count, first_lost);
  first_lost_count = count;
}

void Nothing() {}

// By functions of libc that nothing else in this program calls, so that they are bound here.
__attribute__((noinline)) long CallLibc() {
  char* end = nullptr;
  const char* volatile text = "123 ";
  return std::strtol(text, &end, 7) + std::labs(std::atol(text)) +
         static_cast<long>(std::strcspn(text, "x"));
}

__attribute__((noinline, used)) void StepThrough(const Calls& calls) {
  return_address = __builtin_extract_return_addr(__builtin_return_address(0));
  asm volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" : : : "memory", "cc");
  calls.busy(Nothing);
  calls.many_arguments(Nothing);
  calls.tail_call(Nothing);
  calls.variable_array(Nothing, 100);
  calls.through_libc(Nothing);
  CallLibc();
  asm volatile("tcm_stepping_ends:\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\ntcm_stepping_ended:"
               :
               :
               : "memory", "cc");
}

std::string Describe() {
  std::string text = "lost at the first address:\n";
  for (int i = 0; i < first_lost_count; ++i) {
    char line[32];
    std::snprintf(line, sizeof(line), "  %p\n", first_lost[i]);
    text += line;
  }
  return text;
}

TEST(EveryInstructionTest, TheCallerIsFoundFromEachOfThem) {
  struct sigaction action = {};
  action.sa_sigaction = Handle;
  action.sa_flags = SA_SIGINFO;
  struct sigaction old;
  ::sigaction(SIGTRAP, &action, &old);
  // The handler's first walk is long; nothing of it shall be bound while stepping.
  ::raise(SIGTRAP);
  for (size_t i = 0; i < kAllCallsCount; ++i) {
    steps = lost = first_lost_count = 0;
    StepThrough(*kAllCalls[i]);
    EXPECT_GT(steps, 1000) << kAllCalls[i]->options;
    EXPECT_EQ(lost, 0) << kAllCalls[i]->options << " of " << steps << " steps\n" << Describe();
  }
  ::sigaction(SIGTRAP, &old, nullptr);
}

}  // namespace
}  // namespace tcmalloc::testing
