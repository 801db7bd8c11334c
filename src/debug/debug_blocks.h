// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What the entry points of the debug libraries call; HeapBlocks of override/ is its twin.

#ifndef TCMALLOC_DEBUG_DEBUG_BLOCKS_H_
#define TCMALLOC_DEBUG_DEBUG_BLOCKS_H_

#include <cstddef>

namespace tcmalloc {

// Each function returns null, without errno, where there is no memory. Free functions take null.
struct DebugBlocks {
  template <void* (*kSlow)(size_t size)>
  static void* MallocOr(size_t size) {
    return kSlow(size);
  }
  template <void* (*kSlow)(size_t size)>
  static void* NewOr(size_t size) {
    return kSlow(size);
  }
  template <void* (*kSlow)(size_t size)>
  static void* NewArrayOr(size_t size) {
    return kSlow(size);
  }

  static void* Malloc(size_t size);
  static void* MallocSlow(size_t size) { return Malloc(size); }
  static void* NewSlow(size_t size) { return New(size); }
  static void* NewArraySlow(size_t size) { return NewArray(size); }
  static void* Zeroed(size_t size);
  static void* Aligned(size_t size, size_t alignment);
  static void* New(size_t size);
  static void* NewArray(size_t size);
  static void* NewAligned(size_t size, size_t alignment);
  // Makes a block of any of them one of new, or of new[].
  static void* MakeNew(void* block);
  static void* MakeNewArray(void* block);

  static void Free(void* block);
  static void FreeSized(void* block, size_t size);
  static void FreeAlignedSized(void* block, size_t alignment, size_t size);
  static void Delete(void* block);
  static void DeleteArray(void* block);
  static void DeleteSized(void* block, size_t size);
  static void DeleteArraySized(void* block, size_t size);
  static void DeleteAligned(void* block, size_t alignment);
  static void DeleteArrayAligned(void* block, size_t alignment);
  static void DeleteSizedAligned(void* block, size_t size, size_t alignment);
  static void DeleteArraySizedAligned(void* block, size_t size, size_t alignment);

  // Every realloc moves its block.
  static bool StaysAsItIs(const void*, size_t) { return false; }
  // Requires block != nullptr and size > 0.
  static void* Reallocate(void* block, size_t size);
  static size_t UsableSize(const void* block);
  static size_t SizeFor(size_t size, size_t alignment);

  // Called when the program ends: checks all blocks.
  static void CheckAtExit();
};

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_DEBUG_BLOCKS_H_
