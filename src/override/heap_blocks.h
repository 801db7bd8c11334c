// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What the entry points call: the allocator's functions, by what the program asks for. The
// allocator does not tell families of functions apart and trusts no size, so most of them are
// alike.

#ifndef TCMALLOC_OVERRIDE_HEAP_BLOCKS_H_
#define TCMALLOC_OVERRIDE_HEAP_BLOCKS_H_

#include <cstddef>

#include "allocator/allocate.h"
#include "allocator/allocated_size.h"
#include "allocator/deallocate.h"
#include "allocator/reallocate.h"
#include "base/attributes.h"

namespace tcmalloc {

// DebugBlocks of debug/ is its twin.
struct HeapBlocks {
  // Allocates a size for malloc or new, or calls kSlow(size) where the fast path cannot.
  template <AllocateSlowPath kSlow>
  TCMALLOC_ALWAYS_INLINE static void* MallocOr(size_t size) {
    return AllocateForMalloc<kSlow>(size);
  }
  template <AllocateSlowPath kSlow>
  TCMALLOC_ALWAYS_INLINE static void* NewOr(size_t size) {
    return AllocateOr<kSlow>(size);
  }
  template <AllocateSlowPath kSlow>
  TCMALLOC_ALWAYS_INLINE static void* NewArrayOr(size_t size) {
    return AllocateOr<kSlow>(size);
  }

  // Return null where there is no memory.
  TCMALLOC_ALWAYS_INLINE static void* Malloc(size_t size) { return Allocate(size); }
  static void* MallocSlow(size_t size) { return AllocateSlow(size); }
  static void* Zeroed(size_t size) { return AllocateZeroed(size); }
  static void* Aligned(size_t size, size_t alignment) { return AllocateAligned(size, alignment); }
  static void* New(size_t size) { return Allocate(size); }
  static void* NewArray(size_t size) { return Allocate(size); }
  static void* NewAligned(size_t size, size_t alignment) {
    return AllocateAligned(size, alignment);
  }
  static void* MakeNew(void* block) { return block; }
  static void* MakeNewArray(void* block) { return block; }

  TCMALLOC_ALWAYS_INLINE static void Free(void* block) { Deallocate(block); }
  TCMALLOC_ALWAYS_INLINE static void FreeSized(void* block, size_t size) {
    DeallocateSized(block, size);
  }
  TCMALLOC_ALWAYS_INLINE static void FreeAlignedSized(void* block, size_t, size_t size) {
    DeallocateSized(block, size);
  }
  TCMALLOC_ALWAYS_INLINE static void Delete(void* block) { Deallocate(block); }
  TCMALLOC_ALWAYS_INLINE static void DeleteArray(void* block) { Deallocate(block); }
  TCMALLOC_ALWAYS_INLINE static void DeleteSized(void* block, size_t size) {
    DeallocateSized(block, size);
  }
  TCMALLOC_ALWAYS_INLINE static void DeleteArraySized(void* block, size_t size) {
    DeallocateSized(block, size);
  }
  TCMALLOC_ALWAYS_INLINE static void DeleteAligned(void* block, size_t) { Deallocate(block); }
  TCMALLOC_ALWAYS_INLINE static void DeleteArrayAligned(void* block, size_t) { Deallocate(block); }
  TCMALLOC_ALWAYS_INLINE static void DeleteSizedAligned(void* block, size_t size, size_t) {
    DeallocateSized(block, size);
  }
  TCMALLOC_ALWAYS_INLINE static void DeleteArraySizedAligned(void* block, size_t size, size_t) {
    DeallocateSized(block, size);
  }

  TCMALLOC_ALWAYS_INLINE static bool StaysAsItIs(const void* block, size_t size) {
    return tcmalloc::StaysAsItIs(block, size);
  }
  static void* Reallocate(void* block, size_t size) { return tcmalloc::Reallocate(block, size); }
  static size_t UsableSize(const void* block) { return tcmalloc::UsableSize(block); }
  static size_t SizeFor(size_t size, size_t alignment) { return AllocatedSizeFor(size, alignment); }

  static void CheckAtExit() {}
};

}  // namespace tcmalloc

#endif  // TCMALLOC_OVERRIDE_HEAP_BLOCKS_H_
