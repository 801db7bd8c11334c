// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/stack_switch.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "system/signal_mask.h"

namespace tcmalloc {
namespace {

constexpr size_t kBytes = size_t{64} << 10;

struct Call {
  uintptr_t frame = 0;
  int calls = 0;
};

TEST(StackSwitchTest, CallsOnTheOtherStackAndReturns) {
  alignas(64) static char stack[kBytes];
  Call call;
  const auto own = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  {
    const SignalsBlocked blocked;
    const auto note = [](void* argument) {
      auto* noted = static_cast<Call*>(argument);
      noted->frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
      ++noted->calls;
    };
    CallOnStack(stack + kBytes, note, &call);
    CallOnStack(stack + kBytes, note, &call);
  }
  EXPECT_EQ(call.calls, 2);
  EXPECT_GE(call.frame, reinterpret_cast<uintptr_t>(stack));
  EXPECT_LT(call.frame, reinterpret_cast<uintptr_t>(stack) + kBytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(__builtin_frame_address(0)), own);
}

}  // namespace
}  // namespace tcmalloc
