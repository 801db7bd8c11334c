// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "allocator/reallocate.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "allocator/allocate.h"
#include "allocator/deallocate.h"
#include "allocator/slow_path.h"
#include "allocator/usable_size.h"
#include "heap/observer.h"
#include "hook/hooks.h"
#include "page_heap/page_heap.h"

namespace tcmalloc {
namespace {

// A block in a span of its own that grows by little grows by this share of itself.
constexpr size_t kMarginShare = 16;

// A block of this length that grew before and has to move gets a place where it can grow by its own
// length. docs/decisions/0114-blocks-that-grow-in-place.md.
constexpr size_t kLeastRoomyBytes = size_t{1} << 20;

// A block and what is known of it.
struct KnownBlock {
  Span* own_span = nullptr;  // null of a small object and of a block of the emergency arena
  size_t bytes = 0;          // that the program may use
};

// Returns what is known of `block`; aborts if it is not one of ours.
KnownBlock Find(const void* block) {
  const FoundBlock found = FindBlock(block, "realloc");
  const bool own = found.span != nullptr && found.span->state == Span::State::kLarge;
  return {own ? found.span : nullptr, found.bytes};
}

// Grows the span of a block in place and reports it. Returns false if the pages behind are in use.
TCMALLOC_NOINLINE bool Extend(const SlowPath& slow_path, const void* block, const KnownBlock& old,
                              size_t size) {
  if (!heap.page_heap().TryExtend(old.own_span, Length::FromBytesCeil(size))) return false;
  heap.large_totals().AddGrowth(old.own_span->bytes() - old.bytes);
  ReportIfLarge(block, old.own_span->bytes());
  slow_path.FollowLimits();
  return true;
}

// Notes that a block has grown for a request of `size` bytes. A sample grows with its block.
// Another block had its chance to become one when it was allocated, and has another one with the
// bytes that it gained. Either stands for fewer blocks than before, because more become samples.
void NoteGrowth(const KnownBlock& old, size_t size) {
  Span* span = old.own_span;
  span->grows = true;
  const size_t gained = span->bytes() - old.bytes;
  const SampleDraw draw = heap.CountGrowth(gained);
  const SampleId sample = span->sample();
  span->SetSample(sample, span->expected_points() + PointsIn(gained, draw.period));
  if (sample != 0) {
    NoteSampleResized(span, size);
  } else if (TCMALLOC_UNLIKELY(draw.is_sample)) {
    RecordLargeSample(span, size, 0);
  }
}

// Grows a block that is a span of its own into the free span behind it.
bool GrowInPlace(const void* block, const KnownBlock& old, size_t size) {
  if (old.own_span == nullptr || size > PTRDIFF_MAX - kPageSize) return false;
  SlowPath slow_path;
  if (slow_path.reentrant()) return false;
  // A block that grows by little often grows again.
  const size_t margin = old.bytes + old.bytes / kMarginShare;
  const bool grown = (size < margin && Extend(slow_path, block, old, margin)) ||
                     Extend(slow_path, block, old, size);
  if (grown) NoteGrowth(old, size);
  return grown;
}

// Returns true if the block to which `old` moves for `size` bytes shall be able to grow there.
bool WantsRoom(const KnownBlock& old, size_t size) {
  return old.bytes >= kLeastRoomyBytes && old.own_span != nullptr && old.own_span->grows &&
         !PageHeap::IsLongStep(old.bytes, size);
}

void* AllocateNext(bool roomy, size_t size) {
  return roomy ? AllocateRoomy(size) : AllocateQuietly(size);
}

// Notes that a block in a span of its own moved because it grew.
void NoteMovedToGrow(const void* fresh) {
  Span* span = heap.page_map().FindInUse(fresh);
  if (span != nullptr && span->state == Span::State::kLarge) span->grows = true;
}

// Allocates the block to which `old` moves, for `size` bytes.
void* AllocateToGrow(const KnownBlock& old, size_t size) {
  // If the margin cannot be had, the block does without it.
  const size_t margin = BytesInAdvance(old.bytes, size);
  const bool roomy = WantsRoom(old, size);
  if (size < margin) {
    if (void* fresh = AllocateNext(roomy, margin)) return fresh;
  }
  return AllocateNext(roomy, size);
}

// Gives the pages behind the first `size` bytes of a block in a span of its own back to the page
// heap.
void CutInPlace(Span* span, size_t size) {
  if (span == nullptr) return;
  SlowPath slow_path;
  if (slow_path.reentrant()) return;
  heap.page_heap().Truncate(span, Length::FromBytesCeil(size));
  if (span->sample() != 0) NoteSampleResized(span, size);
}

// Returns the block for fewer bytes: the same one, cut or whole, unless a smaller one that is not a
// span of its own is at hand.
void* BlockToShrinkTo(void* block, const KnownBlock& old, size_t size) {
  if (KeepsItsLength(old.bytes, size)) return block;
  if (size <= kMaxSmallSize) {
    if (void* fresh = TryAllocateQuietly(size)) return fresh;
  }
  CutInPlace(old.own_span, size);
  return block;
}

// Returns the block for `size` bytes: `block` itself, or a new one to copy to; null if there is
// none.
void* BlockFor(void* block, const KnownBlock& old, size_t size) {
  if (size <= old.bytes) return BlockToShrinkTo(block, old, size);
  return GrowInPlace(block, old, size) ? block : AllocateToGrow(old, size);
}

// Reports to the program's hooks that `block` is `fresh` now. The leak checker knows one of them at
// any time, so that it finds what the contents lead to.
TCMALLOC_COLD void ReportMoved(void* block, void* fresh, size_t size) {
  ReportNew(fresh, size);
  ReportDelete(block);
}

}  // namespace

void* Reallocate(void* block, size_t size) {
  const KnownBlock old = Find(block);
  void* fresh = BlockFor(block, old, size);
  if (fresh == nullptr) return nullptr;
  if (fresh == block) {
    if (TCMALLOC_UNLIKELY(BlocksAreWatched())) ReportResized(block, size);
    return block;
  }
  std::memcpy(fresh, block, std::min(old.bytes, size));
  if (TCMALLOC_UNLIKELY(size > kMaxSmallSize)) NoteMovedToGrow(fresh);
  if (TCMALLOC_UNLIKELY(BlocksAreWatched())) ReportMoved(block, fresh, size);
  DeallocateUnreported(block);
  return fresh;
}

}  // namespace tcmalloc
