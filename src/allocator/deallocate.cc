// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "allocator/deallocate.h"

#include <cstdint>

#include "allocator/checked_block.h"
#include "allocator/slow_path.h"
#include "allocator/usable_size.h"
#include "base/message.h"
#include "hook/hooks.h"
#include "size_class/size_classes.h"

namespace tcmalloc {
namespace {

// Writes only to the block itself and to the arena's counter.
void FreeReentrant(void* block) {
  if (heap.emergency().Owns(block)) {
    heap.emergency().Free(block);
  } else {
    if (heap.guarded().Owns(block)) {
      GuardedBytes(block, nullptr);
    } else {
      CheckedSpanOf(block);
    }
    heap.deferred().Push(block);
  }
}

// Returns true if a request of class `c` may have got an object of `bytes` bytes: one of that
// class, or the one that a thread cache hands out where a signal came when a fast path used its
// list.
bool MayBeOfClass(size_t bytes, uint8_t c) {
  return bytes == kSizeClasses[c].size ||
         (larger_class_was_served.load(std::memory_order_relaxed) &&
          bytes == kSizeClasses[LargerSizeClass(c)].size);
}

[[noreturn]] TCMALLOC_COLD void CrashOnDeletedSize(const void* block, size_t size, size_t bytes) {
  Message message;
  message << "sized delete of " << block << " with " << size << " bytes, but the block has "
          << bytes;
  CrashOnMisuse(message, block);
}

}  // namespace

void DeallocateSlow(void* block) {
  if (block == nullptr) return;
  if (TCMALLOC_UNLIKELY(!hooks.delete_block.empty())) ReportDelete(block);
  DeallocateUnreported(block);
}

void DeallocateAfterTry(void* block, FastLists* lists) {
  if (block == nullptr) return Cache::UndoTryFreeOfNull(lists);
  Cache::Of(lists)->UndoTryFree(block);
  DeallocateSlow(block);
}

void DeallocateUnreported(void* block) {
  SlowPath slow_path;
  if (slow_path.reentrant()) {
    FreeReentrant(block);
  } else {
    slow_path.FreeBlock(block);
  }
}

void DeallocateCheckedSized(void* block, size_t size) {
  const size_t bytes = UsableSize(block, "sized delete");
  if (block != nullptr && size > bytes) CrashOnDeletedSize(block, size, bytes);
  Deallocate(block);
}

void CheckDeletedSize(const void* block, size_t size) {
  const FoundBlock found = FindBlock(block, "sized delete");
  if (block == nullptr) return;
  // Rounding up leaves less than half of a block unused, but for the smallest classes and the
  // blocks that have no span.
  const Span* span = found.span;
  const bool is_close = span == nullptr || size > found.bytes / 2;
  if (TCMALLOC_LIKELY(is_close && size <= found.bytes)) return;
  const bool has_class = span != nullptr && span->state != Span::State::kLarge;
  if (has_class && size <= kMaxSmallSize && MayBeOfClass(found.bytes, SizeClassFor(size))) return;
  CrashOnDeletedSize(block, size, found.bytes);
}

void DeleteChecked(void* block, size_t size) {
  CheckDeletedSize(block, size);
  Deallocate(block);
}

void DeleteAfterTry(void* block, FastLists* lists, size_t size) {
  Cache::Of(lists)->UndoTryFree(block);
  CheckDeletedSize(block, size);
  DeallocateSlow(block);
}

}  // namespace tcmalloc
