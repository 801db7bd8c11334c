// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "override/operator_new.h"

#include <cerrno>

#include "base/bits.h"
#include "override/cxx_runtime.h"
#include "override/out_of_memory.h"
#include "system/own_operators.h"

namespace tcmalloc {
namespace {

void* AllocateAny(size_t size, size_t alignment) {
  return alignment <= kNoAlignment ? Blocks::Malloc(size) : Blocks::Aligned(size, alignment);
}

TCMALLOC_NOINLINE void* AllocateNoThrow(size_t size) {
  void* block = Blocks::New(size);
  return TCMALLOC_LIKELY(block != nullptr) ? block
                                           : Blocks::MakeNew(RetryOrNull(size, kNoAlignment));
}

TCMALLOC_NOINLINE void* AllocateAlignedNoThrow(size_t size, std::align_val_t alignment) {
  const auto bytes = static_cast<size_t>(alignment);
  if (TCMALLOC_UNLIKELY(!IsPowerOfTwo(bytes))) {
    errno = EINVAL;
    return nullptr;
  }
  void* block = Blocks::NewAligned(size, bytes);
  return TCMALLOC_LIKELY(block != nullptr) ? block : Blocks::MakeNew(RetryOrNull(size, bytes));
}

}  // namespace

void* RetryOrThrow(size_t size, size_t alignment) {
  while (true) {
    std::new_handler handler = CurrentNewHandler();
    if (handler == nullptr) ThrowBadAlloc();
    handler();
    if (void* block = AllocateAny(size, alignment)) return block;
  }
}

void* RetryOrNull(size_t size, size_t alignment) {
  while (true) {
    std::new_handler handler = CurrentNewHandler();
    if (handler == nullptr || !CallNewHandlerNoThrow(handler)) {
      errno = ENOMEM;
      return nullptr;
    }
    if (void* block = AllocateAny(size, alignment)) return block;
  }
}

void* NewSlow(size_t size) {
  void* block = Blocks::NewSlow(size);
  return TCMALLOC_LIKELY(block != nullptr) ? block
                                           : Blocks::MakeNew(RetryOrThrow(size, kNoAlignment));
}

void* NewArraySlow(size_t size) {
  void* block = Blocks::NewArraySlow(size);
  return TCMALLOC_LIKELY(block != nullptr) ? block
                                           : Blocks::MakeNewArray(RetryOrThrow(size, kNoAlignment));
}

void* NewNoThrow(size_t size) noexcept {
  if (TCMALLOC_UNLIKELY(program_has_operators)) {
    const auto own = ProgramsOperatorAs<NewOperator>(LeadingForm::kNewNoThrow, false);
    if (own != nullptr) return CallNewNoThrow(own, size);
  }
  return AllocateNoThrow(size);
}

void* NewArrayNoThrow(size_t size) noexcept {
  if (TCMALLOC_UNLIKELY(program_has_operators)) {
    const auto own = ProgramsOperatorAs<NewOperator>(LeadingForm::kNewNoThrow, true);
    if (own != nullptr) return CallNewNoThrow(own, size);
  }
  return Blocks::MakeNewArray(AllocateNoThrow(size));
}

// A handler could not help with an alignment that is none.
void* NewAligned(size_t size, std::align_val_t alignment) {
  const auto bytes = static_cast<size_t>(alignment);
  if (TCMALLOC_UNLIKELY(!IsPowerOfTwo(bytes))) ThrowBadAlloc();
  void* block = Blocks::NewAligned(size, bytes);
  return TCMALLOC_LIKELY(block != nullptr) ? block : Blocks::MakeNew(RetryOrThrow(size, bytes));
}

void* NewAlignedNoThrow(size_t size, std::align_val_t alignment) noexcept {
  if (TCMALLOC_UNLIKELY(program_has_operators)) {
    const auto own = ProgramsOperatorAs<AlignedNewOperator>(LeadingForm::kAlignedNewNoThrow, false);
    if (own != nullptr) return CallNewNoThrow(own, size, alignment);
  }
  return AllocateAlignedNoThrow(size, alignment);
}

void* NewArrayAlignedNoThrow(size_t size, std::align_val_t alignment) noexcept {
  if (TCMALLOC_UNLIKELY(program_has_operators)) {
    const auto own = ProgramsOperatorAs<AlignedNewOperator>(LeadingForm::kAlignedNewNoThrow, true);
    if (own != nullptr) return CallNewNoThrow(own, size, alignment);
  }
  return Blocks::MakeNewArray(AllocateAlignedNoThrow(size, alignment));
}

}  // namespace tcmalloc
