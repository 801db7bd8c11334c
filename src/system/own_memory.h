// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Memory that the library maps for its own records, beside the arena of the heap.

#ifndef TCMALLOC_SYSTEM_OWN_MEMORY_H_
#define TCMALLOC_SYSTEM_OWN_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tcmalloc {

// The bytes of such memory that may be resident, which statistics count among the records: all of
// what is used as a whole, and of what is sparse as much as its owner has said that it uses. Thread
// safe, without a lock; async-signal-safe. constinit.
class OwnBytes {
 public:
  constexpr OwnBytes() = default;
  OwnBytes(const OwnBytes&) = delete;
  OwnBytes& operator=(const OwnBytes&) = delete;

  void Add(size_t bytes) { bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  void Remove(size_t bytes) { bytes_.fetch_sub(bytes, std::memory_order_relaxed); }
  size_t get() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  std::atomic<size_t> bytes_{0};
};

extern constinit OwnBytes own_bytes;

// Says if the kernel may back memory by hugepages, each of which is resident as a whole.
enum class Hugepages : uint8_t { kNone, kAsElsewhere };

// Map zeroed memory that is used as a whole, and unmap it; it counts as pages of the kernel. The
// first returns null if there is none. Keep errno. Async-signal-safe.
void* MapZeroed(size_t bytes);
void UnmapZeroed(void* memory, size_t bytes);

// Do the same with memory that is sparse: its owner adds to own_bytes what it uses, and removes
// that again.
void* MapSparse(size_t bytes, Hugepages hugepages = Hugepages::kNone);
void UnmapSparse(void* memory, size_t bytes);

namespace own_memory_internal {

inline constexpr size_t kBits = 64;  // of a word

// Works as UsedPages::Use, on a bit for each page.
size_t Use(std::atomic<uint64_t>* words, size_t begin, size_t end);

}  // namespace own_memory_internal

// The pages that were used of sparse memory of up to kMostBytes. Thread safe, without a lock;
// async-signal-safe. All zero at first.
template <size_t kMostBytes>
class UsedPages {
 public:
  constexpr UsedPages() = default;
  UsedPages(const UsedPages&) = delete;
  UsedPages& operator=(const UsedPages&) = delete;

  // Returns the bytes of the pages that [begin, end), in bytes from the start, uses first.
  size_t Use(size_t begin, size_t end) { return own_memory_internal::Use(words_, begin, end); }
  // Forgets all.
  void Clear() {
    for (std::atomic<uint64_t>& word : words_) word.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr size_t kLeastPage = 4096;
  static constexpr size_t kWordBytes = kLeastPage * own_memory_internal::kBits;

  std::atomic<uint64_t> words_[(kMostBytes + kWordBytes - 1) / kWordBytes] = {};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_OWN_MEMORY_H_
