// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Decides which large allocations to report.

#ifndef TCMALLOC_UPKEEP_LARGE_REPORTS_H_
#define TCMALLOC_UPKEEP_LARGE_REPORTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"

namespace tcmalloc {

// Reports blocks of at least the threshold; each report raises the threshold by an eighth. The
// number of reports of a program with many such blocks is thus about the logarithm of their number.
// The threshold cannot overflow, because a block is no larger than the address space. Thread safe.
class LargeReports {
 public:
  // Sets the threshold in bytes; 0 or less for no reports.
  void set_threshold(int64_t bytes) {
    threshold_.store(bytes > 0 ? static_cast<uint64_t>(bytes) : kNever, std::memory_order_relaxed);
  }

  // Returns false if a block of this many bytes is not to be reported.
  TCMALLOC_ALWAYS_INLINE bool MayBeDue(size_t bytes) const {
    return TCMALLOC_UNLIKELY(bytes >= threshold_.load(std::memory_order_relaxed));
  }
  // Returns true if a block of this many bytes is to be reported, and then raises the threshold. Of
  // several threads that ask at once, one reports.
  bool IsDue(size_t bytes) {
    uint64_t threshold = threshold_.load(std::memory_order_relaxed);
    if (bytes < threshold) return false;
    const uint64_t raised = threshold + threshold / 8;
    return threshold_.compare_exchange_strong(threshold, raised, std::memory_order_relaxed);
  }

 private:
  static constexpr uint64_t kNever = UINT64_MAX;

  std::atomic<uint64_t> threshold_{kNever};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_UPKEEP_LARGE_REPORTS_H_
