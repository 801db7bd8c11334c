// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The functions that entry points call: the allocator's, by what the program asks for. The
// allocator does not tell families of functions apart and trusts no size, so most of them are
// alike. In a mode that checks blocks, they call the functions of the mode instead. The fast paths
// do not ask for the mode: see EntryThreads.

#ifndef TCMALLOC_OVERRIDE_BLOCKS_H_
#define TCMALLOC_OVERRIDE_BLOCKS_H_

#include <cstddef>
#include <cstring>

#include "allocator/allocate.h"
#include "allocator/allocated_size.h"
#include "allocator/block_functions.h"
#include "allocator/deallocate.h"
#include "allocator/reallocate.h"
#include "base/attributes.h"

namespace tcmalloc {

struct Blocks {
  // Allocates a size for malloc or new, or calls kSlow(size) where the fast path cannot.
  template <AllocateSlowPath kSlow>
  TCMALLOC_ALWAYS_INLINE static void* MallocOr(size_t size) {
    return AllocateForMalloc<kSlow>(size, entry_threads.plain);
  }
  template <AllocateSlowPath kSlow>
  TCMALLOC_ALWAYS_INLINE static void* NewOr(size_t size) {
    return AllocateOr<kSlow>(size, entry_threads.plain);
  }
  template <AllocateSlowPath kSlow>
  TCMALLOC_ALWAYS_INLINE static void* NewArrayOr(size_t size) {
    return AllocateOr<kSlow>(size, entry_threads.plain);
  }

  // The slow paths of all ways to allocate without an alignment.
  static void* MallocSlow(size_t size) { return AllocateAs(BlockFamily::kMalloc, size); }
  static void* NewSlow(size_t size) { return AllocateAs(BlockFamily::kNew, size); }
  static void* NewArraySlow(size_t size) { return AllocateAs(BlockFamily::kNewArray, size); }

  // Return null where there is no memory.
  TCMALLOC_ALWAYS_INLINE static void* Malloc(size_t size) {
    return AllocateOr<MallocSlow>(size, entry_threads.plain);
  }
  TCMALLOC_ALWAYS_INLINE static void* New(size_t size) {
    return AllocateOr<NewSlow>(size, entry_threads.plain);
  }
  TCMALLOC_ALWAYS_INLINE static void* NewArray(size_t size) {
    return AllocateOr<NewArraySlow>(size, entry_threads.plain);
  }
  TCMALLOC_ALWAYS_INLINE static void* Zeroed(size_t size) {
    const FastThread thread = entry_threads.plain;
    if (TCMALLOC_UNLIKELY(size >= thread->size_limit)) return ZeroedSlow(size);
    void* object = thread.lists()->TryAllocate(kClassBySize[size], size);
    if (TCMALLOC_LIKELY(object != nullptr)) return std::memset(object, 0, size);
    return AllocateAfterTry<AllocateZeroedSmall>(size, thread.lists());
  }
  static void* ZeroedSlow(size_t size) {
    const BlockFunctions* functions = FunctionsOfMode();
    if (TCMALLOC_LIKELY(functions == nullptr)) return AllocateZeroed(size);
    return functions->allocate({.size = size, .zeroed = true});
  }
  static void* Aligned(size_t size, size_t alignment) {
    return AllocateAlignedOr(size, alignment, AllocateAlignedAs<BlockFamily::kMalloc>);
  }
  static void* NewAligned(size_t size, size_t alignment) {
    return AllocateAlignedOr(size, alignment, AllocateAlignedAs<BlockFamily::kNew>);
  }
  // Make a block of any of them one of new, or of new[].
  static void* MakeNew(void* block) { return Make(block, BlockFamily::kNew); }
  static void* MakeNewArray(void* block) { return Make(block, BlockFamily::kNewArray); }

