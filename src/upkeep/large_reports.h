// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Which large allocations are reported.

#ifndef TCMALLOC_UPKEEP_LARGE_REPORTS_H_
#define TCMALLOC_UPKEEP_LARGE_REPORTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"

namespace tcmalloc {

// Those of at least the threshold, which each report raises by an eighth: a program with many such
// blocks makes about as many reports as the logarithm of their number. It cannot overflow, for a
// block is no larger than the address space. Thread safe.
class LargeReports {
 public:
  // In bytes; 0 or less for no reports.
  void set_threshold(int64_t bytes) {
    threshold_.store(bytes > 0 ? static_cast<uint64_t>(bytes) : kNever, std::memory_order_relaxed);
  }

  // Whether a block of so many bytes is to be reported. If so, the threshold is raised; of threads
  // that ask at once, one reports.
  bool IsDue(size_t bytes) {
    uint64_t threshold = threshold_.load(std::memory_order_relaxed);
    if (TCMALLOC_LIKELY(bytes < threshold)) return false;
    const uint64_t raised = threshold + threshold / 8;
    return threshold_.compare_exchange_strong(threshold, raised, std::memory_order_relaxed);
  }

 private:
  static constexpr uint64_t kNever = UINT64_MAX;

  std::atomic<uint64_t> threshold_{kNever};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_UPKEEP_LARGE_REPORTS_H_
