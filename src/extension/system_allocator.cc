// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "extension/system_allocator.h"

#include <atomic>
#include <cerrno>

#include "allocator/slow_path.h"
#include "extension/never_destroyed.h"
#include "heap/heap.h"
#include "system/weak_cxx_symbols.h"

namespace tcmalloc {
namespace {

// The thread that grows the heap by a registered allocator, inside the slow path; null if there is
// none, or while it calls the system's allocator. There is one such thread at a time, because the
// page heap's lock is held. Relaxed, because a thread only looks for its own name.
constinit std::atomic<const void*> growing{nullptr};

// Returns a name for the running thread: the address of one of its variables.
const void* CurrentThreadId() { return &current_thread; }

// Fails in a signal handler that interrupted the slow path, which may hold the lock of the system's
// memory.
MemoryBlock AllocateFromSystem(size_t bytes, size_t alignment) {
  if (growing.load(std::memory_order_relaxed) == CurrentThreadId()) {
    growing.store(nullptr, std::memory_order_relaxed);
    const MemoryBlock block = heap.memory().AllocateFromSystem(bytes, alignment);
    growing.store(CurrentThreadId(), std::memory_order_relaxed);
    return block;
  }
  SlowPath slow_path(SlowPath::Patient{});
  if (slow_path.reentrant()) return {};
  heap.EnsureInitialized();
  return heap.memory().AllocateFromSystem(bytes, alignment);
}

class SystemAllocator final : public SysAllocator {
 public:
  constexpr SystemAllocator() = default;

  void* Alloc(size_t size, size_t* actual_size, size_t alignment) override {
    const MemoryBlock block = AllocateFromSystem(size, alignment);
    if (block.start == nullptr) errno = ENOMEM;
    if (actual_size != nullptr) *actual_size = block.bytes;
    return block.start;
  }
};

// Constant, because the object has no state.
constexpr NeverDestroyed<SystemAllocator> kSystem;

// Null stands for the system's memory.
constinit std::atomic<SysAllocator*> registered{nullptr};

void* Provide(size_t bytes, size_t* actual, size_t alignment) {
  growing.store(CurrentThreadId(), std::memory_order_relaxed);
  void* memory = CurrentSystemAllocator()->Alloc(bytes, actual, alignment);
  growing.store(nullptr, std::memory_order_relaxed);
  return memory;
}

}  // namespace

SysAllocator* CurrentSystemAllocator() {
  // Acquire pairs with the release in RegisterSystemAllocator and publishes the object.
  SysAllocator* allocator = registered.load(std::memory_order_acquire);
  return allocator != nullptr ? allocator : const_cast<SystemAllocator*>(&kSystem.value);
}

void RegisterSystemAllocator(SysAllocator* allocator) {
  if (allocator == &kSystem.value) allocator = nullptr;
  // Release pairs with the acquire in CurrentSystemAllocator.
  registered.store(allocator, std::memory_order_release);
  heap.memory().set_provider(allocator != nullptr ? Provide : nullptr);
}

}  // namespace tcmalloc
