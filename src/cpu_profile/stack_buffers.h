// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Room for stacks that signal handlers capture.

#ifndef TCMALLOC_CPU_PROFILE_STACK_BUFFERS_H_
#define TCMALLOC_CPU_PROFILE_STACK_BUFFERS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cpu_profile/stack_counts.h"

namespace tcmalloc {

// Buffers of kMostFrames places each, for handlers that may run on a small stack of their own: the
// run time of Rust gives its threads 8 KiB, of which the kernel takes up to half for the registers.
// Lock-free; thread safe, also in signal handlers. Constant-initialised.
class StackBuffers {
 public:
  using Buffer = std::array<void*, kMostFrames>;

  constexpr StackBuffers() = default;
  StackBuffers(const StackBuffers&) = delete;
  StackBuffers& operator=(const StackBuffers&) = delete;

  // Returns a buffer that nobody else has until Release, or null if each is in use.
  Buffer* Claim() {
    const size_t first = reinterpret_cast<uintptr_t>(__builtin_thread_pointer()) >> 12;
    for (size_t i = 0; i < kBuffers; ++i) {
      const size_t n = (first + i) % kBuffers;
      // Acquire pairs with the release in Release.
      if (!in_use_[n].exchange(true, std::memory_order_acquire)) return &buffers_[n];
    }
    return nullptr;
  }
  void Release(Buffer* buffer) {
    // Release pairs with the acquire in Claim.
    in_use_[static_cast<size_t>(buffer - buffers_)].store(false, std::memory_order_release);
  }
  // Takes back those of threads that vanished in a fork. Called in the child, by its only thread.
  void ReleaseAll() {
    for (std::atomic<bool>& in_use : in_use_) in_use.store(false, std::memory_order_relaxed);
  }

 private:
  static constexpr size_t kBuffers = 64;

  std::atomic<bool> in_use_[kBuffers] = {};
  Buffer buffers_[kBuffers] = {};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CPU_PROFILE_STACK_BUFFERS_H_
