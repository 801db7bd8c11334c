// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The stack of the program that called this library.

#ifndef TCMALLOC_HEAP_PROFILE_CALLER_STACK_H_
#define TCMALLOC_HEAP_PROFILE_CALLER_STACK_H_

#include <cstdint>
#include <span>

#include "heap_profile/stack_table.h"
#include "unwind/machine.h"
#include "unwind/stack_trace.h"

namespace tcmalloc {

// Returns true for code of this library, if it is a shared one; in a static program nothing tells
// it apart.
bool IsOwnCode(const void* address);

// Return addresses, innermost first.
class CallerStack {
 public:
  // Captures at most `limit` frames of the stack of the running thread. Leaves out the innermost
  // frames as far as they lie in this library, if it is a shared one; in a static program nothing
  // tells them apart.
  explicit CallerStack(uint32_t limit = kMostFrames);

  // Captures the stack of a function that is making a call and that has these registers. It may be
  // another stack than the running one.
  explicit CallerStack(const Registers& caller, uint32_t limit = kMostFrames);

  // Captures the stack from a copy that a function of this library made.
  explicit CallerStack(const StackCopy& copy);

  // Leaves out a hook of the program's that asks for the stack, and what called it in this library.
  // Returns false and changes nothing where it cannot tell.
  bool LeaveOutHook();

  std::span<void* const> frames() const { return {frames_ + first_, count_}; }

 private:
  // The library's own frames, of which there are fewer.
  static constexpr uint32_t kMostOwnFrames = 16;
  // The number of own frames that a limited capture allows for. Where there are more, the outermost
  // frames of the program are missing.
  static constexpr uint32_t kFewOwnFrames = 6;

  // Returns how many frames to capture for `limit` of the program's.
  static int WithOwn(uint32_t limit);
  void LeaveOutOwn(int captured, uint32_t limit);

  void* frames_[kMostFrames + kMostOwnFrames];
  uint32_t first_ = 0;
  uint32_t count_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_CALLER_STACK_H_
