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

// A bump allocator that takes no lock, so that it works while the same thread is anywhere in the
// allocator. It starts over when its last block is freed. Thread safe and async-signal-safe.
class EmergencyArena {
 public:
  constexpr explicit EmergencyArena(EmergencyMemory& memory) : memory_(memory.bytes) {}

  // Null if it does not fit. `alignment` is a power of two.
  void* Allocate(size_t bytes, size_t alignment);
  void Free(void* block);

  bool Owns(const void* address) const {
    return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(memory_) < kBytes;
  }
  // Requires Owns(block).
  static size_t SizeOf(const void* block);

 private:
  static constexpr size_t kBytes = sizeof(EmergencyMemory);
  static constexpr size_t kHeaderBytes = 16;

  // Both halves change together: bytes used, and blocks in use.
  struct State {
    uint32_t used;
    uint32_t blocks;
  };

  std::atomic<State> state_{State{0, 0}};
  char* const memory_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_EMERGENCY_ARENA_H_
