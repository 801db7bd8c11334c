// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Counts the blocks that no size class serves.

#ifndef TCMALLOC_UPKEEP_LARGE_TOTALS_H_
#define TCMALLOC_UPKEEP_LARGE_TOTALS_H_

#include <atomic>
#include <cstdint>

namespace tcmalloc {

// The bytes and blocks ever allocated in spans of their own. A block that grows in place adds its
// growth. Thread safe; each figure is exact, but the two may be of different moments.
class LargeTotals {
 public:
  void AddBlock(uint64_t bytes) {
    blocks_.fetch_add(1, std::memory_order_relaxed);
    AddGrowth(bytes);
  }
  void AddGrowth(uint64_t bytes) { bytes_.fetch_add(bytes, std::memory_order_relaxed); }

  uint64_t blocks() const { return blocks_.load(std::memory_order_relaxed); }
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> blocks_{0};
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_UPKEEP_LARGE_TOTALS_H_
