// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/caller_stack.h"

#include <algorithm>
#include <cstddef>

#include "unwind/stack_trace.h"

// The linker's names for the first byte of this object and the one behind its last;
// libs/early_start.cc is in shared libraries alone.
extern "C" {
extern const char __ehdr_start[] __attribute__((weak, visibility("hidden")));
extern const char _end[] __attribute__((weak, visibility("hidden")));
__attribute__((weak, visibility("hidden"))) extern void (*tcmalloc_early_start_reference)();
}

namespace tcmalloc {

bool IsOwnCode(const void* address) {
  if (&tcmalloc_early_start_reference == nullptr) return false;
  return address >= static_cast<const void*>(__ehdr_start) &&
         address < static_cast<const void*>(_end);
}

CallerStack::CallerStack(uint32_t limit) {
  const uint32_t own = limit < kMostFrames ? kFewOwnFrames : kMostOwnFrames;
  const int captured =
      CaptureStack(frames_, static_cast<int>(std::min(limit, kMostFrames) + own), 0);
  const auto all = static_cast<uint32_t>(std::max(captured, 0));
  while (first_ < all && IsOwnCode(frames_[first_])) ++first_;
  count_ = std::min({all - first_, limit, kMostFrames});
}

void CallerStack::LeaveOutHook() {
  void* const* end = frames_ + first_ + count_;
  void* const* begin = frames_ + first_;
  void* const* own = std::find_if(begin, end, IsOwnCode);
  void* const* program = std::find_if_not(own, end, IsOwnCode);
  if (program == end) return;
  first_ = static_cast<uint32_t>(program - frames_);
  count_ = static_cast<uint32_t>(end - program);
}

}  // namespace tcmalloc
