// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Tells the size of a block.

#ifndef TCMALLOC_ALLOCATOR_USABLE_SIZE_H_
#define TCMALLOC_ALLOCATOR_USABLE_SIZE_H_

#include <cstddef>
#include <cstdint>

#include "allocator/checked_block.h"
#include "base/attributes.h"
#include "heap/heap.h"
#include "pages/free_link.h"
#include "pages/page_types.h"
#include "pages/span.h"
#include "size_class/size_classes.h"

namespace tcmalloc {

struct FoundBlock {
  Span* span = nullptr;  // null of a block that has none, and of null
  size_t bytes = 0;      // that the program may use
};

// Returns what is known of `block`; aborts if it is not one of ours. The message names `call`, the
// function of the program's interface.
FoundBlock FindBlock(const void* block, const char* call);

// Returns the bytes that the owner of `block` may use; 0 for null. Aborts as FindBlock does.
size_t UsableSize(const void* block, const char* call = "malloc_usable_size");

// Does what UsableSizeInUse does when it has to look closer, and in a mode that knows its own
// blocks.
size_t UsableSizeInDoubt(const void* block, const char* call);

// Returns true if the first word of a small object is what no free object begins with. Takes any
// word that decodes to some aligned address for a link: one in 2^18 of the program's own.
TCMALLOC_ALWAYS_INLINE bool SurelyInUse(const void* object) {
  constexpr auto kBeyondAddresses =
      static_cast<int64_t>((uint64_t{1} << 63) + (uint64_t{1} << kAddressBits) / 8);
  auto* const word = const_cast<void*>(object);
  return !IsBelow(heap.codec().Next(word), kBeyondAddresses) && !heap.cpus().MayLookFree(word);
}

// Returns the same as UsableSize in the default mode, and in others what the mode says. Aborts also
// where the block is free and still looks so. Programs that count their own memory ask for every
// block that they get and free, so what the page map and the first word leave no doubt about is
// answered without a call.
TCMALLOC_ALWAYS_INLINE size_t UsableSizeInUse(const void* block,
                                              const char* call = "malloc_usable_size") {
  const SizeClassInfo* info = ClassOfObjectAt(block);
  if (TCMALLOC_LIKELY(info != nullptr) && TCMALLOC_LIKELY(SurelyInUse(block))) return info->size;
  return UsableSizeInDoubt(block, call);
}

// Does the same, in less code for the caller.
size_t UsableSizeInUseByCall(const void* block, const char* call = "malloc_usable_size");

}  // namespace tcmalloc

#endif  // TCMALLOC_ALLOCATOR_USABLE_SIZE_H_
