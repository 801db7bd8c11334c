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

// Grows a block that is a span of its own into the free span behind it.
bool GrowInPlace(void* block, size_t old_bytes, size_t size) {
  if (old_bytes <= kMaxSmallSize || size > PTRDIFF_MAX - kPageSize) return false;
  SlowPath slow_path;
  if (slow_path.reentrant()) return false;
  Span* span = heap.page_map().FindInUse(block);
  const bool grown = span->state == Span::State::kLarge &&
                     heap.page_heap().TryExtend(span, Length::FromBytesCeil(size));
  if (!grown) return false;
  heap.large_totals().AddGrowth(span->bytes() - old_bytes);
  ReportIfLarge(block, span->bytes());
  slow_path.FollowLimits();
  return true;
}

bool ResizeInPlace(void* block, size_t old_bytes, size_t size) {
  // Blocks shrink only when half of them would be unused.
  if (size <= old_bytes) return size >= old_bytes / 2;
  return GrowInPlace(block, old_bytes, size);
}

// The block that one of `old_bytes` moves to, for `size`.
void* AllocateToMove(size_t old_bytes, size_t size) {
  // A block that grows once often grows again; a quarter more makes the copies amortise. But
  // the margin is not worth failing for.
  const size_t margin = old_bytes + old_bytes / 4;
  if (size > old_bytes && size < margin) {
    if (void* fresh = AllocateOr<AllocateQuietly>(margin)) return fresh;
  }
  return AllocateOr<AllocateQuietly>(size);
}

// To the program's hooks: what they knew as `block` is `resized` now.
TCMALLOC_COLD void Report(void* block, void* resized, size_t size) {
  ReportDelete(block);
  ReportNew(resized, size);
}

}  // namespace

void* Reallocate(void* block, size_t size) {
  const size_t old_bytes = UsableSize(block);
  if (ResizeInPlace(block, old_bytes, size)) {
    if (TCMALLOC_UNLIKELY(BlocksAreWatched())) Report(block, block, size);
    return block;
  }
  void* fresh = AllocateToMove(old_bytes, size);
  if (fresh == nullptr) return nullptr;
  std::memcpy(fresh, block, std::min(old_bytes, size));
  if (TCMALLOC_UNLIKELY(BlocksAreWatched())) {
    Report(block, fresh, size);
    DeallocateQuietly(block);
  } else {
    Deallocate(block);
  }
  return fresh;
}

}  // namespace tcmalloc
