// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The places that a walk of the stack fills: those for its frames and for the words that it read.

#ifndef TCMALLOC_UNWIND_STACK_FRAMES_H_
#define TCMALLOC_UNWIND_STACK_FRAMES_H_

#include <cstdint>

namespace tcmalloc {

// The words that a walk's result depends on. A walk from the same stack pointer and return address
// that would read the same words ends with the same addresses, as long as the objects are loaded
// whose functions are on the stack.
struct WalkReads {
  static constexpr uint32_t kMost = 32;

  struct Read {
    uintptr_t at;  // address of the word; 0 stands for the frame pointer that the walk began with
    uintptr_t value;  // without authentication
  };

  Read reads[kMost];   // from the innermost frame on
  uint32_t count = 0;  // 0 if they are not known
};

// Where a capture puts its result.
struct StackFrames {
  void** addresses;      // of the code in each frame
  int* sizes = nullptr;  // bytes of each frame, 0 where they are not known; may be null
  int limit = 0;         // places in both
  // Gets what the walk read, if it is not null. Known of walks by the tables alone that leave out
  // no frame but the one they begin at, and are no longer than kMost allows.
  WalkReads* reads = nullptr;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_UNWIND_STACK_FRAMES_H_
