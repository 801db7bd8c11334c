// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Changes the size of a block.

#ifndef TCMALLOC_ALLOCATOR_REALLOCATE_H_
#define TCMALLOC_ALLOCATOR_REALLOCATE_H_

#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "heap/heap.h"
#include "hook/hooks.h"
#include "pages/page_map.h"
#include "pages/page_types.h"
#include "pages/span.h"
#include "size_class/size_classes.h"

namespace tcmalloc {

// Returns true if a block that becomes smaller stays whole. A block of many pages is cut without a
// copy, but only if more is left over than a growing block gets in advance. Otherwise a block that
// grew would be cut at once, and one that alternates between two sizes would be cut each time.
// Other blocks move if that saves half of their bytes.
constexpr bool KeepsItsLength(size_t old_bytes, size_t size) {
  const size_t least = size > kMaxSmallSize ? old_bytes - old_bytes / 4 : old_bytes / 2;
  return size >= least;
}

// Returns true if an object of class `c` serves for `size` bytes as it is. Compares once: a size
// that is too large wraps around, and no object is so small that half of it is 0 bytes.
constexpr bool KeepsItsObject(uint8_t c, size_t size) {
  const size_t bytes = kSizeClasses[c].size;
  return bytes - size <= bytes / 2;
}

// Returns true if `block` serves for `size` bytes as it is and no hook has to hear of it, so that a
// realloc has nothing left to do. False for any pointer for which the page map cannot vouch at
// once, and for a size of 0.
TCMALLOC_ALWAYS_INLINE bool StaysAsItIs(const void* block, size_t size) {
  const PageMap::Entry entry = heap.page_map().NearEntryOf(PageId::Containing(block));
  if (const uint8_t c = entry.size_class(); TCMALLOC_LIKELY(c != 0)) {
    return KeepsItsObject(c, size) && IsObjectStart(entry.OffsetOf(block), c) &&
           !BlocksAreWatched();
  }
  const Span* span = entry.span();
  if (TCMALLOC_UNLIKELY(span == nullptr) || TCMALLOC_UNLIKELY(span->start() != block) ||
      TCMALLOC_UNLIKELY(span->state != Span::State::kLarge)) {
    return false;
  }
  const size_t bytes = span->bytes();
  if (TCMALLOC_UNLIKELY(size > bytes)) return false;
  return KeepsItsLength(bytes, size) && !BlocksAreWatched();
}

// Returns a block of at least `size` bytes with the contents of `block`, which is then freed unless
// it is the result. Null leaves `block` as it was, and happens only if `size` is more than it has:
// a block never fails to shrink. Requires block != nullptr and size > 0. Aborts if `block` is not
// one of ours.
void* Reallocate(void* block, size_t size);

}  // namespace tcmalloc

#endif  // TCMALLOC_ALLOCATOR_REALLOCATE_H_
