// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The slow definition of what the size-class tables say.

#ifndef TCMALLOC_TESTS_MODEL_SMALLEST_CLASS_H_
#define TCMALLOC_TESTS_MODEL_SMALLEST_CLASS_H_

#include <cstddef>
#include <cstdint>

#include "size_class/size_classes.h"

namespace tcmalloc::testing {

inline bool IsForAlignedOnly(size_t size) { return size == 256 || size == 512 || size == 1024; }

// The first class whose objects hold `size` bytes and are multiples of `alignment`; 0 if there is
// none. Some classes serve only blocks with a larger alignment than any block has.
inline uint8_t SmallestClass(size_t size, size_t alignment) {
  for (size_t c = 1; c < kSizeClassCount; ++c) {
    if (alignment <= 16 && IsForAlignedOnly(kSizeClasses[c].size)) continue;
    if (kSizeClasses[c].size >= size && kSizeClasses[c].size % alignment == 0) {
      return static_cast<uint8_t>(c);
    }
  }
  return 0;
}

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_MODEL_SMALLEST_CLASS_H_
