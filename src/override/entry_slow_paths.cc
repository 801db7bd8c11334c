// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The slow paths of everything that frees, by what the entry points know of the block. The headers
// of threads without a front end have them.

#include <cstddef>

#include "override/blocks.h"

namespace tcmalloc {

void Blocks::FreeSlow(void* block, const BlockClaim& claim) {
  if (block == nullptr) return;
  const BlockFunctions* functions = FunctionsOfMode();
  if (TCMALLOC_UNLIKELY(functions != nullptr)) return functions->free(block, claim);
  const bool is_delete = claim.family != BlockFamily::kMalloc;
  const bool is_aligned = claim.alignment != BlockClaim::kUnknown;
  if (is_delete && !is_aligned && claim.size != BlockClaim::kUnknown) {
    CheckDeletedSize(block, claim.size);
  }
  DeallocateSlow(block);
}

void Blocks::DeleteLarge(void* block, size_t size) {
  if (TCMALLOC_LIKELY(block_functions == nullptr)) return DeleteChecked(block, size);
  FreeSlow(block, {.family = BlockFamily::kNew, .size = size, .call = "operator delete"});
}

void Blocks::DeleteLargeArray(void* block, size_t size) {
  if (TCMALLOC_LIKELY(block_functions == nullptr)) return DeleteChecked(block, size);
  FreeSlow(block, {.family = BlockFamily::kNewArray, .size = size, .call = "operator delete[]"});
}

void FreeSlow(void* block) {
  if (block == nullptr) return;
  const BlockFunctions* functions = FunctionsOfMode();
  if (TCMALLOC_UNLIKELY(functions != nullptr)) return functions->free_plain(block);
  DeallocateSlow(block);
}

// `size` says what kind of delete it is; see kPlainDelete.
void DeleteClosed(void* block, FastThread, ObjectReference, size_t size) {
  BlockClaim claim = {.family = BlockFamily::kNew, .call = "operator delete"};
  if (size == kArrayDelete || (size != kPlainDelete && size >= kArrayTag)) {
    claim = {.family = BlockFamily::kNewArray, .call = "operator delete[]"};
  }
  if (size < kArrayDelete) claim.size = size % kArrayTag;
  Blocks::FreeSlow(block, claim);
}

}  // namespace tcmalloc
