// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// One bit for each page of a hugepage.

#ifndef TCMALLOC_PAGE_HEAP_HUGE_PAGE_BITS_H_
#define TCMALLOC_PAGE_HEAP_HUGE_PAGE_BITS_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "page_heap/huge/huge_page.h"

namespace tcmalloc {

// Ranges must lie inside [0, kBits). Bits past kBits in the last word stay clear.
class PageBits {
 public:
  static constexpr size_t kBits = kPagesPerHugePage.pages();

  constexpr PageBits() = default;

  bool Get(size_t bit) const { return (words_[bit / kWord] >> (bit % kWord) & 1) != 0; }

  void Set(size_t first, size_t n) {
    ForEachWord(first, n, [this](size_t word, uint64_t mask) { words_[word] |= mask; });
  }
  void Clear(size_t first, size_t n) {
    ForEachWord(first, n, [this](size_t word, uint64_t mask) { words_[word] &= ~mask; });
  }

  // How many of the range's bits are set.
  size_t Count(size_t first, size_t n) const {
    size_t count = 0;
    ForEachWord(first, n, [&](size_t word, uint64_t mask) {
      count += static_cast<size_t>(std::popcount(words_[word] & mask));
    });
    return count;
  }

  // The first bit at or after `from` that is set (clear); kBits if there is none.
  size_t NextSet(size_t from) const { return Next(from, 0); }
  size_t NextClear(size_t from) const { return Next(from, ~uint64_t{0}); }

 private:
  static constexpr size_t kWord = 64;
  static constexpr size_t kWords = (kBits + kWord - 1) / kWord;

  // Calls f(word, mask) for each word that the range touches.
  template <typename F>
  static void ForEachWord(size_t first, size_t n, F f) {
    for (const size_t end = first + n; first < end;) {
      const size_t bit = first % kWord;
      const size_t count = std::min(kWord - bit, end - first);
      f(first / kWord, (~uint64_t{0} >> (kWord - count)) << bit);
      first += count;
    }
  }

  size_t Next(size_t from, uint64_t flip) const {
    if (from >= kBits) return kBits;
    size_t word = from / kWord;
    uint64_t bits = (words_[word] ^ flip) & (~uint64_t{0} << (from % kWord));
    while (bits == 0) {
      if (++word == kWords) return kBits;
      bits = words_[word] ^ flip;
    }
    return std::min(word * kWord + static_cast<size_t>(std::countr_zero(bits)), kBits);
  }

  uint64_t words_[kWords] = {};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_HUGE_PAGE_BITS_H_
