// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Puts the free objects of a few pages into the order of their addresses.

#ifndef TCMALLOC_CACHE_PER_THREAD_REGION_SORTER_H_
#define TCMALLOC_CACHE_PER_THREAD_REGION_SORTER_H_

#include <bit>
#include <cstdint>

#include "base/attributes.h"
#include "pages/free_link.h"

namespace tcmalloc {

// The region is divided into units, no larger than an object, so that no two objects begin in the
// same one.
class RegionSorter {
 public:
  // The order of fewer objects matters less than it costs to look at each of them.
  static constexpr uint32_t kFewest = 8;
  // Of larger objects most lines of a page hold no link.
  static constexpr uint32_t kMostSizePrefetched = 256;

  // `region_bytes` is a power of two, and at most kMostUnits / 2 times `size`.
  RegionSorter(uint32_t size, uint32_t region_bytes)
      : shift_(std::countr_zero(std::bit_floor(size)) - std::countr_zero(sizeof(void*))),
        units_(region_bytes / std::bit_floor(size)) {}

  // Asks for the lines of the page of an object, in which the others lie as well.
  static void Prefetch(ObjectReference reference) {
    const uintptr_t page = reinterpret_cast<uintptr_t>(ObjectAt(reference)) & ~(kPageBytes - 1);
    for (uintptr_t line = page; line < page + kPageBytes; line += kLineBytes) {
      __builtin_prefetch(reinterpret_cast<const void*>(line), 1);
    }
  }

  // Returns false if an object begins in the same unit, as only the same one can.
  TCMALLOC_ALWAYS_INLINE bool Add(ObjectReference reference) {
    const auto unit = static_cast<uint32_t>(reference >> shift_) & (units_ - 1);
    uint64_t& word = used_[unit / kWordBits];
    const uint64_t bit = uint64_t{1} << (unit % kWordBits);
    if (TCMALLOC_UNLIKELY((word & bit) != 0)) return false;
    word |= bit;
    references_[unit] = reference;
    return true;
  }

  // Links the objects in ascending order.
  Chain Link(const LinkCodec& by) const {
    const LinkCodec codec = by;
    Chain chain{codec.end, 0};
    for (uint32_t word = kMostUnits / kWordBits; word-- > 0;) {
      for (uint64_t bits = used_[word]; bits != 0;) {
        const auto highest = static_cast<uint32_t>(std::bit_width(bits)) - 1;
        bits ^= uint64_t{1} << highest;
        codec.Prepend(ObjectAt(references_[word * kWordBits + highest]), &chain);
      }
    }
    return chain;
  }

 private:
  static constexpr uint32_t kMostUnits = 256;
  static constexpr uint32_t kWordBits = 64;
  static constexpr uintptr_t kPageBytes = 4096;
  static constexpr uintptr_t kLineBytes = 64;

  const int shift_;  // from a reference to the number of its unit
  const uint32_t units_;
  uint64_t used_[kMostUnits / kWordBits] = {};
  ObjectReference references_[kMostUnits];  // of the used units
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_THREAD_REGION_SORTER_H_
