// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Whole numbers of blocks.

#ifndef TCMALLOC_HEAP_PROFILE_WHOLE_BLOCKS_H_
#define TCMALLOC_HEAP_PROFILE_WHOLE_BLOCKS_H_

#include <cstdint>

namespace tcmalloc {

// Turns weights into whole numbers whose sum is right, by carrying what each leaves over.
class WholeBlocks {
 public:
  int64_t Round(double weight) {
    carry_ += weight;
    const auto whole = static_cast<int64_t>(carry_);
    carry_ -= static_cast<double>(whole);
    return whole;
  }

 private:
  double carry_ = 0.5;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_WHOLE_BLOCKS_H_
