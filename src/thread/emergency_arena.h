// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Memory for whoever may take no lock: a signal handler that interrupts the allocator, and threads
// that find a fork under way.

#ifndef TCMALLOC_THREAD_EMERGENCY_ARENA_H_
#define TCMALLOC_THREAD_EMERGENCY_ARENA_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tcmalloc {

// Memory that the arena hands out first, and its notes of what it maps later. Apart from it, since
// it is all zero and belongs into .bss: as a part of the heap, which is not, it would be a quarter
// of a megabyte in the file and in resident memory.
struct EmergencyMemory {
  // Both halves change together: units in use from the start on, and blocks in use.
  struct State {
    uint32_t used;
    uint32_t blocks;
  };
  static constexpr size_t kMostChunks = 64;

  alignas(64) char bytes[size_t{256} << 10];
  // The start of a chunk, and in the low bits the logarithm of its size; 0: none. One word, so that
  // a child of fork finds all of it or nothing.
  std::atomic<uintptr_t> chunks[kMostChunks];
  std::atomic<State> states[kMostChunks];
};

struct EmergencyStats {
  uint64_t in_use = 0;  // bytes of blocks
  uint64_t mapped = 0;  // bytes of chunks, and of blocks elsewhere
};

// Takes no lock, so that it works while the same thread is anywhere in the allocator. Each part of
// the memory is filled from its start on, and starts over when its last block is freed; the first
// part serves in which there is room. So a thread that is preempted in its handler holds up one
// part, not all. Where no part has room, a chunk is mapped, each twice as large as the one before;
// chunks stay. Thread safe and async-signal-safe.
class EmergencyArena {
 public:
  constexpr explicit EmergencyArena(EmergencyMemory& memory) : memory_(memory) {}

  // Null if no memory can be had. `alignment` is a power of two.
  void* Allocate(size_t bytes, size_t alignment);
  void Free(void* block);

  bool Owns(const void* address) const {
    return OffsetOf(address) < kBytes || ChunkOf(address) < EmergencyMemory::kMostChunks;
  }
  // Requires Owns(block).
  static size_t SizeOf(const void* block);
  EmergencyStats stats() const;

 private:
  using State = EmergencyMemory::State;

  static constexpr size_t kBytes = sizeof(EmergencyMemory::bytes);
  static constexpr size_t kHeaderBytes = 16;
  static constexpr size_t kUnit = kHeaderBytes;
  // The last part is as large as all others together, for what does not fit into those.
  static constexpr size_t kParts = 9;
  static constexpr size_t kPartBytes = kBytes / 2 / (kParts - 1);
  static constexpr int kFirstChunkLog2 = 20;
  // Units of a larger one could not be counted.
  static constexpr int kLargestChunkLog2 = 35;
  // Of a part without room: more units than the largest chunk has.
  static constexpr uint32_t kFull = UINT32_MAX;
  // The pages of a free block so large are given back, and those of a chunk that starts over after
  // so much.
  static constexpr size_t kLargeBytes = size_t{128} << 10;

  static size_t EndOf(size_t part) { return part < kParts - 1 ? (part + 1) * kPartBytes : kBytes; }
  uintptr_t OffsetOf(const void* address) const {
    return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(memory_.bytes);
  }
  // kMostChunks if it is in none. Most programs have none.
  size_t ChunkOf(const void* address) const;
  void Count(const void* block, int64_t bytes);
  void* AllocateInChunks(size_t bytes, size_t alignment);
  bool MapChunk(size_t index, int log2);
  void FreeInChunk(void* block, size_t index);
  // After one block less was freed.
  static State Less(State state) {
    return state.blocks == 1 ? State{0, 0} : State{state.used, state.blocks - 1};
  }
  static void* AllocateIn(std::atomic<State>& state, uintptr_t begin, uintptr_t end, size_t bytes,
                          size_t alignment);

  std::atomic<State> parts_[kParts] = {};
  std::atomic<int64_t> static_bytes_{0};  // of blocks in the parts
  std::atomic<int64_t> chunk_bytes_{0};   // of blocks in chunks
  EmergencyMemory& memory_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_THREAD_EMERGENCY_ARENA_H_
