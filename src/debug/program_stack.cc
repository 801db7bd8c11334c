// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/program_stack.h"

#include <algorithm>

#include "heap_profile/caller_stack.h"
#include "unwind/machine.h"
#include "unwind/stack_trace.h"

namespace tcmalloc {
namespace {

// What a frame pointer points to, on all architectures here.
struct FrameRecord {
  const FrameRecord* caller;
  void* return_address;
};

// More frames of this library than lie between an entry point and a capture.
constexpr int kMostOwnFrames = 12;

}  // namespace

ProgramStack::ProgramStack() {
  const auto* frame = static_cast<const FrameRecord*>(__builtin_frame_address(0));
  for (int i = 0; i < kMostOwnFrames && IsOwnCode(frame->return_address); ++i) {
    frame = frame->caller;
  }
  Registers registers;
  registers.values[machine::kFramePointer] = reinterpret_cast<uintptr_t>(frame->caller);
  registers.values[machine::kStackPointer] = reinterpret_cast<uintptr_t>(frame + 1);
  registers.values[machine::kPc] = reinterpret_cast<uintptr_t>(frame->return_address);
  registers.known = uint32_t{1} << machine::kFramePointer | uint32_t{1} << machine::kStackPointer |
                    uint32_t{1} << machine::kPc;
  frames_[0] = frame->return_address;
  constexpr int kRest = static_cast<int>(kMostFrames) - 1;
  const int rest = CaptureCallers(registers, {.addresses = frames_ + 1, .limit = kRest}, 0);
  count_ = static_cast<uint32_t>(std::max(rest, 0)) + 1;
  if (rest > 0) return;
  // The program's innermost function may need a register that only a walk from here restores.
  const CallerStack walked(kMostFrames);
  count_ = static_cast<uint32_t>(std::min<size_t>(walked.frames().size(), kMostFrames));
  std::copy_n(walked.frames().begin(), count_, frames_);
}

}  // namespace tcmalloc
