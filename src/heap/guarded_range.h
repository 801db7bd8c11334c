// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The addresses at which guarded blocks lie.

#ifndef TCMALLOC_HEAP_GUARDED_RANGE_H_
#define TCMALLOC_HEAP_GUARDED_RANGE_H_

#include <cstddef>
#include <cstdint>

#include "base/relaxed.h"

namespace tcmalloc {

// Empty until there is a guarded block; set once. Whoever has a pointer to such a block has
// synchronized with the thread that set it.
class GuardedRange {
 public:
  constexpr GuardedRange() = default;

  // Returns true for the address of a guarded block, and of anything between.
  bool Owns(const void* address) const {
    return reinterpret_cast<uintptr_t>(address) - begin_ < bytes_;
  }
  uintptr_t begin() const { return begin_; }
  void Set(uintptr_t begin, size_t bytes) {
    begin_ = begin;
    bytes_ = bytes;
  }

 private:
  Relaxed<uintptr_t> begin_ = 0;
  Relaxed<size_t> bytes_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_GUARDED_RANGE_H_
