// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Free objects of one size class, sorted by the pages in which they lie.

#ifndef TCMALLOC_CACHE_PER_THREAD_PAGE_BINS_H_
#define TCMALLOC_CACHE_PER_THREAD_PAGE_BINS_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "pages/free_link.h"
#include "transfer/chain_arrays.h"

namespace tcmalloc {

// The memory is divided into regions: a page of the kernel each, or as much as a few objects where
// these are large. A bin has a chain of the free objects of one region, and is that of each region
// with the same number modulo kBins: the first one has it until somebody takes the chain. Objects
// that a program frees at random thus come back region by region, in ascending order, though in any
// order inside of each. docs/decisions/0136-bins-for-pages.md.
class PageBins {
 public:
  static constexpr uint32_t kBins = 2048;

  static constexpr uint32_t RegionBytes(uint32_t size) {
    const uint32_t least = std::max(kPageBytes, std::bit_ceil(kFewObjects * size));
    return std::min(least, std::bit_floor(kMostObjects * size));
  }
  // Returns the number of objects that a chain may have.
  static constexpr uint32_t MostInRegion(uint32_t size) {
    return (RegionBytes(size) + size - 1) / size;
  }

  // Returns bins for objects of `size` bytes. Null if no memory can be had.
  TCMALLOC_COLD static PageBins* New(uint32_t size, ChainArrays& arrays);
  // Takes back bins, which are empty.
  TCMALLOC_COLD static void Delete(PageBins* bins, ChainArrays& arrays);

  uint32_t region_bytes() const { return uint32_t{sizeof(void*)} << shift_; }
  // Returns the number of objects.
  uint32_t objects() const { return objects_; }

  // Takes the objects of a chain, up to its end. Calls checked_next(object), which returns the next
  // one's reference, for an object whose address has one of the `misplaced` bits or that does not
  // link to one in the address window. Returns those whose bins are of other regions, or have as
  // many as there can only be where objects were freed twice.
  template <typename CheckedNext>
  TCMALLOC_ALWAYS_INLINE Chain Put(Chain chain, const LinkCodec& by, uintptr_t misplaced,
                                   CheckedNext checked_next) {
    const LinkCodec codec = by;
    const int shift = shift_;
    ObjectReference* const heads = heads_;
    Chain strays{codec.end, 0};
    uint32_t seen = 0;
    for (ObjectReference reference = chain.head; reference != codec.end; ++seen) {
      void* object = ObjectAt(reference);
      ObjectReference next = codec.Next(object);
      const bool is_misplaced = (reinterpret_cast<uintptr_t>(object) & misplaced) != 0;
      if (TCMALLOC_UNLIKELY(is_misplaced || !codec.InWindow(next))) next = checked_next(object);
      const auto bin = static_cast<uint32_t>((reference >> shift) % kBins);
      ObjectReference head = heads[bin];
      const bool is_other = (head ^ reference) >> shift != 0;
      if (TCMALLOC_UNLIKELY(is_other || counts_[bin] == UINT8_MAX)) {
        if (head != kNone) {
          codec.Prepend(object, &strays);
          reference = next;
          continue;
        }
        SetUsed(bin);
        head = codec.end;
      }
      codec.Link(object, head);
      heads[bin] = reference;
      ++counts_[bin];
      reference = next;
    }
    objects_ += seen - strays.count;
    return strays;
  }

  // Takes the chain of the next region; an empty one if there is none.
  Chain Take();

  // Returns the chain of the bin that would have `object`.
  Chain ChainOf(const void* object) const {
    return At(static_cast<uint32_t>((ReferenceTo(object) >> shift_) % kBins));
  }
  // Calls f(chain) for each bin that has objects.
  template <typename F>
  void ForEach(F f) const {
    for (uint32_t bin = 0; bin < kBins; ++bin) {
      if (counts_[bin] > 0) f(At(bin));
    }
  }

 private:
  static constexpr uint32_t kPageBytes = 4096;
  static constexpr uint32_t kFewObjects = 16;
  static constexpr uint32_t kMostObjects = 128;
  static constexpr int kHeadsLog2 = std::countr_zero(kBins);
  static constexpr int kSelfLog2 = 9;
  static constexpr uint32_t kWordBits = 64;
  static constexpr ObjectReference kNone = 0;  // no valid reference, and in no region of one

  // `heads` has a slot for each bin.
  PageBins(uint32_t size, void* heads);

  Chain At(uint32_t bin) const { return {heads_[bin], counts_[bin]}; }
  void SetUsed(uint32_t bin) { used_[bin / kWordBits] |= uint64_t{1} << (bin % kWordBits); }
  uint32_t NextUsed() const;

  ObjectReference* const heads_;  // kNone of an empty bin
  const int shift_;               // from a reference to the number of its region
  uint32_t objects_ = 0;
  uint32_t next_ = 0;                      // the bin behind the one that was taken last
  uint64_t used_[kBins / kWordBits] = {};  // bit b: bin b has objects
  uint8_t counts_[kBins] = {};             // of objects in each bin
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_THREAD_PAGE_BINS_H_
