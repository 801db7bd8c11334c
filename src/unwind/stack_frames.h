// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What is asked of a walk.

#ifndef TCMALLOC_UNWIND_STACK_FRAMES_H_
#define TCMALLOC_UNWIND_STACK_FRAMES_H_

namespace tcmalloc {

// Where a capture puts its result.
struct StackFrames {
  void** addresses;      // of the code in each frame
  int* sizes = nullptr;  // bytes of each frame, 0 where they are not known; may be null
  int limit = 0;         // places in both
  // Frames up to this address on the stack are left out, before any are skipped: those of the
  // function that took it by __builtin_frame_address(0), and of all that it called.
  const void* above = nullptr;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_UNWIND_STACK_FRAMES_H_
