// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Memory for a signal handler that interrupts the allocator.

#ifndef TCMALLOC_HEAP_EMERGENCY_ARENA_H_
#define TCMALLOC_HEAP_EMERGENCY_ARENA_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tcmalloc {

// What the arena hands out. Apart from it, since it is all zero and belongs into .bss: as a part of
// the heap, which is not, it would be a quarter of a megabyte in the file and in resident memory.
struct EmergencyMemory {
  alignas(64) char bytes[size_t{256} << 10];
};

// Takes no lock, so that it works while the same thread is anywhere in the allocator. Each part of
// the memory is filled from its start on, and starts over when its last block is freed; the first
// part serves in which there is room. So a thread that is preempted in its handler holds up one
// part, not all. Thread safe and async-signal-safe.
class EmergencyArena {
 public:
  constexpr explicit EmergencyArena(EmergencyMemory& memory) : memory_(memory.bytes) {}

  // Null if it does not fit. `alignment` is a power of two.
  void* Allocate(size_t bytes, size_t alignment);
  void Free(void* block);

  bool Owns(const void* address) const { return OffsetOf(address) < kBytes; }
  // Requires Owns(block).
  static size_t SizeOf(const void* block);

 private:
  static constexpr size_t kBytes = sizeof(EmergencyMemory);
  static constexpr size_t kHeaderBytes = 16;
  // The last part is as large as all others together, for what does not fit into those.
  static constexpr size_t kParts = 9;
  static constexpr size_t kPartBytes = kBytes / 2 / (kParts - 1);

  // Both halves change together: bytes used, and blocks in use.
  struct State {
    uint32_t used;
    uint32_t blocks;
  };

  static size_t EndOf(size_t part) { return part < kParts - 1 ? (part + 1) * kPartBytes : kBytes; }
  uintptr_t OffsetOf(const void* address) const {
    return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(memory_);
  }
  void* AllocateIn(size_t part, size_t bytes, size_t alignment);

  std::atomic<State> parts_[kParts] = {};
  char* const memory_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_EMERGENCY_ARENA_H_
