// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/caller_stack.h"

#include <algorithm>
#include <cstddef>

#include "system/own_object.h"

// libs/early_start.cc is in shared libraries alone.
extern "C" {
__attribute__((weak, visibility("hidden"))) extern void (*tcmalloc_early_start_reference)();
}

namespace tcmalloc {

bool IsOwnCode(const void* address) {
  // In a program that gold has linked, the address of a hidden variable that is not there is that
  // of the first byte.
  const void* const reference = &tcmalloc_early_start_reference;
  if (reference == nullptr || reference == __ehdr_start) return false;
  return IsInOwnObject(address);
}

int CallerStack::WithOwn(uint32_t limit) {
  const uint32_t own = limit < kMostFrames ? kFewOwnFrames : kMostOwnFrames;
  return static_cast<int>(std::min(limit, kMostFrames) + own);
}

CallerStack::CallerStack(uint32_t limit) {
  LeaveOutOwn(CaptureStack(frames_, WithOwn(limit), 0), limit);
}

CallerStack::CallerStack(const Registers& caller, uint32_t limit) {
  LeaveOutOwn(CaptureCallers(caller, {.addresses = frames_, .limit = WithOwn(limit)}, 0), limit);
}

CallerStack::CallerStack(const StackCopy& copy) {
  constexpr int kMost = static_cast<int>(kMostFrames + kMostOwnFrames);
  LeaveOutOwn(CaptureFromCopy(copy, {.addresses = frames_, .limit = kMost}, 0), kMostFrames);
}

void CallerStack::LeaveOutOwn(int captured, uint32_t limit) {
  const auto all = static_cast<uint32_t>(std::max(captured, 0));
  while (first_ < all && IsOwnCode(frames_[first_])) ++first_;
  count_ = std::min({all - first_, limit, kMostFrames});
}

bool CallerStack::LeaveOutHook() {
  void* const* end = frames_ + first_ + count_;
  void* const* begin = frames_ + first_;
  void* const* own = std::find_if(begin, end, IsOwnCode);
  void* const* program = std::find_if_not(own, end, IsOwnCode);
  if (program == end) return false;
  first_ = static_cast<uint32_t>(program - frames_);
  count_ = static_cast<uint32_t>(end - program);
  return true;
}

}  // namespace tcmalloc
