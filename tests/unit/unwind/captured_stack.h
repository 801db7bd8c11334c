// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What a walk found.

#ifndef TCMALLOC_TESTS_UNIT_UNWIND_CAPTURED_STACK_H_
#define TCMALLOC_TESTS_UNIT_UNWIND_CAPTURED_STACK_H_

#include <algorithm>
#include <array>

namespace tcmalloc::testing {

// The addresses of a stack's first `count` frames, of kMost at most.
template <int kMost>
struct CapturedStack {
  std::array<void*, kMost> frames;
  int count = 0;

  bool operator==(const CapturedStack& other) const {
    return count == other.count &&
           std::equal(frames.begin(), frames.begin() + count, other.frames.begin());
  }
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_UNIT_UNWIND_CAPTURED_STACK_H_
