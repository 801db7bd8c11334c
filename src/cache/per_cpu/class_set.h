// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A set of size classes.

#ifndef TCMALLOC_CACHE_PER_CPU_CLASS_SET_H_
#define TCMALLOC_CACHE_PER_CPU_CLASS_SET_H_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "size_class/size_classes.h"

namespace tcmalloc {

// Not thread safe.
class ClassSet {
 public:
  constexpr ClassSet() = default;

  void Add(uint8_t c) {
    count_ += Has(c) ? 0 : 1;
    words_[c / kWordBits] |= BitOf(c);
  }
  void Remove(uint8_t c) {
    count_ -= Has(c) ? 1 : 0;
    words_[c / kWordBits] &= ~BitOf(c);
  }

  bool Has(uint8_t c) const { return (words_[c / kWordBits] & BitOf(c)) != 0; }
  uint32_t count() const { return count_; }
  bool empty() const { return count_ == 0; }

  // Returns the class after `c`, the first one after the last; `c` itself if there is no other.
  // Requires a set that is not empty.
  uint8_t After(uint8_t c) const {
    size_t word = c / kWordBits;
    uint64_t bits = words_[word] & ~(BitOf(c) | (BitOf(c) - 1));
    while (bits == 0) {
      word = (word + 1) % kWords;
      bits = words_[word];
    }
    return ClassAt(word, bits);
  }

  // Calls f(c) for each class.
  template <typename F>
  void ForEach(F f) const {
    for (size_t word = 0; word < kWords; ++word) {
      for (uint64_t bits = words_[word]; bits != 0; bits &= bits - 1) f(ClassAt(word, bits));
    }
  }

 private:
  static constexpr size_t kWordBits = 64;
  static constexpr size_t kWords = (kSizeClassCount + kWordBits - 1) / kWordBits;

  static uint64_t BitOf(uint8_t c) { return uint64_t{1} << (c % kWordBits); }
  static uint8_t ClassAt(size_t word, uint64_t bits) {
    return static_cast<uint8_t>(word * kWordBits + static_cast<size_t>(std::countr_zero(bits)));
  }

  uint64_t words_[kWords] = {};
  uint32_t count_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_CPU_CLASS_SET_H_
