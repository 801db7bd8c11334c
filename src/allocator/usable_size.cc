// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "allocator/usable_size.h"

#include "allocator/block_functions.h"
#include "allocator/checked_block.h"
#include "allocator/slow_path.h"
#include "central/sampled_page.h"
#include "heap/observer.h"

namespace tcmalloc {

FoundBlock FindBlock(const void* block, const char* call) {
  if (block == nullptr) return {};
  if (heap.emergency().Owns(block)) return {nullptr, EmergencyArena::SizeOf(block)};
  if (TCMALLOC_UNLIKELY(heap.guarded().Owns(block))) return {nullptr, GuardedBytes(block, call)};
  Span* span = CheckedSpanOf(block, call);
  const bool is_large = span->state == Span::State::kLarge;
  return {span, is_large ? span->bytes() : kSizeClasses[ClassOfObject(span, block)].size};
}

size_t UsableSize(const void* block, const char* call) { return FindBlock(block, call).bytes; }

size_t UsableSizeInDoubt(const void* block, const char* call) {
  if (TCMALLOC_UNLIKELY(block_functions != nullptr)) {
    return block_functions->usable_size(block, call);
  }
  const FoundBlock found = FindBlock(block, call);
  if (found.span == nullptr || found.span->state != Span::State::kSmall) return found.bytes;
  auto* const object = const_cast<void*>(block);
  if (TCMALLOC_UNLIKELY(LooksFree(found.span, object))) {
    SlowPath slow_path;
    if (!slow_path.reentrant()) CheckNotFree(found.span, object, call);
  }
  return found.bytes;
}

size_t UsableSizeInUseByCall(const void* block, const char* call) {
  return UsableSizeInUse(block, call);
}

}  // namespace tcmalloc
