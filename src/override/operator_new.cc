// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "override/operator_new.h"

#include <cerrno>

#include "override/cxx_runtime.h"
#include "override/out_of_memory.h"

namespace tcmalloc {
namespace {

void* AllocateAny(size_t size, size_t alignment) {
  return alignment <= kNoAlignment ? Blocks::Malloc(size) : Blocks::Aligned(size, alignment);
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
  void* block = Blocks::New(size);
  return TCMALLOC_LIKELY(block != nullptr) ? block
                                           : Blocks::MakeNew(RetryOrNull(size, kNoAlignment));
}

void* NewAligned(size_t size, std::align_val_t alignment) {
  const auto bytes = static_cast<size_t>(alignment);
  void* block = Blocks::NewAligned(size, bytes);
  return TCMALLOC_LIKELY(block != nullptr) ? block : Blocks::MakeNew(RetryOrThrow(size, bytes));
}

void* NewAlignedNoThrow(size_t size, std::align_val_t alignment) noexcept {
  const auto bytes = static_cast<size_t>(alignment);
  void* block = Blocks::NewAligned(size, bytes);
  return TCMALLOC_LIKELY(block != nullptr) ? block : Blocks::MakeNew(RetryOrNull(size, bytes));
}

}  // namespace tcmalloc
