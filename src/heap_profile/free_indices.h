// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A stack of free indices.

#ifndef TCMALLOC_HEAP_PROFILE_FREE_INDICES_H_
#define TCMALLOC_HEAP_PROFILE_FREE_INDICES_H_

#include <atomic>
#include <cstdint>

namespace tcmalloc {

// Links indices of elements through a word of each element, which `word(index)` returns as a
// std::atomic<uint32_t>&. Index 0 ends the list. The elements stay mapped for ever, so that a
// thread may read the link of one that another thread has just taken; the tag beside the head then
// makes its exchange fail. Thread safe, without a lock; async-signal-safe.
class FreeIndices {
 public:
  constexpr FreeIndices() = default;

  template <typename Word>
  void Push(uint32_t index, Word word) {
    uint64_t head = head_.load(std::memory_order_relaxed);
    do {
      word(index).store(static_cast<uint32_t>(head), std::memory_order_relaxed);
      // Release pairs with the acquire in Pop.
    } while (!head_.compare_exchange_weak(head, Next(head, index), std::memory_order_release,
                                          std::memory_order_relaxed));
  }

  // Returns 0 if there is none.
  template <typename Word>
  uint32_t Pop(Word word) {
    // Acquire pairs with the release in Push and publishes the link.
    uint64_t head = head_.load(std::memory_order_acquire);
    while (static_cast<uint32_t>(head) != 0) {
      const auto index = static_cast<uint32_t>(head);
      const uint32_t next = word(index).load(std::memory_order_relaxed);
      // Acquire pairs with the release in Push, as above.
      if (head_.compare_exchange_weak(head, Next(head, next), std::memory_order_acquire,
                                      std::memory_order_acquire)) {
        return index;
      }
    }
    return 0;
  }

 private:
  // Returns the head that names `index`, with another tag than `head`.
  static uint64_t Next(uint64_t head, uint32_t index) { return ((head >> 32) + 1) << 32 | index; }

  std::atomic<uint64_t> head_{0};  // a tag and, in the low half, an index
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_FREE_INDICES_H_
