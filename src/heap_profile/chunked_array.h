// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// An array that grows without a lock and never moves.

#ifndef TCMALLOC_HEAP_PROFILE_CHUNKED_ARRAY_H_
#define TCMALLOC_HEAP_PROFILE_CHUNKED_ARRAY_H_

#include <sys/mman.h>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "system/system_calls.h"

namespace tcmalloc {

// Chunk i holds kFirst << i elements, beginning with index kFirst * (2^i - 1). Each chunk is mapped
// when it is first needed. Elements begin as zero bytes, which must be a valid T. Thread safe;
// async-signal-safe.
template <typename T, uint32_t kFirst>
class ChunkedArray {
 public:
  static_assert(std::has_single_bit(kFirst));
  static constexpr int kChunks = 32 - std::countr_zero(kFirst);

  constexpr ChunkedArray() = default;
  ChunkedArray(const ChunkedArray&) = delete;
  ChunkedArray& operator=(const ChunkedArray&) = delete;

  static constexpr int ChunkOf(uint32_t index) {
    return static_cast<int>(std::bit_width(index / kFirst + 1)) - 1;
  }
  static constexpr uint32_t FirstIn(int chunk) { return ((uint32_t{1} << chunk) - 1) * kFirst; }
  static constexpr uint32_t SizeOf(int chunk) { return kFirst << chunk; }

  // Maps the chunk of `index`. Returns false if no memory can be had.
  [[nodiscard]] bool Ensure(uint32_t index) {
    const int chunk = ChunkOf(index);
    return Find(index) != nullptr || Map(chunks_[chunk], SizeOf(chunk));
  }

  // Requires that Ensure succeeded for `index`.
  T& operator[](uint32_t index) const { return *Find(index); }

  // Returns the element of `index`, or null if its chunk is not mapped.
  T* Find(uint32_t index) const {
    const int chunk = ChunkOf(index);
    // Acquire pairs with the release in Map.
    T* elements = chunks_[chunk].load(std::memory_order_acquire);
    return elements != nullptr ? elements + (index - FirstIn(chunk)) : nullptr;
  }

  // Returns the bytes of address space of all chunks.
  size_t mapped_bytes() const { return mapped_bytes_.load(std::memory_order_relaxed); }

 private:
  bool Map(std::atomic<T*>& slot, uint32_t count) {
    const size_t bytes = size_t{count} * sizeof(T);
    void* memory = system_calls.mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    T* expected = nullptr;
    // Release pairs with the acquire in Find, and publishes nothing but zeros.
    if (slot.compare_exchange_strong(expected, static_cast<T*>(memory), std::memory_order_release,
                                     std::memory_order_acquire)) {
      mapped_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    } else {
      system_calls.munmap(memory, bytes);
    }
    return true;
  }

  std::atomic<T*> chunks_[kChunks] = {};
  std::atomic<size_t> mapped_bytes_{0};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_CHUNKED_ARRAY_H_
