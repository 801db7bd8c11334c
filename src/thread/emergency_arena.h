// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Memory for threads that may take no lock: those in a signal handler that interrupted the
// allocator, and those that find a fork under way.

#ifndef TCMALLOC_THREAD_EMERGENCY_ARENA_H_
#define TCMALLOC_THREAD_EMERGENCY_ARENA_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tcmalloc {

// The memory that the arena hands out first, and its records of the chunks that it maps later. It
// is separate from the arena because it is all zero and belongs into .bss. The heap is not all
// zero; inside it, this memory would take a quarter of a megabyte of the file and of resident
// memory.
struct EmergencyMemory {
  // Both halves change together: units in use from the start on, and blocks in use.
  struct State {
    uint32_t used;
    uint32_t blocks;
  };
  static constexpr size_t kMostChunks = 64;

  alignas(64) char bytes[size_t{256} << 10];
  // The start of a chunk, with the logarithm of its size in the low bits; 0 if there is none. One
  // word, so that a child of fork finds all of it or nothing.
  std::atomic<uintptr_t> chunks[kMostChunks];
  std::atomic<State> states[kMostChunks];
};

struct EmergencyStats {
  uint64_t in_use = 0;  // bytes of blocks
  uint64_t mapped = 0;  // bytes of chunks, and of blocks elsewhere
};

// Takes no lock, so it works while the same thread is anywhere in the allocator. Each part of the
// memory is filled from its start, and starts over when its last block is freed. The first part
// with room serves a request. A thread that is preempted in its handler thus delays the reuse of
// one part, not of all. If no part has room, a chunk is mapped, twice as large as the previous one;
// chunks are never unmapped. Thread safe and async-signal-safe.
class EmergencyArena {
 public:
  constexpr explicit EmergencyArena(EmergencyMemory& memory) : memory_(memory) {}

  // Returns null if no memory can be had. `alignment` is a power of two.
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
  // The last part is as large as all others together, for blocks that do not fit into those.
  static constexpr size_t kParts = 9;
  static constexpr size_t kPartBytes = kBytes / 2 / (kParts - 1);
  static constexpr int kFirstChunkLog2 = 20;
  // The units of a larger chunk could not be counted.
  static constexpr int kLargestChunkLog2 = 35;
  // The count of a part without room: more units than the largest chunk has.
  static constexpr uint32_t kFull = UINT32_MAX;
  // The pages of a free block of this size are given back, as are those of a chunk that starts over
  // after so much was taken from it.
  static constexpr size_t kLargeBytes = size_t{128} << 10;

  static size_t EndOf(size_t part) { return part < kParts - 1 ? (part + 1) * kPartBytes : kBytes; }
  uintptr_t OffsetOf(const void* address) const {
    return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(memory_.bytes);
  }
  // Returns kMostChunks if the address is in no chunk. Most programs have none.
  size_t ChunkOf(const void* address) const;
  void Count(const void* block, int64_t bytes);
  void* AllocateInChunks(size_t bytes, size_t alignment);
  bool MapChunk(size_t index, int log2);
  void FreeInChunk(void* block, size_t index);
  // Returns the state after one block was freed.
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
