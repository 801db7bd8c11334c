// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Where the objects of a span begin.

#ifndef TCMALLOC_CENTRAL_OBJECT_STARTS_H_
#define TCMALLOC_CENTRAL_OBJECT_STARTS_H_

#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "size_class/size_classes.h"

namespace tcmalloc {

// Tells where the objects of a size class begin in a span, from what a loop keeps in registers.
struct ObjectStarts {
  static constexpr size_t kNone = SIZE_MAX;

  explicit ObjectStarts(uint8_t c)
      : reciprocal(kSizeClasses[c].reciprocal),
        bytes(size_t{kSizeClasses[c].objects} * kSizeClasses[c].size),
        size_class(c) {}

  // Returns the index of the object that begins at `offset` in its span, or kNone.
  TCMALLOC_ALWAYS_INLINE size_t IndexAt(size_t offset) const {
    if (TCMALLOC_UNLIKELY(offset >= bytes)) return kNone;
    const auto product = size_class_internal::Product{offset} * reciprocal;
    const bool begins = static_cast<uint64_t>(product) < reciprocal;
    return TCMALLOC_LIKELY(begins) ? static_cast<size_t>(product >> 64) : kNone;
  }

  uint64_t reciprocal;
  size_t bytes;  // of all objects
  uint8_t size_class;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CENTRAL_OBJECT_STARTS_H_
