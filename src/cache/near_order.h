// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Puts free objects that lie near each other in address order.

#ifndef TCMALLOC_CACHE_NEAR_ORDER_H_
#define TCMALLOC_CACHE_NEAR_ORDER_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"

namespace tcmalloc {

// The objects of one size class inside a window of memory: a bit for each place at which one can
// begin. Sorting takes a few instructions per object this way. Not thread safe.
class NearOrder {
 public:
  static constexpr size_t kPlaces = 4096;

  enum class Added { kYes, kOutside, kTwice };

  // Objects of a class begin at multiples of the largest power of two that divides their size,
  // because spans begin with a page.
  explicit NearOrder(uint32_t size) : shift_(std::countr_zero(size)) {}

  // Moves the window, which has to be empty, so that `object` is in the middle.
  void MoveTo(const void* object) {
    start_ = PlaceOf(object) - kPlaces / 2;
    first_word_ = kWords;
    last_word_ = 0;
  }

  // Adds an object unless it lies outside the window or was added before. An object that does not
  // begin at one of the places lies outside.
  TCMALLOC_ALWAYS_INLINE Added Add(const void* object) {
    const size_t place = PlaceOf(object) - start_;
    if (place >= kPlaces) return Added::kOutside;
    const size_t word = place / kBits;
    const uint64_t bit = uint64_t{1} << place % kBits;
    if ((bits_[word] & bit) != 0) return Added::kTwice;
    bits_[word] |= bit;
    first_word_ = std::min(first_word_, word);
    last_word_ = std::max(last_word_, word);
    return Added::kYes;
  }

  // Calls f(object) for each object, the one with the highest address first, and empties the
  // window.
  template <typename F>
  TCMALLOC_ALWAYS_INLINE void TakeDownwards(F f) {
    for (size_t word = last_word_ + 1; word-- > first_word_;) {
      for (uint64_t bits = bits_[word]; bits != 0;) {
        const auto bit = static_cast<size_t>(std::bit_width(bits)) - 1;
        bits ^= uint64_t{1} << bit;
        f(ObjectAt(start_ + word * kBits + bit));
      }
      bits_[word] = 0;
    }
  }

 private:
  static constexpr size_t kBits = 64;
  static constexpr size_t kWords = kPlaces / kBits;

  // Bits of the address below the places become the highest ones.
  uintptr_t PlaceOf(const void* object) const {
    return std::rotr(reinterpret_cast<uintptr_t>(object), shift_);
  }
  void* ObjectAt(uintptr_t place) const {
    return reinterpret_cast<void*>(std::rotl(place, shift_));
  }

  int shift_;
  uintptr_t start_ = 0;
  size_t first_word_ = kWords;  // of those with objects
  size_t last_word_ = 0;
  uint64_t bits_[kWords] = {};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_NEAR_ORDER_H_
