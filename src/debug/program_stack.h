// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The stack of the program that called an entry point of the debug libraries.

#ifndef TCMALLOC_DEBUG_PROGRAM_STACK_H_
#define TCMALLOC_DEBUG_PROGRAM_STACK_H_

#include <cstdint>
#include <span>

namespace tcmalloc {

// Return addresses, innermost first, without this library's own. The entry points and this layer
// are compiled with frame pointers, so that the walk through the tables begins above them; they
// would be a third of its work.
class ProgramStack {
 public:
  static constexpr uint32_t kMostFrames = 16;

  // Captures the stack of the running thread.
  ProgramStack();

  std::span<void* const> frames() const { return {frames_, count_}; }

 private:
  void* frames_[kMostFrames];
  uint32_t count_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_PROGRAM_STACK_H_
