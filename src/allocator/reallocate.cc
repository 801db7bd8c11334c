// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "allocator/reallocate.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "allocator/allocate.h"
#include "allocator/deallocate.h"
#include "allocator/slow_path.h"

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
  ReportIfLarge(block, span->bytes());
  slow_path.FollowLimits();
  return true;
}

}  // namespace

void* Reallocate(void* block, size_t size) {
  const size_t old_bytes = UsableSize(block);
  // Blocks shrink only when half of them would be unused.
  if (size <= old_bytes && size >= old_bytes / 2) return block;
  void* fresh = nullptr;
  if (size > old_bytes) {
    if (GrowInPlace(block, old_bytes, size)) return block;
    // A block that grows once often grows again; a quarter more makes the copies amortise. But
    // the margin is not worth failing for.
    const size_t margin = old_bytes + old_bytes / 4;
    if (size < margin) fresh = Allocate(margin);
  }
  if (fresh == nullptr) fresh = Allocate(size);
  if (fresh == nullptr) return nullptr;
  std::memcpy(fresh, block, std::min(old_bytes, size));
  Deallocate(block);
  return fresh;
}

}  // namespace tcmalloc
