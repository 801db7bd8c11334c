// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hardened/hardened_mode.h"

#include <cstddef>
#include <cstdint>

#include "allocator/block_functions.h"
#include "base/attributes.h"
#include "hardened/hardened_heap.h"
#include "hardened/hardened_heap_inl.h"
#include "heap/heap.h"
#include "system/own_operators.h"
#include "thread/current_thread.h"

namespace tcmalloc {
namespace {

// Do what the fast paths do not.
TCMALLOC_NOINLINE void* MallocAfterTry(size_t size) {
  void* block = hardened_heap.AllocatePlain(size, BlockFamily::kMalloc);
  return TCMALLOC_LIKELY(block != nullptr) ? block : entry_threads.plain->slow.malloc(size);
}
TCMALLOC_NOINLINE void FreeAfterTry(void* block) {
  if (block == nullptr || hardened_heap.TryFree(block, BlockFamily::kMalloc)) return;
  hardened_heap.Free(block, {});
}

// Try again, with a group that is made if there is none.
template <bool kIsLong>
TCMALLOC_NOINLINE void* MallocAgain(size_t size) {
  void* block = nullptr;
  const size_t padded = hardened_heap.Padded(size);
  if (hardened_heap.PrepareTurn(padded)) {
    block = kIsLong ? hardened_heap.TryAllocate(padded, BlockFamily::kMalloc)
                    : hardened_heap.TryAllocateShort<false>(padded, BlockFamily::kMalloc);
  }
  return TCMALLOC_LIKELY(block != nullptr) ? block : MallocAfterTry(size);
}

// The fast paths of blocks of more than kMostInFour bytes.
TCMALLOC_NOINLINE void* MallocLong(size_t size) {
  const size_t padded = hardened_heap.Padded(size);
  void* block = hardened_heap.TryAllocateShort<true>(padded, BlockFamily::kMalloc);
  return TCMALLOC_LIKELY(block != nullptr) ? block : MallocAgain<true>(size);
}
TCMALLOC_NOINLINE void FreeLong(void* block, ShortBlock known) {
  if (TCMALLOC_UNLIKELY(!hardened_heap.TryFreeShort<true>(block, known))) FreeAfterTry(block);
}

// Serve malloc and free, which find them in the header that is their entry.
void* MallocHardened(size_t size, FastThread) {
  const size_t padded = hardened_heap.Padded(size);
  if (padded >= kMostInFour) return MallocLong(size);
  void* block = hardened_heap.TryAllocateShort<false>(padded, BlockFamily::kMalloc);
  return TCMALLOC_LIKELY(block != nullptr) ? block : MallocAgain<false>(size);
}
void FreeHardened(void* block, FastThread, ObjectReference, size_t) {
  ShortBlock known;
  if (TCMALLOC_UNLIKELY(!hardened_heap.FindShort(block, BlockFamily::kMalloc, &known))) {
    return FreeAfterTry(block);
  }
  if (known.size_class > SizeClassFor(kMostInFour)) return FreeLong(block, known);
  if (TCMALLOC_UNLIKELY(!hardened_heap.TryFreeShort<false>(block, known))) FreeAfterTry(block);
}

TCMALLOC_NOINLINE void* NewAgain(size_t size, BlockFamily family) {
  const size_t padded = hardened_heap.Padded(size);
  void* block =
      hardened_heap.PrepareTurn(padded) ? hardened_heap.TryAllocate(padded, family) : nullptr;
  return TCMALLOC_LIKELY(block != nullptr) ? block : hardened_heap.AllocatePlain(size, family);
}
TCMALLOC_NOINLINE void* NewLong(size_t size, BlockFamily family) {
  void* block = hardened_heap.TryAllocateShort<true>(hardened_heap.Padded(size), family);
  return TCMALLOC_LIKELY(block != nullptr) ? block : NewAgain(size, family);
}
// Serves new, and malloc where there is no memory.
void* AllocatePlain(size_t size, BlockFamily family) {
  if (family == BlockFamily::kMalloc) return hardened_heap.AllocatePlain(size, family);
  const size_t padded = hardened_heap.Padded(size);
  if (padded >= kMostInFour) return NewLong(size, family);
  void* block = hardened_heap.TryAllocateShort<false>(padded, family);
  return TCMALLOC_LIKELY(block != nullptr) ? block : NewAgain(size, family);
}

TCMALLOC_NOINLINE void FreeClaimedAfterTry(void* block, const BlockClaim& claim) {
  if (claim.alignment == BlockClaim::kUnknown &&
      hardened_heap.TryFree(block, claim.family, claim.size)) {
    return;
  }
  hardened_heap.Free(block, claim);
}
TCMALLOC_NOINLINE void FreeClaimedLong(void* block, ShortBlock known, const BlockClaim& claim) {
  const bool is_free = hardened_heap.TryFreeShort<true>(block, known, claim.size);
  if (TCMALLOC_UNLIKELY(!is_free)) FreeClaimedAfterTry(block, claim);
}
// Serves frees that are not plain, and deletes that do not come by their entry.
void FreeClaimed(void* block, const BlockClaim& claim) {
  ShortBlock known;
  if (TCMALLOC_UNLIKELY(claim.alignment != BlockClaim::kUnknown ||
                        !hardened_heap.FindShort(block, claim.family, &known))) {
    return FreeClaimedAfterTry(block, claim);
  }
  if (known.size_class > SizeClassFor(kMostInFour)) return FreeClaimedLong(block, known, claim);
  const bool is_free = hardened_heap.TryFreeShort<false>(block, known, claim.size);
  if (TCMALLOC_UNLIKELY(!is_free)) FreeClaimedAfterTry(block, claim);
}

TCMALLOC_NOINLINE void DeleteAfterTry(void* block, size_t size) {
  if (block != nullptr) FreeClaimedAfterTry(block, ClaimOfDelete(size));
}
TCMALLOC_NOINLINE void DeleteLong(void* block, ShortBlock known, size_t size) {
  const bool is_free = hardened_heap.TryFreeShort<true>(block, known, ClaimOfDelete(size).size);
  if (TCMALLOC_UNLIKELY(!is_free)) DeleteAfterTry(block, size);
}
// Serves delete, which finds it in the header that is its entry.
void DeleteHardened(void* block, FastThread, ObjectReference, size_t size) {
  const BlockClaim claim = ClaimOfDelete(size);
  ShortBlock known;
  if (TCMALLOC_UNLIKELY(!hardened_heap.FindShort(block, claim.family, &known))) {
    return DeleteAfterTry(block, size);
  }
  if (known.size_class > SizeClassFor(kMostInFour)) return DeleteLong(block, known, size);
  const bool is_free = hardened_heap.TryFreeShort<false>(block, known, claim.size);
  if (TCMALLOC_UNLIKELY(!is_free)) DeleteAfterTry(block, size);
}

constexpr BlockFunctions kHardenedFunctions = {
    .allocate = [](const BlockRequest& request) { return hardened_heap.Allocate(request); },
    .allocate_plain = AllocatePlain,
    .free = FreeClaimed,
    .free_plain = [](void* block) { hardened_heap.Free(block, {}); },
    .reallocate = [](void* block, size_t size) { return hardened_heap.Reallocate(block, size); },
    .set_family = [](void* block, BlockFamily family) { hardened_heap.SetFamily(block, family); },
    .usable_size = [](const void* block,
                      const char* call) { return hardened_heap.SizeOf(block, call); },
    .size_for = [](size_t size,
                   size_t alignment) { return hardened_heap.SizeFor(size, alignment); },
    .owns = [](const void* block) { return hardened_heap.Owns(block); },
    .check_at_exit =
        [] {
          if (heap.options().exit_check) hardened_heap.CheckAll();
        },
};

}  // namespace

bool StartHardenedMode(const Options& options) {
  if (!hardened_heap.Initialize(options)) return false;
  // Deletes of a program with operators of its own may lead to these.
  CheckEntries(MallocHardened, FreeHardened, program_has_operators ? nullptr : DeleteHardened);
  EnterMode(kHardenedFunctions);
  return true;
}

}  // namespace tcmalloc
