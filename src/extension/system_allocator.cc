// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "extension/system_allocator.h"

#include <atomic>

#include "extension/never_destroyed.h"
#include "heap/heap.h"
#include "system/weak_cxx_symbols.h"

namespace tcmalloc {
namespace {

class SystemAllocator final : public SysAllocator {
 public:
  constexpr SystemAllocator() = default;

  void* Alloc(size_t size, size_t* actual_size, size_t alignment) override {
    heap.EnsureInitialized();
    const MemoryBlock block = heap.memory().AllocateFromSystem(size, alignment);
    if (actual_size != nullptr) *actual_size = block.bytes;
    return block.start;
  }
};

// It has no state, so that being constant does no harm.
constexpr NeverDestroyed<SystemAllocator> kSystem;

// Null: the system's.
constinit std::atomic<SysAllocator*> registered{nullptr};

void* Provide(size_t bytes, size_t* actual, size_t alignment) {
  return CurrentSystemAllocator()->Alloc(bytes, actual, alignment);
}

}  // namespace

SysAllocator* CurrentSystemAllocator() {
  // Acquire pairs with the release in RegisterSystemAllocator and publishes the object.
  SysAllocator* allocator = registered.load(std::memory_order_acquire);
  return allocator != nullptr ? allocator : const_cast<SystemAllocator*>(&kSystem.value);
}

void RegisterSystemAllocator(SysAllocator* allocator) {
  if (allocator == &kSystem.value) allocator = nullptr;
  registered.store(allocator, std::memory_order_release);
  heap.memory().set_provider(allocator != nullptr ? Provide : nullptr);
}

}  // namespace tcmalloc
