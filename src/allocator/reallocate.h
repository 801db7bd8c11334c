// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Changes the size of a block.

#ifndef TCMALLOC_ALLOCATOR_REALLOCATE_H_
#define TCMALLOC_ALLOCATOR_REALLOCATE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "allocator/allocate.h"
#include "allocator/deallocate.h"
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

// A block that grows step by step grows by at most this share of itself. Below kMostSteppedBytes it
// then gets half of itself in advance; otherwise a quarter, which is less memory.
// docs/decisions/0107-pairs-and-steps.md.
constexpr size_t kStepShare = 16;
constexpr size_t kMostSteppedBytes = size_t{64} << 10;

// Returns the bytes that a block of `old_bytes` gets where it moves for `size`, if that is less. A
// block that grows once often grows again; a margin makes the copies amortise.
constexpr size_t BytesInAdvance(size_t old_bytes, size_t size) {
  const bool steps = old_bytes < kMostSteppedBytes && size - old_bytes <= old_bytes / kStepShare;
  return old_bytes + (steps ? old_bytes / 2 : old_bytes / 4);
}

// The answer to a realloc of a block of which an entry of the page map tells everything.
struct QuickRealloc {
  bool stays = false;       // the block serves as it is, and there is nothing left to do
  size_t object_bytes = 0;  // not 0: it is a small object of so many bytes that does not stay
};

// Returns what a realloc of `block` to `size` bytes does. Neither for any pointer for which the
// page map cannot vouch at once, where a hook has to hear of it, and in a mode that knows its own
// blocks.
TCMALLOC_ALWAYS_INLINE QuickRealloc PlanRealloc(const void* block, size_t size) {
  const PageMap::Entry entry = heap.page_map().NearEntryOf(PageId::Containing(block));
  if (const uint8_t c = entry.size_class(); TCMALLOC_LIKELY(c != 0)) {
    const SizeClassInfo* info = OpaqueToOptimizer(&kSizeClasses[c]);
    if (TCMALLOC_UNLIKELY(!IsObjectStart(entry.OffsetOf(block), *info)) || BlocksAreWatched()) {
      return {};
    }
    // Compares once: a size that is too large wraps around, and no object is so small that half of
    // it is 0 bytes.
    const size_t bytes = info->size;
    if (bytes - size <= bytes / 2) return {.stays = true};
    return {.object_bytes = bytes};
  }
  const Span* span = entry.span();
  if (TCMALLOC_UNLIKELY(span == nullptr) || TCMALLOC_UNLIKELY(span->start() != block) ||
      TCMALLOC_UNLIKELY(span->state != Span::State::kLarge)) {
    return {};
  }
  const size_t bytes = span->bytes();
  if (TCMALLOC_UNLIKELY(size > bytes)) return {};
  return {.stays = KeepsItsLength(bytes, size) && !BlocksAreWatched()};
}

// Does what a plan has not done, or has no answer to. Requires block != nullptr.
using ReallocateSlowPath = void* (*)(void* block, size_t size);

// Moves a small object of `bytes` bytes that does not stay where it is reallocated to `size` bytes.
// Calls kSlow(block, size) where the new block is not small, or there is none.
template <ReallocateSlowPath kSlow>
TCMALLOC_NOINLINE void* MoveObject(void* block, size_t bytes, size_t size) {
  if (TCMALLOC_UNLIKELY(size - 1 >= kMaxSmallSize)) return kSlow(block, size);
  const bool grows = size > bytes;
  void* fresh = grows ? AllocateQuietly(std::max(size, BytesInAdvance(bytes, size)))
                      : TryAllocateQuietly(size);
  if (TCMALLOC_UNLIKELY(fresh == nullptr)) return kSlow(block, size);
  std::memcpy(fresh, block, grows ? bytes : size);
  Deallocate(block);
  return fresh;
}

// Returns a block of at least `size` bytes with the contents of `block`, which is then freed unless
// it is the result. Null leaves `block` as it was, and happens only if `size` is more than it has:
// a block never fails to shrink. Requires block != nullptr and size > 0. Aborts if `block` is not
// one of ours.
void* Reallocate(void* block, size_t size);

}  // namespace tcmalloc

#endif  // TCMALLOC_ALLOCATOR_REALLOCATE_H_
