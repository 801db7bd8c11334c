// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Computes the usable sizes of blocks.

#ifndef TCMALLOC_ALLOCATOR_ALLOCATED_SIZE_H_
#define TCMALLOC_ALLOCATOR_ALLOCATED_SIZE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/bits.h"
#include "pages/page_types.h"
#include "size_class/size_classes.h"

namespace tcmalloc {

// Returns the usable size of a block for a request of `size` bytes aligned to `alignment`, a power
// of two; 0 if no block can be that large. Several entry points have it; none is in a hurry.
TCMALLOC_NOINLINE constexpr size_t AllocatedSizeFor(size_t size, size_t alignment = 1) {
  constexpr size_t kMostBytes = size_t{1} << kAddressBits;
  if (std::max(size, alignment) > kMostBytes) return 0;
  if (const uint8_t c = SizeClassForAligned(size, alignment)) return kSizeClasses[c].size;
  return AlignUp(std::max(size, size_t{1}), kPageSize);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_ALLOCATOR_ALLOCATED_SIZE_H_
