// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "allocator/reallocate.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "allocator/allocate.h"
#include "allocator/deallocate.h"
#include "allocator/slow_path.h"
#include "hook/hooks.h"

namespace tcmalloc {
namespace {

// Returns the span of a block that has one of its own; null for other blocks.
Span* OwnSpanOf(const void* block, size_t bytes) {
  if (bytes < kPageSize) return nullptr;
  Span* span = heap.page_map().FindInUse(block);
  return span != nullptr && span->state == Span::State::kLarge ? span : nullptr;
}

// Grows a block that is a span of its own into the free span behind it.
bool GrowInPlace(void* block, size_t old_bytes, size_t size) {
  if (size > PTRDIFF_MAX - kPageSize) return false;
  Span* span = OwnSpanOf(block, old_bytes);
  if (span == nullptr) return false;
  SlowPath slow_path;
  if (slow_path.reentrant()) return false;
  if (!heap.page_heap().TryExtend(span, Length::FromBytesCeil(size))) return false;
  heap.large_totals().AddGrowth(span->bytes() - old_bytes);
  ReportIfLarge(block, span->bytes());
  slow_path.FollowLimits();
  return true;
}

// Allocates the block to which one of `old_bytes` moves, for `size` bytes.
void* AllocateToGrow(size_t old_bytes, size_t size) {
  // A block that grows once often grows again; a quarter more makes the copies amortise. If the
  // margin cannot be had, the block does without it.
  const size_t margin = old_bytes + old_bytes / 4;
  if (size < margin) {
    if (void* fresh = AllocateOr<AllocateUnreported>(margin)) return fresh;
  }
  return AllocateOr<AllocateUnreported>(size);
}

// Gives the pages behind the first `size` bytes of a block in a span of its own back to the page
// heap.
void CutInPlace(const void* block, size_t old_bytes, size_t size) {
  Span* span = OwnSpanOf(block, old_bytes);
  if (span == nullptr) return;
  SlowPath slow_path;
  if (!slow_path.reentrant()) heap.page_heap().Truncate(span, Length::FromBytesCeil(size));
}

// Returns true if a block that becomes smaller stays whole. A block of many pages is cut without a
// copy, but only if more than the margin of AllocateToGrow is left over. Otherwise a block that
// grew would be cut at once, and one that alternates between two sizes would be cut each time.
// Other blocks move if that saves half of their bytes.
bool KeepsItsLength(size_t old_bytes, size_t size) {
  const size_t least = size > kMaxSmallSize ? old_bytes - old_bytes / 4 : old_bytes / 2;
  return size >= least;
}

// Returns the block for fewer bytes: the same one, cut or whole, unless a smaller one that is not a
// span of its own is at hand.
void* BlockToShrinkTo(void* block, size_t old_bytes, size_t size) {
  if (KeepsItsLength(old_bytes, size)) return block;
  if (size <= kMaxSmallSize) {
    if (void* fresh = AllocateOr<TryAllocateSmall>(size)) return fresh;
  }
  CutInPlace(block, old_bytes, size);
  return block;
}

// Returns the block for `size` bytes: `block` itself, or a new one to copy to; null if there is
// none.
void* BlockFor(void* block, size_t old_bytes, size_t size) {
  if (size <= old_bytes) return BlockToShrinkTo(block, old_bytes, size);
  return GrowInPlace(block, old_bytes, size) ? block : AllocateToGrow(old_bytes, size);
}

// Reports to the program's hooks that `block` is `resized` now.
TCMALLOC_COLD void Report(void* block, void* resized, size_t size) {
  ReportDelete(block);
  ReportNew(resized, size);
}

}  // namespace

void* Reallocate(void* block, size_t size) {
  const size_t old_bytes = UsableSize(block);
  void* fresh = BlockFor(block, old_bytes, size);
  if (fresh == nullptr) return nullptr;
  if (fresh == block) {
    if (TCMALLOC_UNLIKELY(BlocksAreWatched())) Report(block, block, size);
    return block;
  }
  std::memcpy(fresh, block, std::min(old_bytes, size));
  if (TCMALLOC_UNLIKELY(BlocksAreWatched())) {
    Report(block, fresh, size);
    DeallocateUnreported(block);
  } else {
    Deallocate(block);
  }
  return fresh;
}

}  // namespace tcmalloc
