// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Puts free objects that lie near each other in address order.

#ifndef TCMALLOC_CACHE_NEAR_ORDER_H_
#define TCMALLOC_CACHE_NEAR_ORDER_H_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/bits.h"

namespace tcmalloc {

// The objects of one size class inside a window of memory: a bit for each place at which one can
// begin. Sorting takes a few instructions per object this way. Not thread safe.
class NearOrder {
 public:
  static constexpr size_t kPlaces = 4096;

  enum class Added { kYes, kOutside, kTwice };

  // Objects of a class begin at multiples of the largest power of two that divides their size,
  // because spans begin with a page.
  explicit NearOrder(uint32_t size) : shift_(static_cast<unsigned>(std::countr_zero(size))) {}

  // Moves the window, which has to be empty, so that `object` is in the middle.
  void MoveTo(const void* object) { start_ = PlaceOf(object) - kPlaces / 2; }

  // Adds an object unless it lies outside the window or was added before. An object that does not
  // begin at one of the places lies outside.
  TCMALLOC_ALWAYS_INLINE Added Add(const void* object) {
    const size_t place = PlaceOf(object) - start_;
    if (place >= kPlaces) return Added::kOutside;
    const size_t word = place / kBits;
    const uint64_t bit = uint64_t{1} << place % kBits;
    if ((bits_[word] & bit) != 0) return Added::kTwice;
    bits_[word] |= bit;
    used_words_ |= uint64_t{1} << word;
    return Added::kYes;
  }

  // Calls f(object) for each object, the one with the highest address first, and empties the
  // window.
  template <typename F>
  TCMALLOC_ALWAYS_INLINE void TakeDownwards(F f) {
    while (used_words_ != 0) {
      const size_t word = TakeHighest(&used_words_);
      const uintptr_t first = start_ + word * kBits;
      for (uint64_t bits = bits_[word]; bits != 0;) f(ObjectAt(first + TakeHighest(&bits)));
      bits_[word] = 0;
    }
  }

 private:
  static constexpr size_t kBits = 64;
  static constexpr size_t kWords = kPlaces / kBits;
  static_assert(kWords <= kBits);

  // Clears the highest bit of *word, which has one, and returns its number.
  static size_t TakeHighest(uint64_t* word) {
    const int bit = Log2Floor(*word);
    *word ^= uint64_t{1} << bit;
    return static_cast<size_t>(bit);
  }
  // Bits of the address below the places become the highest ones.
  uintptr_t PlaceOf(const void* object) const {
    const auto address = reinterpret_cast<uintptr_t>(object);
    return address >> shift_ | address << (kBits - shift_);
  }
  void* ObjectAt(uintptr_t place) const {
    return reinterpret_cast<void*>(place << shift_ | place >> (kBits - shift_));
  }

  unsigned shift_;  // less than the bits of an address, and not 0
  uintptr_t start_ = 0;
  uint64_t used_words_ = 0;  // a bit for each of the words that has objects
  uint64_t bits_[kWords] = {};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_NEAR_ORDER_H_
