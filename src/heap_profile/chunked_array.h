// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// An array that grows without a lock and never moves.

#ifndef TCMALLOC_HEAP_PROFILE_CHUNKED_ARRAY_H_
#define TCMALLOC_HEAP_PROFILE_CHUNKED_ARRAY_H_

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/attributes.h"
#include "system/auxv.h"
#include "system/own_memory.h"
#include "system/transparent_hugepages.h"

namespace tcmalloc {

// Says where the first chunk of a ChunkedArray is.
enum class FirstChunk : uint8_t {
  kMapped,  // mapped, as the others
  kInside,  // inside the array, so that small arrays of one owner share pages
};

// Chunk i holds kFirst << i elements, beginning with index kFirst * (2^i - 1). Each chunk is mapped
// when it is first needed, or taken from a SmallChunks, but for a first one that lies inside.
// Elements begin as zero bytes, which must be a valid T. Thread safe; async-signal-safe.
template <typename T, uint32_t kFirst, FirstChunk kFirstChunk = FirstChunk::kMapped>
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

  // Maps the chunk of `index`, and counts the elements up to there as used. Returns false if no
  // memory can be had.
  [[nodiscard]] bool Ensure(uint32_t index) {
    if (Find(index) == nullptr && !Map(ChunkOf(index))) return false;
    if (!IsInside(index) && index >= counted_.load(std::memory_order_relaxed)) CountTo(index);
    return true;
  }
  // Works as Ensure, but takes a chunk of less than a page from `small`. Not at the same time for
  // the same chunk.
  template <typename Small>
    requires(kFirstChunk == FirstChunk::kMapped)
  [[nodiscard]] bool EnsureFrom(Small& small, uint32_t index) {
    const int chunk = ChunkOf(index);
    const size_t bytes = size_t{SizeOf(chunk)} * sizeof(T);
    if (bytes >= Small::kPageBytes) return Ensure(index);
    if (Find(index) != nullptr) return true;
    void* memory = small.Take(bytes);
    // Release pairs with the acquire in Find, as in Map.
    chunks_[chunk].store(static_cast<T*>(memory), std::memory_order_release);
    return memory != nullptr;
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

  // Returns the bytes of address space of all chunks that this array has mapped.
  size_t mapped_bytes() const { return mapped_bytes_.load(std::memory_order_relaxed); }

 private:
  // Elements of several words begin wherever they would in a mapped chunk.
  struct alignas(uint64_t) Inside {
    T elements[kFirst] = {};
  };
  struct Nothing {};

  // Returns true if the element is a part of the array itself.
  static bool IsInside(uint32_t index) {
    return kFirstChunk == FirstChunk::kInside && index < kFirst;
  }

  // Chunks are counted in so many steps, but in no less than pages.
  static constexpr uint32_t kSteps = 16;

  // Has no hugepages where one is more than a step.
  static Hugepages HugepagesFor(size_t bytes) {
    return bytes / kSteps < kHugePageSize ? Hugepages::kNone : Hugepages::kAsElsewhere;
  }

  // Counts the elements of the chunk of `index`, up to the end of the step that has it. Elements
  // are used in their order, but for those of threads that meet at the end of a chunk, and of these
  // a step is left out at most.
  TCMALLOC_NOINLINE void CountTo(uint32_t index) {
    const int chunk = ChunkOf(index);
    const uint32_t first = FirstIn(chunk);
    const auto in_page = static_cast<uint32_t>(std::max<size_t>(KernelPageSize() / sizeof(T), 1));
    const uint32_t step = std::max(SizeOf(chunk) / kSteps, in_page);
    const uint32_t steps = (index - first) / step + 1;
    const auto end =
        static_cast<uint32_t>(first + std::min<uint64_t>(uint64_t{steps} * step, SizeOf(chunk)));
    uint32_t counted = counted_.load(std::memory_order_relaxed);
    while (counted < end) {
      if (!counted_.compare_exchange_weak(counted, end, std::memory_order_relaxed)) continue;
      return own_bytes.Add(size_t{end - std::max(counted, first)} * sizeof(T));
    }
  }

  bool Map(int chunk) {
    if constexpr (kFirstChunk == FirstChunk::kInside) {
      if (chunk == 0) {
        // Release pairs with the acquire in Find, and publishes nothing but zeros. All threads
        // store the same.
        chunks_[0].store(inside_.elements, std::memory_order_release);
        return true;
      }
    }
    const size_t bytes = size_t{SizeOf(chunk)} * sizeof(T);
    void* memory = MapSparse(bytes, HugepagesFor(bytes));
    if (memory == nullptr) return false;
    T* expected = nullptr;
    // Release pairs with the acquire in Find, and publishes nothing but zeros.
    if (chunks_[chunk].compare_exchange_strong(expected, static_cast<T*>(memory),
                                               std::memory_order_release,
                                               std::memory_order_acquire)) {
      mapped_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    } else {
      UnmapSparse(memory, bytes);
    }
    return true;
  }

  std::atomic<T*> chunks_[kChunks] = {};
  std::atomic<size_t> mapped_bytes_{0};
  std::atomic<uint32_t> counted_{0};  // the elements before are counted as used
  [[no_unique_address]] std::conditional_t<kFirstChunk == FirstChunk::kInside, Inside, Nothing>
      inside_;
};

// Memory for chunks that are smaller than a page, next to each other, for owners of many arrays of
// which most stay small. None is given back. Thread safe; async-signal-safe. constinit, all zero.
class SmallChunks {
 public:
  static constexpr size_t kPageBytes = 4096;

  constexpr SmallChunks() = default;
  SmallChunks(const SmallChunks&) = delete;
  SmallChunks& operator=(const SmallChunks&) = delete;

  // Returns zero bytes on cache lines of their own, or null if no memory can be had. Requires
  // `bytes` to be less than a page.
  void* Take(size_t bytes) {
    const auto wanted = static_cast<uint32_t>((bytes + sizeof(Line) - 1) / sizeof(Line));
    uint32_t used = used_.load(std::memory_order_relaxed);
    uint32_t first = 0;
    do {
      const int last_chunk = lines_.ChunkOf(used + wanted - 1);
      // The rest of a mapping is not used where it is too little.
      first = std::max(used, lines_.FirstIn(last_chunk));
      if (!lines_.Ensure(first + wanted - 1)) return nullptr;
    } while (!used_.compare_exchange_weak(used, first + wanted, std::memory_order_relaxed));
    return &lines_[first];
  }

  size_t mapped_bytes() const { return lines_.mapped_bytes(); }

 private:
  struct alignas(64) Line {
    char bytes[64];
  };
  static constexpr uint32_t kFirstLines = 1024;

  ChunkedArray<Line, kFirstLines> lines_;
  std::atomic<uint32_t> used_{0};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_CHUNKED_ARRAY_H_
