// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Addresses that the program says lead to blocks.

#ifndef TCMALLOC_LEAK_CHECK_LIVE_WORDS_H_
#define TCMALLOC_LEAK_CHECK_LIVE_WORDS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tcmalloc {

// A set of words, in which each may be several times. Thread safe, without a lock;
// async-signal-safe. constinit, all zero.
template <size_t kCapacity>
class LiveWords {
 public:
  constexpr LiveWords() = default;
  LiveWords(const LiveWords&) = delete;
  LiveWords& operator=(const LiveWords&) = delete;

  // Requires `word` not to be 0. Returns false if there is no room.
  bool Add(uintptr_t word) {
    for (size_t i = 0; i < kCapacity; ++i) {
      uintptr_t expected = 0;
      if (!words_[i].compare_exchange_strong(expected, word, std::memory_order_relaxed)) continue;
      size_t used = used_.load(std::memory_order_relaxed);
      while (used < i + 1 && !used_.compare_exchange_weak(used, i + 1, std::memory_order_relaxed)) {
      }
      return true;
    }
    return false;
  }
  // Returns false if it was not there.
  bool Remove(uintptr_t word) {
    const size_t used = used_.load(std::memory_order_relaxed);
    for (size_t i = 0; i < used; ++i) {
      uintptr_t expected = word;
      if (words_[i].compare_exchange_strong(expected, 0, std::memory_order_relaxed)) return true;
    }
    return false;
  }
  // Returns the words that ever were there, and zeros. Whoever reads them is in another process, or
  // does not mind changes.
  std::span<const uintptr_t> words() const {
    return {reinterpret_cast<const uintptr_t*>(words_), used_.load(std::memory_order_relaxed)};
  }

 private:
  static_assert(sizeof(std::atomic<uintptr_t>) == sizeof(uintptr_t));

  std::atomic<uintptr_t> words_[kCapacity] = {};
  std::atomic<size_t> used_{0};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_LEAK_CHECK_LIVE_WORDS_H_