  TCMALLOC_ALWAYS_INLINE static void Free(void* block) { Deallocate(block, entry_threads.plain); }
  static void FreeSized(void* block, size_t size, const char* call = "free_sized") {
    FreeAs(block, {.size = size, .call = call});
  }
  static void FreeAlignedSized(void* block, size_t alignment, size_t size) {
    FreeAs(block, {.size = size, .alignment = alignment, .call = "free_aligned_sized"});
  }
  TCMALLOC_ALWAYS_INLINE static void Delete(void* block) {
    DeallocateBy(entry_threads.deletes, block, DeallocateAfterTry, kPlainDelete);
  }
  TCMALLOC_ALWAYS_INLINE static void DeleteArray(void* block) {
    DeallocateBy(entry_threads.deletes, block, DeallocateAfterTry, kArrayDelete);
  }
  TCMALLOC_ALWAYS_INLINE static void DeleteSized(void* block, size_t size) {
    if (TCMALLOC_UNLIKELY(size >= kClassBySize.size())) return DeleteLarge(block, size);
    DeallocateSizedBy(entry_threads.deletes, block, DeleteAfterTry, size, 0);
  }
  TCMALLOC_ALWAYS_INLINE static void DeleteArraySized(void* block, size_t size) {
    if (TCMALLOC_UNLIKELY(size >= kClassBySize.size())) return DeleteLargeArray(block, size);
    DeallocateSizedBy(entry_threads.deletes, block, DeleteAfterTry, size, kArrayTag);
  }
  static void DeleteAligned(void* block, size_t alignment) {
    FreeAs(block, {.family = BlockFamily::kNew, .alignment = alignment, .call = "operator delete"});
  }
  static void DeleteArrayAligned(void* block, size_t alignment) {
    FreeAs(block,
           {.family = BlockFamily::kNewArray, .alignment = alignment, .call = "operator delete[]"});
  }
  static void DeleteSizedAligned(void* block, size_t size, size_t alignment) {
    FreeAs(block, {.family = BlockFamily::kNew,
                   .size = size,
                   .alignment = alignment,
                   .call = "operator delete"});
  }
  static void DeleteArraySizedAligned(void* block, size_t size, size_t alignment) {
    FreeAs(block, {.family = BlockFamily::kNewArray,
                   .size = size,
                   .alignment = alignment,
                   .call = "operator delete[]"});
  }

  // The forms that follow a new without an exception whose constructor threw one.
  static void DeleteNoThrow(void* block) {
    DeleteNoThrow(block, {.family = BlockFamily::kNew, .call = "operator delete"});
  }
  static void DeleteArrayNoThrow(void* block) {
    DeleteNoThrow(block, {.family = BlockFamily::kNewArray, .call = "operator delete[]"});
  }
  static void DeleteAlignedNoThrow(void* block, size_t alignment) {
    DeleteNoThrow(block,
                  {.family = BlockFamily::kNew, .alignment = alignment, .call = "operator delete"});
  }
  static void DeleteArrayAlignedNoThrow(void* block, size_t alignment) {
    DeleteNoThrow(
        block,
        {.family = BlockFamily::kNewArray, .alignment = alignment, .call = "operator delete[]"});
  }
  static void DeleteNoThrow(void* block, const BlockClaim& claim);

  // Returns true if a mode or the program's own operators have to know what a call says that frees.
  static bool DeletesTakeSlowPath() { return block_functions != nullptr || program_has_operators; }
  // Serves a call that frees when the fast paths do not.
  static void FreeSlow(void* block, const BlockClaim& claim);
  // Serve sizes that the fast paths do not look up.
  static void DeleteLarge(void* block, size_t size);
  static void DeleteLargeArray(void* block, size_t size);

  static void* Reallocate(void* block, size_t size) {
    if (TCMALLOC_UNLIKELY(block_functions != nullptr)) {
      return block_functions->reallocate(block, size);
    }
    return tcmalloc::Reallocate(block, size);
  }
  static size_t SizeFor(size_t size, size_t alignment) {
    const BlockFunctions* functions = FunctionsOfMode();
    if (TCMALLOC_UNLIKELY(functions != nullptr)) return functions->size_for(size, alignment);
    return AllocatedSizeFor(size, alignment);
  }

  static void CheckAtExit() {
    if (block_functions != nullptr) block_functions->check_at_exit();
  }

 private:
  static void* AllocateAs(BlockFamily family, size_t size) {
    const BlockFunctions* functions = FunctionsOfMode();
    if (TCMALLOC_LIKELY(functions == nullptr)) return AllocateSlow(size);
    return functions->allocate_plain(size, family);
  }
  template <BlockFamily family>
  static void* AllocateAlignedAs(size_t size, size_t alignment) {
    const BlockFunctions* functions = FunctionsOfMode();
    if (TCMALLOC_LIKELY(functions == nullptr)) return AllocateAligned(size, alignment);
    return functions->allocate({.size = size, .alignment = alignment, .family = family});
  }
  static void* Make(void* block, BlockFamily family) {
    if (TCMALLOC_UNLIKELY(block_functions != nullptr) && block != nullptr) {
      block_functions->set_family(block, family);
    }
    return block;
  }
  TCMALLOC_ALWAYS_INLINE static void FreeAs(void* block, const BlockClaim& claim) {
    if (TCMALLOC_UNLIKELY(DeletesTakeSlowPath())) return FreeSlow(block, claim);
    if (claim.size != BlockClaim::kUnknown) {
      DeallocateSized(block, claim.size, entry_threads.plain);
    } else {
      Deallocate(block, entry_threads.plain);
    }
  }
};

}  // namespace tcmalloc

#endif  // TCMALLOC_OVERRIDE_BLOCKS_H_
