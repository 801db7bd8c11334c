// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Ranges of memory that change while they are read.

#ifndef TCMALLOC_LEAK_CHECK_RANGE_SET_H_
#define TCMALLOC_LEAK_CHECK_RANGE_SET_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/relaxed.h"
#include "leak_check/memory_map.h"

namespace tcmalloc {

// Ranges that do not overlap. Thread safe, without a lock; async-signal-safe. One of two changes to
// the same memory at the same time may get lost. constinit, all zero.
class RangeSet {
 public:
  static constexpr size_t kMost = 8192;

  constexpr RangeSet() = default;
  RangeSet(const RangeSet&) = delete;
  RangeSet& operator=(const RangeSet&) = delete;

  // Adds memory that no range has; leaves out what does not fit.
  void Add(const Range& range);
  // Removes memory from all ranges.
  void Remove(const Range& range);
  // Stores at most `most` ranges and returns their number.
  size_t Copy(Range* to, size_t most) const;

 private:
  struct Entry {
    std::atomic<uintptr_t> begin;  // 0 if there is none
    Relaxed<uintptr_t> end;
  };

  Entry entries_[kMost] = {};
  std::atomic<size_t> used_{0};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_LEAK_CHECK_RANGE_SET_H_
