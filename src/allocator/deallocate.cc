// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "allocator/deallocate.h"

#include <cstdint>

#include "allocator/checked_block.h"
#include "allocator/slow_path.h"
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

struct FoundBlock {
  const Span* span = nullptr;  // null of a block that has none, and of null
  size_t bytes = 0;            // that the program may use
};

// Returns what is known of `block`; aborts if it is not one of ours.
FoundBlock FindBlock(const void* block, const char* call) {
  if (block == nullptr) return {};
  if (heap.emergency().Owns(block)) return {nullptr, EmergencyArena::SizeOf(block)};
  if (TCMALLOC_UNLIKELY(heap.guarded().Owns(block))) return {nullptr, GuardedBytes(block, call)};
  const Span* span = CheckedSpanOf(block, call);
  const bool is_large = span->state == Span::State::kLarge;
  return {span, is_large ? span->bytes() : kSizeClasses[span->size_class].size};
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
  if (has_class && size <= kMaxSmallSize && SizeClassFor(size) == span->size_class) return;
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

size_t UsableSize(const void* block, const char* call) { return FindBlock(block, call).bytes; }

size_t UsableSizeInUse(const void* block, const char* call) {
  const FoundBlock found = FindBlock(block, call);
  if (found.span == nullptr || found.span->state != Span::State::kSmall) return found.bytes;
  auto* const object = const_cast<void*>(block);
  if (TCMALLOC_UNLIKELY(LooksFree(found.span, object))) {
    SlowPath slow_path;
    if (!slow_path.reentrant()) CheckNotFree(found.span, object, call);
  }
  return found.bytes;
}

}  // namespace tcmalloc
