// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "allocator/deallocate.h"

#include <algorithm>
#include <cstdint>

#include "allocator/slow_path.h"
#include "base/message.h"
#include "central/corruption.h"
#include "hook/hooks.h"
#include "size_class/size_classes.h"

namespace tcmalloc {
namespace {

[[noreturn]] TCMALLOC_COLD void CrashOnMisaligned(const void* block) {
  Message message;
  message << "misaligned free of " << block << ": no block begins there";
  Crash(message);
}

// The large block that holds `address`, if it begins no more than a gibibyte before. The page map
// knows the first page of such a block and the last one; entries of others may be those of spans
// that were there before.
TCMALLOC_COLD const Span* LargeBlockAround(const void* address) {
  constexpr uintptr_t kMostPages = (uintptr_t{1} << 30) >> kPageShift;
  const PageId page = PageId::Containing(address);
  const uintptr_t pages = std::min(page.index(), kMostPages);
  for (uintptr_t i = 1; i <= pages; ++i) {
    const Span* span = heap.page_map().FindInUse((page - Length(i)).start());
    if (span != nullptr) return span->Contains(page) ? span : nullptr;
  }
  return nullptr;
}

// No span in use is known to hold `block`.
[[noreturn]] TCMALLOC_COLD void CrashOnUnknown(const void* block) {
  const Span* around = LargeBlockAround(block);
  if (around != nullptr) CrashOnInterior(block, around->start(), around->bytes());
  const Span* span = heap.page_map().Get(PageId::Containing(block));
  if (span != nullptr && !span->in_use() && span->start() == block) {
    CrashOnDoubleFree(block, span->bytes());
  }
  CrashOnUnknownBlock(block);
}

// The span in use in which `block` begins a block.
Span* CheckedSpanOf(const void* block) {
  if (!IsAligned(reinterpret_cast<uintptr_t>(block), sizeof(void*))) CrashOnMisaligned(block);
  Span* span = heap.page_map().FindInUse(block);
  if (span == nullptr) CrashOnUnknown(block);
  const auto offset = static_cast<size_t>(static_cast<const char*>(block) - span->start());
  if (span->state == Span::State::kLarge) {
    if (offset != 0) CrashOnInterior(block, span->start(), span->bytes());
  } else if (!IsObjectStart(offset, span->size_class)) {
    CrashOnStray(block, span);
  }
  return span;
}

bool TransferHolds(uint8_t c, const void* object) {
  bool found = false;
  heap.transfer(c).ForEachChain([&](Chain chain) {
    for (; chain.count > 0 && !found; --chain.count) {
      found = ObjectAt(chain.head) == object;
      if (heap.page_map().Get(PageId::Containing(ObjectAt(chain.head))) == nullptr) return;
      chain.head = heap.codec().Next(ObjectAt(chain.head));
    }
  });
  return found;
}

bool AnyCacheHolds(uint8_t c, const void* object) {
  const ThreadHeader* own = current_thread.header();
  bool found = false;
  heap.caches().ForEach(
      [&](Cache& cache) { found = found || cache.Holds(object, c, cache.thread() == own); });
  return found;
}

// The first word of `object` is a valid link, as that of a free object is. By chance the
// application's data is one too, about once in 2^27 random words, so the lists decide.
TCMALLOC_COLD void CheckDoubleFree(const Span* span, const void* object) {
  const uint8_t c = span->size_class;
  if (AnyCacheHolds(c, object) || TransferHolds(c, object) ||
      heap.central(c).IsOnFreeList(span, object)) {
    CrashOnDoubleFree(object, kSizeClasses[c].size);
  }
}

// `object` bears the mark of those in slabs. It may have got it by chance, or from a free that was
// aborted, so the slabs decide. No lock is taken, and no other list is searched: whatever goes
// from a slab to one is linked there, which takes the place of the mark.
TCMALLOC_COLD void CheckMarked(const Span* span, const void* object) {
  const uint8_t c = span->size_class;
  if (heap.cpus().Holds(object, c)) CrashOnDoubleFree(object, kSizeClasses[c].size);
}

// Whether `next`, decoded from the first word of an object of class `c`, is what a free one has.
bool LooksLikeLink(ObjectReference next, uint8_t c) {
  if (heap.codec().InWindow(next) || next == heap.codec().end) return true;
  const Span* span = heap.page_map().FindInUse(ObjectAt(next));
  return next == ReferenceTo(ObjectAt(next)) && span != nullptr && span->size_class == c;
}

void FreeSmall(const SlowPath& slow_path, Span* span, void* object) {
  const uint8_t c = span->size_class;
  const ObjectReference next = heap.codec().Next(object);
  if (TCMALLOC_UNLIKELY(LooksLikeLink(next, c))) CheckDoubleFree(span, object);
  if (TCMALLOC_UNLIKELY(heap.cpus().LooksFree(object))) CheckMarked(span, object);
  slow_path.DeallocateObject(object, c);
}

// Only writes to the block itself and to the arena's counter.
void FreeReentrant(void* block) {
  if (heap.emergency().Owns(block)) {
    heap.emergency().Free(block);
  } else {
    CheckedSpanOf(block);
    heap.deferred().Push(block);
  }
}

}  // namespace

void FreeInside(const SlowPath& slow_path, void* block) {
  if (TCMALLOC_UNLIKELY(heap.emergency().Owns(block))) {
    heap.emergency().Free(block);
    return;
  }
  Span* span = CheckedSpanOf(block);
  if (span->state == Span::State::kLarge) {
    heap.page_heap().Delete(span);
  } else {
    FreeSmall(slow_path, span, block);
  }
}

void DeallocateSlow(void* block) {
  if (block == nullptr) return;
  if (TCMALLOC_UNLIKELY(!hooks.delete_block.empty())) ReportDelete(block);
  DeallocateQuietly(block);
}

void DeallocateAfterTry(void* block, FastLists* lists) {
  Cache::Of(lists)->UndoTryFreeInWindow(block);
  DeallocateSlow(block);
}

void DeallocateQuietly(void* block) {
  SlowPath slow_path;
  if (slow_path.reentrant()) {
    FreeReentrant(block);
  } else {
    FreeInside(slow_path, block);
  }
}

void DeallocateLargeSized(void* block, size_t size) {
  const size_t bytes = UsableSize(block);
  if (block != nullptr && size > bytes) {
    Message message;
    message << "sized delete of " << block << " with " << size << " bytes, but the block has "
            << bytes;
    Crash(message);
  }
  Deallocate(block);
}

size_t UsableSize(const void* block) {
  if (block == nullptr) return 0;
  if (heap.emergency().Owns(block)) return EmergencyArena::SizeOf(block);
  const Span* span = CheckedSpanOf(block);
  return span->state == Span::State::kLarge ? span->bytes() : kSizeClasses[span->size_class].size;
}

}  // namespace tcmalloc
