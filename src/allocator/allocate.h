// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Allocation. Nothing here sets errno or calls a new handler: a null result means that no memory
// could be had, and each entry point reports that in the way of its interface.

#ifndef TCMALLOC_ALLOCATOR_ALLOCATE_H_
#define TCMALLOC_ALLOCATOR_ALLOCATE_H_

#include <cstddef>

#include "base/attributes.h"
#include "heap/heap.h"
#include "size_class/size_classes.h"
#include "thread/current_thread.h"

namespace tcmalloc {

// Allocates any size in any state of the thread. Reports the block to the program's hooks.
void* AllocateSlow(size_t size);
// Works as AllocateSlow without reporting the block, because the caller does.
void* AllocateUnreported(size_t size);
// Does so by the fast path, where that can.
void* AllocateQuietly(size_t size);
// Works as AllocateUnreported, for a size above kMaxSmallSize to which a block moves that grows and
// has grown before: if possible to a place where it can go on.
void* AllocateRoomy(size_t size);
// Allocates a small size without reporting it. Returns null where AllocateSlow would empty caches.
void* TryAllocateSmall(size_t size);
// Does so by the fast path, where that can.
void* TryAllocateQuietly(size_t size);
// Allocates a small size without reporting it, for a caller that is in a slow path, which is not
// reentrant.
class SlowPath;
void* AllocateSmallWithin(const SlowPath& slow_path, size_t size);

// Continues after a fast path on `lists` that failed: undoes its changes and calls `slow`. A signal
// handler may have moved the thread to its other front end since, so that current_thread no longer
// names these lists.
void* AllocateAfterTry(size_t size, FastLists* lists, AllocateSlowPath slow);

// Calls AllocateAfterTry with kSlow, in fewer instructions at each place.
template <AllocateSlowPath kSlow>
TCMALLOC_NOINLINE void* AllocateAfterTry(size_t size, FastLists* lists) {
  return AllocateAfterTry(size, lists, kSlow);
}

// Allocates a size below the thread's limit from its lists or, where they refuse, by `kSlow`.
template <AllocateSlowPath kSlow>
TCMALLOC_ALWAYS_INLINE void* AllocateFromLists(FastLists* lists, size_t size) {
  void* object = lists->TryAllocate(kClassBySize[size], size);
  return TCMALLOC_LIKELY(object != nullptr) ? object : AllocateAfterTry<kSlow>(size, lists);
}

// Allocates at least `size` bytes, aligned to 16, or to 8 if size <= 8. The fast path of a small
// size takes no lock and makes no call, except for a jump where a cache of a CPU serves it. `kSlow`
// does the rest.
template <AllocateSlowPath kSlow>
TCMALLOC_ALWAYS_INLINE void* AllocateOr(size_t size, FastThread thread = current_thread) {
  if (TCMALLOC_UNLIKELY(size >= thread->size_limit)) return AllocateBy(thread, size, kSlow);
  return AllocateFromLists<kSlow>(thread.lists(), size);
}

// Works as AllocateOr for malloc, whose slow path is also in the thread's header.
template <AllocateSlowPath kMallocSlow>
TCMALLOC_ALWAYS_INLINE void* AllocateForMalloc(size_t size, FastThread thread) {
  if (TCMALLOC_UNLIKELY(size >= thread->size_limit)) return MallocBy(thread, size);
  return AllocateFromLists<kMallocSlow>(thread.lists(), size);
}

TCMALLOC_ALWAYS_INLINE void* Allocate(size_t size) { return AllocateOr<AllocateSlow>(size); }

// Prints the report of a large allocation, if one is due. The block in a span of its own is ready
// to be handed out or has grown to `bytes`. Called outside the slow path, or at its end.
TCMALLOC_COLD void ReportLarge(const void* block, size_t bytes);
TCMALLOC_ALWAYS_INLINE void ReportIfLarge(const void* block, size_t bytes) {
  if (heap.large_reports().MayBeDue(bytes)) ReportLarge(block, bytes);
}

using AlignedSlowPath = void* (*)(size_t size, size_t alignment);
// Allocates at least `size` bytes, aligned to `alignment`, a power of two, from the thread's lists
// or, where they refuse, by `slow`.
void* AllocateAlignedOr(size_t size, size_t alignment, AlignedSlowPath slow);

// Works as AllocateSlow, aligned to `alignment`, a power of two.
void* AllocateAligned(size_t size, size_t alignment);
// Works as AllocateAligned without reporting the block.
void* AllocateAlignedUnreported(size_t size, size_t alignment);
// Allocates a block in a span of its own without reporting it; `alignment` is 0 where none was
// asked for. Sets *zeroed to true if the bytes are known to be zero.
void* AllocateLargeUnreported(size_t size, size_t alignment, bool* zeroed);

// Works as AllocateSlow, with all bytes zero.
void* AllocateZeroed(size_t size);
// Does so for a small size that a fast path has tried in vain.
void* AllocateZeroedSmall(size_t size);

}  // namespace tcmalloc

#endif  // TCMALLOC_ALLOCATOR_ALLOCATE_H_
