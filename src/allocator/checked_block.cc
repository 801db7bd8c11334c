// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "allocator/checked_block.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "central/corruption.h"
#include "central/sampled_page.h"
#include "heap/heap.h"
#include "size_class/size_classes.h"

namespace tcmalloc {
namespace {

// Returns the large block that holds `address`, if it begins no more than a gibibyte before. The
// page map knows the first and the last page of such a block. The entries of its other pages may
// name spans that were there before.
TCMALLOC_COLD const Span* LargeBlockAround(const void* address) {
  constexpr Length kMost = Length::FromBytesCeil(size_t{1} << 30);
  const PageId page = PageId::Containing(address);
  const Span* span = heap.page_map().FindInUseBelow(page, kMost);
  return span != nullptr && span->Contains(page) ? span : nullptr;
}

// Reports `block`, which no span in use is known to hold.
[[noreturn]] TCMALLOC_ALWAYS_INLINE void CrashOnUnknown(const void* block, const char* call) {
  const Span* around = LargeBlockAround(block);
  if (around != nullptr) CrashOnInterior(block, around->start(), around->bytes(), call);
  const Span* span = heap.page_map().Get(PageId::Containing(block));
  const bool begins_free = span != nullptr && !span->in_use() && span->start() == block;
  if (begins_free && (span->state == Span::State::kFree || !heap.page_heap().IsFresh())) {
    CrashOnDoubleFree(block, span->bytes(), call);
  }
  CrashOnUnknownBlock(block, call);
}

bool Holds(Chain chain, const void* object) {
  for (; chain.count > 0; --chain.count) {
    void* held = ObjectAt(chain.head);
    if (held == object) return true;
    if (heap.page_map().Get(PageId::Containing(held)) == nullptr) return false;
    chain.head = heap.codec().Next(held);
  }
  return false;
}

bool Holds(ObjectArray array, const void* object) {
  void** const end = array.objects + array.count;
  return std::find(array.objects, end, object) != end;
}

bool TransferHolds(uint8_t c, const void* object) {
  bool found = false;
  heap.transfer(c).ForEachChain([&](PackedChain chain) {
    found = found ||
            (chain.is_array() ? Holds(chain.UnpackArray(), object) : Holds(chain.Unpack(), object));
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

// Checks an object whose first word is a valid link, as that of a free object is. About one in 2^27
// random words of the application's data is one too, so the lists decide.
TCMALLOC_COLD void CheckDoubleFree(const Span* span, const void* object, const char* call) {
  const uint8_t c = span->size_class;
  if (AnyCacheHolds(c, object) || TransferHolds(c, object) || heap.central(c).IsFree(object)) {
    CrashOnDoubleFree(object, kSizeClasses[c].size, call);
  }
}

// Checks an object that bears the mark of those in slabs. It may bear the mark by chance or from a
// free that was aborted, so the slabs decide, and the arrays that came from slabs. Thread caches
// and spans are not searched: an object that goes from a slab there is linked, which overwrites the
// mark.
TCMALLOC_COLD void CheckMarked(const Span* span, const void* object, const char* call) {
  const uint8_t c = span->size_class;
  if (heap.cpus().Holds(object, c) || TransferHolds(c, object)) {
    CrashOnDoubleFree(object, kSizeClasses[c].size, call);
  }
}

// Returns true if `next`, decoded from the first word of an object of class `c`, is a free object's
// link.
bool LooksLikeLink(ObjectReference next, uint8_t c) {
  if (heap.codec().InWindow(next) || next == heap.codec().end) return true;
  const Span* span = heap.page_map().FindInUse(ObjectAt(next));
  return next == ReferenceTo(ObjectAt(next)) && span != nullptr && span->size_class == c;
}

// Returns true if a block that was given out begins at this address in the span, which is in use.
// The object of a correct program was carved before the program got it.
TCMALLOC_ALWAYS_INLINE bool BeginsIn(const Span* span, const void* block) {
  const auto offset = static_cast<size_t>(static_cast<const char*>(block) - span->start());
  if (TCMALLOC_LIKELY(span->state == Span::State::kSmall)) {
    const SizeClassInfo& info = kSizeClasses[span->size_class];
    return IsObjectStart(offset, info) && offset < size_t{span->carved} * info.size;
  }
  return span->state == Span::State::kLarge ? offset == 0 : ClassOfSampled(span, block) != 0;
}

// Reports `block`, at which no block begins. One function, so that its caller has nothing to save.
[[noreturn]] TCMALLOC_COLD void CrashOnNoBlock(const void* block, const char* call) {
  if (!IsAligned(reinterpret_cast<uintptr_t>(block), sizeof(void*))) {
    CrashAtAddress("misaligned free of ", block, 0, ": no block begins there", call);
  }
  const Span* span = heap.page_map().FindInUse(block);
  if (span == nullptr) CrashOnUnknown(block, call);
  if (span->state != Span::State::kLarge) CrashOnStray(block, span, call);
  CrashOnInterior(block, span->start(), span->bytes(), call);
}

}  // namespace

Span* CheckedSpanOf(const void* block, const char* call) {
  Span* span = heap.page_map().FindInUse(block);
  if (TCMALLOC_UNLIKELY(span == nullptr || !BeginsIn(span, block))) CrashOnNoBlock(block, call);
  return span;
}

bool LooksFree(const Span* span, void* object) {
  return LooksLikeLink(heap.codec().Next(object), span->size_class) ||
         heap.cpus().LooksFree(object);
}

void CheckNotFree(const Span* span, void* object, const char* call) {
  const ObjectReference next = heap.codec().Next(object);
  if (TCMALLOC_UNLIKELY(LooksLikeLink(next, span->size_class))) CheckDoubleFree(span, object, call);
  if (TCMALLOC_UNLIKELY(heap.cpus().LooksFree(object))) CheckMarked(span, object, call);
}

}  // namespace tcmalloc
