// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The stack of the program that called an entry point, walked from where the debug heap was
// entered.

#ifndef TCMALLOC_DEBUG_PROGRAM_STACK_H_
#define TCMALLOC_DEBUG_PROGRAM_STACK_H_

#include <cstdint>
#include <span>

#include "base/attributes.h"
#include "unwind/quick_walk.h"
#include "unwind/stack_frames.h"

namespace tcmalloc {

// Where a function will return to.
struct CallSite {
  uintptr_t stack_pointer = 0;  // there
  uintptr_t frame_pointer = 0;  // likewise
  uintptr_t return_address = 0;

  // That of the function that this is called in, which must not end before the walk.
  TCMALLOC_ALWAYS_INLINE static CallSite OfThisFunction() {
    return {.stack_pointer = reinterpret_cast<uintptr_t>(__builtin_dwarf_cfa()),
            .frame_pointer = *static_cast<const uintptr_t*>(__builtin_frame_address(0)),
            .return_address = reinterpret_cast<uintptr_t>(__builtin_return_address(0))};
  }
};

// Return addresses, innermost first, without those of this library if it is a shared one. A walk
// from a call site leaves out the frames of the debug heap, which would be half of its work.
class ProgramStack {
 public:
  static constexpr uint32_t kMostFrames = 16;

  // Captures the stack of the running thread above `site`, by `quick` if that is not null and can.
  // Tells what the walk read, if `reads` is not null.
  explicit ProgramStack(const CallSite& site, QuickWalk* quick = nullptr,
                        WalkReads* reads = nullptr);

  std::span<void* const> frames() const { return {frames_ + first_, count_}; }

 private:
  // Frames between an entry point and the debug heap; the outermost frames miss where there are
  // more of them.
  static constexpr uint32_t kFewOwnFrames = 3;

  uint32_t Walk(const CallSite& site, WalkReads* reads);
  void WalkFromHere();

  void* frames_[kMostFrames + kFewOwnFrames];
  uint32_t first_ = 0;
  uint32_t count_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_PROGRAM_STACK_H_
