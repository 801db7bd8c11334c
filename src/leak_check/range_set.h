// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Ranges of memory that change while they are read.

#ifndef TCMALLOC_LEAK_CHECK_RANGE_SET_H_
#define TCMALLOC_LEAK_CHECK_RANGE_SET_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/relaxed.h"
#include "leak_check/memory_map.h"

namespace tcmalloc {

// Ranges that do not overlap. Thread safe, without a lock; async-signal-safe. One of two changes to
// the same memory at the same time may get lost. constinit, all zero. `most` bounds their number.
template <size_t most>
class RangeSet {
 public:
  static constexpr size_t kMost = most;

  constexpr RangeSet() = default;
  RangeSet(const RangeSet&) = delete;
  RangeSet& operator=(const RangeSet&) = delete;

  // Adds memory that no range has, to the range that begins where it ends if there is one, because
  // the kernel often puts new mappings there. Leaves out what does not fit.
  void Add(const Range& range);
  // Removes memory from all ranges.
  void Remove(const Range& range);
  // Stores at most `wanted` ranges and returns their number.
  size_t Copy(Range* to, size_t wanted) const;
  // Returns the bytes of the set, from its start on, in which there ever was a range; one at least.
  size_t used_bytes() const {
    return sizeof(Entry) * std::max<size_t>(used_.load(std::memory_order_relaxed), 1);
  }

 private:
  struct Entry {
    std::atomic<uintptr_t> begin;  // 0 if there is none
    Relaxed<uintptr_t> end;
  };

  bool Prepend(const Range& range);

  Entry entries_[kMost] = {};
  std::atomic<size_t> used_{0};
};

// The program's mappings, of which the kernel has some 65,530 by default, and what it names itself.
using MappingSet = RangeSet<(size_t{1} << 16)>;
using RegionSet = RangeSet<8192>;

}  // namespace tcmalloc

#endif  // TCMALLOC_LEAK_CHECK_RANGE_SET_H_
