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

// Returns the usable size of `block`, or 0 if the page map cannot vouch for it. Makes the checks of
// UsableSize without its messages. Any pointer may be asked for.
TCMALLOC_ALWAYS_INLINE size_t UsableSizeOr0(const void* block) {
  const Span* span = heap.page_map().Get(PageId::Containing(block));
  if (TCMALLOC_UNLIKELY(span == nullptr)) return 0;
  const auto offset = static_cast<size_t>(static_cast<const char*>(block) - span->start());
  const Span::State state = span->state;
  if (TCMALLOC_LIKELY(state == Span::State::kSmall)) {
    const uint8_t c = span->size_class;
    return offset < span->bytes() && IsObjectStart(offset, c) ? kSizeClasses[c].size : 0;
  }
  return state == Span::State::kLarge && offset == 0 ? span->bytes() : 0;
}

// Returns true if `block` serves for `size` bytes as it is and no hook has to hear of it, so that a
// realloc has nothing left to do. False for null and for a size of 0.
TCMALLOC_ALWAYS_INLINE bool StaysAsItIs(const void* block, size_t size) {
  const size_t bytes = UsableSizeOr0(block);
  return size <= bytes && KeepsItsLength(bytes, size) && size > 0 && !BlocksAreWatched();
}

// Returns a block of at least `size` bytes with the contents of `block`, which is then freed unless
// it is the result. Null leaves `block` as it was, and happens only if `size` is more than it has:
// a block never fails to shrink. Requires block != nullptr and size > 0. Aborts if `block` is not
// one of ours.
void* Reallocate(void* block, size_t size);

}  // namespace tcmalloc

#endif  // TCMALLOC_ALLOCATOR_REALLOCATE_H_
