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

  // Clears the range. Returns how many of its bits were set.
  size_t CountAndClear(size_t first, size_t n) {
    const size_t count = Count(first, n);
    if (count > 0) Clear(first, n);
    return count;
  }
  // Clears the range. Returns true if all of its bits were set.
  bool TestAndClear(size_t first, size_t n) {
    uint64_t missing = 0;
    ForEachWord(first, n, [&](size_t word, uint64_t mask) {
      missing |= mask & ~words_[word];
      words_[word] &= ~mask;
    });
    return missing == 0;
  }

  bool empty() const {
    for (uint64_t word : words_) {
      if (word != 0) return false;
    }
    return true;
  }

  // Returns true if a bit is set in both.
  bool HasCommon(const PageBits& other) const {
    uint64_t common = 0;
    for (size_t word = 0; word < kWords; ++word) common |= words_[word] & other.words_[word];
    return common != 0;
  }

  // Returns the number of set bits in the range.
  size_t Count(size_t first, size_t n) const {
    size_t count = 0;
    ForEachWord(first, n, [&](size_t word, uint64_t mask) {
      // Most words have no such bits, and not every processor counts bits with one instruction.
      const uint64_t bits = words_[word] & mask;
      if (bits != 0) count += static_cast<size_t>(std::popcount(bits));
    });
    return count;
  }

  // Return the first bit at or after `from` that is set (clear); kBits if there is none.
  size_t NextSet(size_t from) const { return Next(from, 0); }
  size_t NextClear(size_t from) const { return Next(from, ~uint64_t{0}); }

  PageBits operator~() const {
    PageBits result;
    for (size_t word = 0; word < kWords; ++word) result.words_[word] = ~words_[word];
    if constexpr (kBits % kWord != 0) result.words_[kWords - 1] &= ~(~uint64_t{0} << kBits % kWord);
    return result;
  }

  // Returns the bits of this set that lie `distance` before a bit of `other`, which may be this
  // set. Requires 0 < distance.
  PageBits Before(const PageBits& other, size_t distance) const {
    PageBits result;
    const size_t words = distance / kWord;
    const size_t bits = distance % kWord;
    for (size_t word = 0; word + words < kWords; ++word) {
      uint64_t moved = other.words_[word + words] >> bits;
      if (bits != 0 && word + words + 1 < kWords) {
        moved |= other.words_[word + words + 1] << (kWord - bits);
      }
      result.words_[word] = words_[word] & moved;
    }
    return result;
  }

  // Returns the bits at which n > 0 adjacent set bits begin.
  PageBits BeginningsOf(size_t n) const {
    PageBits runs = *this;
    for (size_t length = 1; length < n;) {
      const size_t more = std::min(length, n - length);
      runs = runs.Before(runs, more);
      length += more;
    }
    return runs;
  }

  struct Longest {
    size_t length = 0;
    size_t runs = 0;  // that are so long
  };
  // Returns the length of the longest run of set bits. Takes the same time for any number of runs.
  Longest LongestRun() const {
    if (empty()) return {};
    // beginnings[i] is BeginningsOf(2^i).
    PageBits beginnings[kBits == 1 ? 1 : std::bit_width(kBits)];
    size_t power = 0;
    beginnings[0] = *this;
    while (size_t{2} << power <= kBits) {
      const PageBits doubled = beginnings[power].Before(beginnings[power], size_t{1} << power);
      if (doubled.empty()) break;
      beginnings[++power] = doubled;
    }
    size_t length = size_t{1} << power;
    PageBits runs = beginnings[power];
    while (power-- > 0) {
      const PageBits longer = runs.Before(beginnings[power], length);
      if (longer.empty()) continue;
      runs = longer;
      length += size_t{1} << power;
    }
    return {length, runs.Count(0, kBits)};
  }

  // Returns one more than the last set bit before `bit`; 0 if there is none.
  size_t EndOfSetBefore(size_t bit) const {
    for (size_t word = (bit + kWord - 1) / kWord; word-- > 0;) {
      const size_t begin = word * kWord;
      const uint64_t below =
          bit - begin < kWord ? (uint64_t{1} << (bit - begin)) - 1 : ~uint64_t{0};
      const uint64_t bits = words_[word] & below;
      if (bits != 0) return begin + static_cast<size_t>(std::bit_width(bits));
    }
    return 0;
  }

  // Calls f(first, length) for every maximal run of clear bits, in order. Takes time in proportion
  // to the number of runs.
  template <typename F>
  void ForEachClearRun(F f) const {
    size_t begin = kBits;
    uint64_t before = 1;  // the last bit of the word before, as if set bits lay on both sides
    for (size_t word = 0; word < kWords; ++word) {
      const uint64_t bits = words_[word];
      for (uint64_t borders = bits ^ (bits << 1 | before); borders != 0; borders &= borders - 1) {
        const size_t bit = word * kWord + static_cast<size_t>(std::countr_zero(borders));
        if (bit >= kBits) break;
        if (begin == kBits) {
          begin = bit;
        } else {
          f(begin, bit - begin);
          begin = kBits;
        }
      }
      before = bits >> (kWord - 1);
    }
    if (begin != kBits) f(begin, kBits - begin);
  }

 private:
  static constexpr size_t kWord = 64;
  static constexpr size_t kWords = (kBits + kWord - 1) / kWord;

  // Calls f(word, mask) for each word that the range touches.
  template <typename F>
  static void ForEachWord(size_t first, size_t n, F f) {
    if (n > 0 && first % kWord + n <= kWord) {
      f(first / kWord, (~uint64_t{0} >> (kWord - n)) << (first % kWord));
      return;
    }
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
