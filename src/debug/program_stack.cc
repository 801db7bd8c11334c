// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/program_stack.h"

#include <algorithm>

#include "base/attributes.h"
#include "heap_profile/caller_stack.h"
#include "unwind/machine.h"
#include "unwind/stack_trace.h"

namespace tcmalloc {

// Walks by the tables. Returns the number of frames.
TCMALLOC_NOINLINE uint32_t ProgramStack::Walk(const CallSite& site, WalkReads* reads) {
  Registers registers;
  registers.known = 0;
  registers.Set(machine::kStackPointer, site.stack_pointer);
  registers.Set(machine::kFramePointer, site.frame_pointer);
  registers.Set(machine::kPc, site.return_address);
  frames_[0] = reinterpret_cast<void*>(site.return_address);
  constexpr int kRest = static_cast<int>(kMostFrames + kFewOwnFrames) - 1;
  const int rest =
      CaptureCallers(registers, {.addresses = frames_ + 1, .limit = kRest, .reads = reads}, 0);
  return static_cast<uint32_t>(std::max(rest, 0)) + 1;
}

ProgramStack::ProgramStack(const CallSite& site, QuickWalk* quick, WalkReads* reads) {
  uint32_t all = 0;
  if (TCMALLOC_LIKELY(quick != nullptr)) {
    all = quick->Walk(
        {.sp = site.stack_pointer, .frame_pointer = site.frame_pointer, .pc = site.return_address},
        frames_, kMostFrames + kFewOwnFrames, reads);
  }
  if (TCMALLOC_UNLIKELY(all == 0)) all = Walk(site, reads);
  while (first_ < all && IsOwnCode(frames_[first_])) ++first_;
  count_ = std::min(all - first_, kMostFrames);
  if (TCMALLOC_LIKELY(count_ > 0)) return;
  if (reads != nullptr) reads->count = 0;
  WalkFromHere();
}

// Walks where a function on the way may need a register that only a walk from here restores.
TCMALLOC_NOINLINE void ProgramStack::WalkFromHere() {
  const CallerStack walked(kMostFrames);
  first_ = 0;
  count_ = static_cast<uint32_t>(std::min<size_t>(walked.frames().size(), kMostFrames));
  std::copy_n(walked.frames().begin(), count_, frames_);
}

}  // namespace tcmalloc
