// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap/emergency_arena.h"

#include <algorithm>
#include <cstring>

#include "base/bits.h"

namespace tcmalloc {

static_assert(std::atomic<uint64_t>::is_always_lock_free);

void* EmergencyArena::Allocate(size_t bytes, size_t alignment) {
  alignment = std::max(alignment, kHeaderBytes);
  if (bytes > kBytes || alignment > kBytes) return nullptr;
  for (size_t part = 0; part < kParts; ++part) {
    if (void* block = AllocateIn(part, bytes, alignment)) return block;
  }
  return nullptr;
}

// Each block follows a header whose last word holds its size.
void* EmergencyArena::AllocateIn(size_t part, size_t bytes, size_t alignment) {
  const auto memory = reinterpret_cast<uintptr_t>(memory_);
  const uintptr_t base = memory + part * kPartBytes;
  State state = parts_[part].load(std::memory_order_relaxed);
  while (true) {
    const uintptr_t block = AlignUp(base + state.used + kHeaderBytes, alignment);
    const uintptr_t end = block + AlignUp(std::max(bytes, size_t{1}), kHeaderBytes);
    if (end > memory + EndOf(part)) return nullptr;
    const State next{static_cast<uint32_t>(end - base), state.blocks + 1};
    // Acquire pairs with the release in Free: when a part starts over, its last users are done.
    if (parts_[part].compare_exchange_weak(state, next, std::memory_order_acquire,
                                           std::memory_order_relaxed)) {
      const size_t size = end - block;
      std::memcpy(reinterpret_cast<char*>(block) - sizeof(size), &size, sizeof(size));
      return reinterpret_cast<void*>(block);
    }
  }
}

void EmergencyArena::Free(void* block) {
  std::atomic<State>& part = parts_[std::min(OffsetOf(block) / kPartBytes, kParts - 1)];
  State state = part.load(std::memory_order_relaxed);
  while (true) {
    const State next = state.blocks == 1 ? State{0, 0} : State{state.used, state.blocks - 1};
    if (part.compare_exchange_weak(state, next, std::memory_order_release,
                                   std::memory_order_relaxed)) {
      return;
    }
  }
}

size_t EmergencyArena::SizeOf(const void* block) {
  size_t size = 0;
  std::memcpy(&size, static_cast<const char*>(block) - sizeof(size), sizeof(size));
  return size;
}

}  // namespace tcmalloc
