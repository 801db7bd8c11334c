// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Who made the heap grow.

#ifndef TCMALLOC_HEAP_PROFILE_GROWTH_LOG_H_
#define TCMALLOC_HEAP_PROFILE_GROWTH_LOG_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/relaxed.h"
#include "heap_profile/chunked_array.h"
#include "heap_profile/stack_table.h"

namespace tcmalloc {

// The heap grows by an eighth of its size, so that growths are few, and all are kept. The log is
// full after kMostGrowths, and those that follow are added to the last record. Thread safe, without
// a lock; async-signal-safe.
class GrowthLog {
 public:
  constexpr explicit GrowthLog(StackTable& stacks) : stacks_(stacks) {}
  GrowthLog(const GrowthLog&) = delete;
  GrowthLog& operator=(const GrowthLog&) = delete;

  // Takes over the caller's reference to `stack`, which may be 0.
  void Add(size_t bytes, StackId stack);

  // Calls f(uint64_t count, uint64_t bytes, StackId) for each record.
  template <typename F>
  void ForEach(F f) const {
    const uint32_t used = std::min(used_.load(std::memory_order_relaxed), kMostGrowths);
    for (uint32_t i = 0; i < used; ++i) {
      const Growth* growth = growths_.Find(i);
      // Acquire pairs with the release in Add and publishes the record.
      const uint64_t count = growth != nullptr ? growth->count.load(std::memory_order_acquire) : 0;
      if (count != 0) f(count, growth->bytes.load(std::memory_order_relaxed), growth->stack);
    }
  }

 private:
  static constexpr uint32_t kMostGrowths = 1 << 14;

  struct Growth {
    std::atomic<uint64_t> count;
    std::atomic<uint64_t> bytes;
    Relaxed<StackId> stack;
  };

  StackTable& stacks_;
  // A few lie inside, because the first come in every process.
  ChunkedArray<Growth, 16, FirstChunk::kInside> growths_;
  std::atomic<uint32_t> used_{0};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_GROWTH_LOG_H_
