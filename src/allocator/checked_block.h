// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Checks the pointers that programs pass to free. Where a check fails, ends the process with one
// line that names the address.

#ifndef TCMALLOC_ALLOCATOR_CHECKED_BLOCK_H_
#define TCMALLOC_ALLOCATOR_CHECKED_BLOCK_H_

#include <cstdint>

#include "base/attributes.h"
#include "heap/heap.h"
#include "pages/page_map.h"
#include "pages/page_types.h"
#include "pages/span.h"
#include "size_class/size_classes.h"

namespace tcmalloc {

// Returns the class of the small object that begins at `block`, or null if no span of small objects
// has one there, or none at the addresses of which the page map knows most quickly. Any pointer may
// be asked for. Reads no span, whose line is often not in the processor's cache.
TCMALLOC_ALWAYS_INLINE const SizeClassInfo* ClassOfObjectAt(const void* block) {
  const PageMap::Entry entry = heap.page_map().NearEntryOf(PageId::Containing(block));
  const SizeClassInfo* info = OpaqueToOptimizer(&kSizeClasses[entry.size_class()]);
  return TCMALLOC_LIKELY(IsObjectStart(entry.OffsetOf(block), *info)) ? info : nullptr;
}

// Returns the span in use in which `block` begins a block. Takes no lock. A message says that
// `call` noticed it, unless that is null: any of the functions that free.
Span* CheckedSpanOf(const void* block, const char* call = nullptr);

// Returns true if the first word of `object`, one of the small objects of `span`, is what a free
// object begins with. Data of the program may look so by chance.
bool LooksFree(const Span* span, void* object);

// Checks that `object`, one of the small objects of `span`, is in use, if its first word makes that
// doubtful. Called inside a slow path that is not reentrant. A message says that `call` noticed it,
// unless that is null.
void CheckNotFree(const Span* span, void* object, const char* call = nullptr);

}  // namespace tcmalloc

#endif  // TCMALLOC_ALLOCATOR_CHECKED_BLOCK_H_
