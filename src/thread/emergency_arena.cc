// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "thread/emergency_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/attributes.h"
#include "base/bits.h"
#include "system/auxv.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

static_assert(std::atomic<uint64_t>::is_always_lock_free);

constexpr uintptr_t kLog2Mask = 63;

uintptr_t BeginOf(uintptr_t chunk) { return chunk & ~kLog2Mask; }
size_t BytesOf(uintptr_t chunk) { return size_t{1} << (chunk & kLog2Mask); }

// Gives the whole pages inside a free block back to the system.
TCMALLOC_COLD void DropPages(void* block, size_t bytes) {
  const int saved_errno = errno;
  const size_t page = KernelPageSize();
  const uintptr_t begin = AlignUp(reinterpret_cast<uintptr_t>(block), page);
  const uintptr_t end = AlignDown(reinterpret_cast<uintptr_t>(block) + bytes, page);
  if (begin < end) {
    system_calls.madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
  errno = saved_errno;
}

}  // namespace

void* EmergencyArena::Allocate(size_t bytes, size_t alignment) {
  constexpr size_t kMost = size_t{1} << kLargestChunkLog2;
  alignment = std::max(alignment, kHeaderBytes);
  if (bytes > kMost || alignment > kMost) return nullptr;
  const auto memory = reinterpret_cast<uintptr_t>(memory_.bytes);
  void* block = nullptr;
  for (size_t part = 0; part < kParts && block == nullptr; ++part) {
    block = AllocateIn(parts_[part], memory + part * kPartBytes, memory + EndOf(part), bytes,
                       alignment);
  }
  if (block == nullptr) block = AllocateInChunks(bytes, alignment);
  if (block != nullptr) Count(block, static_cast<int64_t>(SizeOf(block)));
  return block;
}

void EmergencyArena::Count(const void* block, int64_t bytes) {
  std::atomic<int64_t>& sum = OffsetOf(block) < kBytes ? static_bytes_ : chunk_bytes_;
  sum.fetch_add(bytes, std::memory_order_relaxed);
}

EmergencyStats EmergencyArena::stats() const {
  const auto in_static = static_cast<uint64_t>(static_bytes_.load(std::memory_order_relaxed));
  const auto in_chunks = static_cast<uint64_t>(chunk_bytes_.load(std::memory_order_relaxed));
  EmergencyStats stats{.in_use = in_static + in_chunks, .mapped = in_static};
  for (const std::atomic<uintptr_t>& chunk : memory_.chunks) {
    const uintptr_t word = chunk.load(std::memory_order_relaxed);
    if (word == 0) break;
    stats.mapped += BytesOf(word);
  }
  return stats;
}

void* EmergencyArena::AllocateInChunks(size_t bytes, size_t alignment) {
  const auto needed = static_cast<int>(std::bit_width(bytes + alignment + kHeaderBytes));
  int larger = kFirstChunkLog2;
  for (size_t i = 0; i < EmergencyMemory::kMostChunks; ++i) {
    // Acquire pairs with the release in MapChunk: memory at the address is mapped.
    uintptr_t chunk = memory_.chunks[i].load(std::memory_order_acquire);
    if (chunk == 0) {
      if (!MapChunk(i, std::max(larger, needed)) && !MapChunk(i, needed)) return nullptr;
      // Acquire pairs with the release in MapChunk of another thread, which was first.
      chunk = memory_.chunks[i].load(std::memory_order_acquire);
    }
    const uintptr_t begin = BeginOf(chunk);
    void* block = AllocateIn(memory_.states[i], begin, begin + BytesOf(chunk), bytes, alignment);
    if (block != nullptr) return block;
    larger = std::min(static_cast<int>(chunk & kLog2Mask) + 1, kLargestChunkLog2);
  }
  return nullptr;
}

