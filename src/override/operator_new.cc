// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "override/operator_new.h"

#include <cerrno>

#include "override/cxx_runtime.h"
#include "override/out_of_memory.h"

namespace tcmalloc {
namespace {

void* AllocateAny(size_t size, size_t alignment) {
  return alignment <= kNoAlignment ? Allocate(size) : AllocateAligned(size, alignment);
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
  void* block = AllocateSlow(size);
  return TCMALLOC_LIKELY(block != nullptr) ? block : RetryOrThrow(size, kNoAlignment);
}

void* NewNoThrow(size_t size) noexcept {
  void* block = Allocate(size);
  return TCMALLOC_LIKELY(block != nullptr) ? block : RetryOrNull(size, kNoAlignment);
}

void* NewAligned(size_t size, std::align_val_t alignment) {
  void* block = AllocateAligned(size, static_cast<size_t>(alignment));
  return TCMALLOC_LIKELY(block != nullptr) ? block
                                           : RetryOrThrow(size, static_cast<size_t>(alignment));
}

void* NewAlignedNoThrow(size_t size, std::align_val_t alignment) noexcept {
  void* block = AllocateAligned(size, static_cast<size_t>(alignment));
  return TCMALLOC_LIKELY(block != nullptr) ? block
                                           : RetryOrNull(size, static_cast<size_t>(alignment));
}

}  // namespace tcmalloc
