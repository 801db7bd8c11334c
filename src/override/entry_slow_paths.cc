// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The slow paths of everything that frees, by what the entry points know of the block. The headers
// of threads without a front end have them.

#include <cstddef>

#include "override/blocks.h"
#include "system/own_operators.h"

namespace tcmalloc {
namespace {

// Frees a block by the program's own operator, if the form of delete leads there. Returns false if
// it does not.
TCMALLOC_NOINLINE bool DeleteByProgram(void* block, const BlockClaim& claim, LeadingForm plain,
                                       LeadingForm aligned) {
  const bool array = claim.family == BlockFamily::kNewArray;
  if (claim.alignment == BlockClaim::kUnknown) {
    const auto own = ProgramsOperatorAs<DeleteOperator>(plain, array);
    if (own != nullptr) own(block);
    return own != nullptr;
  }
  const auto own = ProgramsOperatorAs<AlignedDeleteOperator>(aligned, array);
  if (own != nullptr) own(block, std::align_val_t{claim.alignment});
  return own != nullptr;
}

}  // namespace

void Blocks::FreeSlow(void* block, const BlockClaim& claim) {
  if (block == nullptr) return;
  const BlockFunctions* functions = FunctionsOfMode();
  const bool is_sized_delete =
      claim.family != BlockFamily::kMalloc && claim.size != BlockClaim::kUnknown;
  if (TCMALLOC_UNLIKELY(program_has_operators) && is_sized_delete &&
      DeleteByProgram(block, claim, LeadingForm::kDeleteSized, LeadingForm::kAlignedDeleteSized)) {
    return;
  }
  if (TCMALLOC_UNLIKELY(functions != nullptr)) return functions->free(block, claim);
  if (is_sized_delete && claim.alignment == BlockClaim::kUnknown) {
    CheckDeletedSize(block, claim.size);
  }
  DeallocateSlow(block);
}

void Blocks::DeleteNoThrow(void* block, const BlockClaim& claim) {
  if (block == nullptr) return;
  if (TCMALLOC_UNLIKELY(program_has_operators) &&
      DeleteByProgram(block, claim, LeadingForm::kDeleteNoThrow,
                      LeadingForm::kAlignedDeleteNoThrow)) {
    return;
  }
  FreeSlow(block, claim);
}

void Blocks::DeleteLarge(void* block, size_t size) {
  if (TCMALLOC_LIKELY(!DeletesTakeSlowPath())) return DeleteChecked(block, size);
  FreeSlow(block, {.family = BlockFamily::kNew, .size = size, .call = "operator delete"});
}

void Blocks::DeleteLargeArray(void* block, size_t size) {
  if (TCMALLOC_LIKELY(!DeletesTakeSlowPath())) return DeleteChecked(block, size);
  FreeSlow(block, {.family = BlockFamily::kNewArray, .size = size, .call = "operator delete[]"});
}

void FreeSlow(void* block) {
  if (block == nullptr) return;
  const BlockFunctions* functions = FunctionsOfMode();
  if (TCMALLOC_UNLIKELY(functions != nullptr)) return functions->free_plain(block);
  DeallocateSlow(block);
}

void DeleteClosed(void* block, FastThread, ObjectReference, size_t size) {
  Blocks::FreeSlow(block, ClaimOfDelete(size));
}

}  // namespace tcmalloc