// Returns true if there is a chunk of this index afterwards, which another thread may have mapped.
bool EmergencyArena::MapChunk(size_t index, int log2) {
  const int saved_errno = errno;
  if (log2 > kLargestChunkLog2) return false;
  const size_t bytes = size_t{1} << log2;
  void* memory = system_calls.mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  errno = saved_errno;
  if (memory == MAP_FAILED) return false;
  uintptr_t none = 0;
  const uintptr_t chunk = reinterpret_cast<uintptr_t>(memory) | static_cast<uintptr_t>(log2);
  // Release pairs with the acquire in AllocateInChunks.
  if (!memory_.chunks[index].compare_exchange_strong(none, chunk, std::memory_order_release,
                                                     std::memory_order_relaxed)) {
    system_calls.munmap(memory, bytes);
    errno = saved_errno;
  }
  return true;
}

// Each block follows a header whose last word holds its size.
void* EmergencyArena::AllocateIn(std::atomic<State>& part, uintptr_t begin, uintptr_t end,
                                 size_t bytes, size_t alignment) {
  State state = part.load(std::memory_order_relaxed);
  while (true) {
    const uintptr_t block = AlignUp(begin + size_t{state.used} * kUnit + kHeaderBytes, alignment);
    const uintptr_t next = block + AlignUp(std::max(bytes, size_t{1}), kUnit);
    if (next > end || next < block) return nullptr;
    const State taken{static_cast<uint32_t>((next - begin) / kUnit), state.blocks + 1};
    // Acquire pairs with the release in Free and FreeInChunk: when a part starts over, its last
    // users are done.
    if (part.compare_exchange_weak(state, taken, std::memory_order_acquire,
                                   std::memory_order_relaxed)) {
      const size_t size = next - block;
      std::memcpy(reinterpret_cast<char*>(block) - sizeof(size), &size, sizeof(size));
      return reinterpret_cast<void*>(block);
    }
  }
}

// Relaxed loads suffice, because the owner of a block synchronised with the thread that found its
// chunk.
size_t EmergencyArena::ChunkOf(const void* address) const {
  for (size_t i = 0; i < EmergencyMemory::kMostChunks; ++i) {
    const uintptr_t chunk = memory_.chunks[i].load(std::memory_order_relaxed);
    if (chunk == 0) break;
    if (reinterpret_cast<uintptr_t>(address) - BeginOf(chunk) < BytesOf(chunk)) return i;
  }
  return EmergencyMemory::kMostChunks;
}

void EmergencyArena::Free(void* block) {
  const uintptr_t offset = OffsetOf(block);
  Count(block, -static_cast<int64_t>(SizeOf(block)));
  if (offset >= kBytes) return FreeInChunk(block, ChunkOf(block));
  std::atomic<State>& part = parts_[std::min(offset / kPartBytes, kParts - 1)];
  State state = part.load(std::memory_order_relaxed);
  // Release pairs with the acquire in AllocateIn.
  while (!part.compare_exchange_weak(state, Less(state), std::memory_order_release,
                                     std::memory_order_relaxed)) {
  }
}

void EmergencyArena::FreeInChunk(void* block, size_t index) {
  if (SizeOf(block) >= kLargeBytes) DropPages(block, SizeOf(block));
  std::atomic<State>& chunk = memory_.states[index];
  State state = chunk.load(std::memory_order_relaxed);
  while (true) {
    const bool drops = state.blocks == 1 && size_t{state.used} * kUnit >= kLargeBytes;
    // Marks the chunk as full meanwhile, so that nobody takes from it.
    const State next = drops ? State{kFull, 1} : Less(state);
    // Release pairs with the acquire in AllocateIn, acquire pairs with the release in FreeInChunk
    // of the other blocks: their users are done when the pages go.
    if (!chunk.compare_exchange_weak(state, next, std::memory_order_acq_rel,
                                     std::memory_order_relaxed)) {
      continue;
    }
    if (!drops) return;
    const uintptr_t begin = BeginOf(memory_.chunks[index].load(std::memory_order_relaxed));
    DropPages(reinterpret_cast<void*>(begin), size_t{state.used} * kUnit);
    // Release pairs with the acquire in AllocateIn: the pages are gone when it starts over.
    return chunk.store(State{0, 0}, std::memory_order_release);
  }
}

size_t EmergencyArena::SizeOf(const void* block) {
  size_t size = 0;
  std::memcpy(&size, static_cast<const char*>(block) - sizeof(size), sizeof(size));
  return size;
}

}  // namespace tcmalloc
