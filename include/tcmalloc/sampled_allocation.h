// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The records that hooks for samples get: see tcmalloc/malloc_hook.h, which includes this header.

#ifndef TCMALLOC_INCLUDE_TCMALLOC_SAMPLED_ALLOCATION_H_
#define TCMALLOC_INCLUDE_TCMALLOC_SAMPLED_ALLOCATION_H_

#include <stddef.h>
#include <stdint.h>

#include <chrono>

namespace tcmalloc {

// A block that was sampled.
struct SampledAllocation final {
  enum class Handle : int64_t {};

  // Return addresses, innermost first. Valid while the hook runs.
  class Stack {
   public:
    Stack(const void* const* frames, size_t count) : frames_(frames), count_(count) {}

    const void* const* data() const { return frames_; }
    size_t size() const { return count_; }
    bool empty() const { return count_ == 0; }
    const void* const* begin() const { return frames_; }
    const void* const* end() const { return frames_ + count_; }
    const void* operator[](size_t index) const { return frames_[index]; }

   private:
    const void* const* frames_;
    size_t count_;
  };

  const Handle handle;  // no other sample of the process has it, in all likelihood
  const size_t requested_size;
  const size_t requested_alignment;  // 0 if none was asked for
  const size_t allocated_size;       // bytes of the block
  const double weight;               // blocks for which this one stands
  const Stack stack;                 // that allocated it
  const std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>
      allocation_time;
  const void* ptr;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_INCLUDE_TCMALLOC_SAMPLED_ALLOCATION_H_
