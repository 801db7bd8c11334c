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
#include "pages/page_types.h"
#include "size_class/size_classes.h"
#include "transfer/chain_arrays.h"

namespace tcmalloc {

// The memory is divided into regions: a page of the kernel each, or as much as a few objects where
// these are large, and always a part of one span. A bin has a bit for each object of one region,
// and is that of each region with the same number modulo kBins: the first one has it until somebody
// takes all of it. Objects that a program frees at random thus come back in ascending order, and
// nothing that the program can overwrite says which they are.
// docs/decisions/0136-bins-for-pages.md.
class PageBins {
 public:
  static constexpr size_t kBins = 2048;
  static constexpr uint32_t kMostInRegion = 128;
  // Fewer objects come from one bin alone only if no other has any.
  static constexpr uint32_t kFewest = 16;

  static constexpr uint32_t RegionBytes(uint32_t size) {
    const uint32_t most = std::min(static_cast<uint32_t>(kPageSize), std::bit_ceil(16 * size));
    return std::min(std::max(kKernelPage, most), std::bit_floor(kMostInRegion * size));
  }

  // Returns bins for objects of class `c`. Null if no memory can be had.
  TCMALLOC_COLD static PageBins* New(uint8_t c, ChainArrays& arrays);
  // Takes back bins, which are empty.
  TCMALLOC_COLD static void Delete(PageBins* bins, ChainArrays& arrays);

  // Returns the number of objects.
  uint32_t objects() const { return objects_; }

  // Takes the objects of a chain, up to its end. Returns those whose bins are of other regions, and
  // whatever is no object of the class. `owner` has these functions:
  //   owner.CheckedNext(object) returns the reference to the next object where the link of `object`
  //     leads out of the address window;
  //   owner.IsObject(object) returns true if an object of the class begins there;
  //   owner.CrashOnTwice(object) ends the process, because the object is here already.
  template <typename Owner>
  TCMALLOC_ALWAYS_INLINE Chain Put(Chain chain, const LinkCodec& by, const Owner& owner) {
    const LinkCodec codec = by;
    const int shift = shift_;
    const uintptr_t region_bytes = uintptr_t{1} << shift;
    const uint64_t reciprocal = reciprocal_;
    Chain strays{codec.end, 0};
    uint32_t seen = 0;
    for (ObjectReference reference = chain.head; reference != codec.end; ++seen) {
      void* const object = ObjectAt(reference);
      const uintptr_t address = AddressAt(reference);
      reference = codec.Next(object);
      if (TCMALLOC_UNLIKELY(!codec.InWindow(reference))) reference = owner.CheckedNext(object);
      const size_t number = (address >> shift) % kBins;
      if (TCMALLOC_UNLIKELY(!used_[number])) Begin(number, address, owner);
      Bin& bin = bins_[number];
      const uintptr_t offset = address - bin.first;
      const auto product = size_class_internal::Product{offset} * reciprocal;
      const bool begins = static_cast<uint64_t>(product) < reciprocal;
      if (TCMALLOC_UNLIKELY(offset >= region_bytes || !begins)) {
        codec.Prepend(object, &strays);
        continue;
      }
      const auto index = static_cast<size_t>(product >> 64);
      const uint64_t before = bin.free[index / kWordBits];
      const uint64_t after = before | uint64_t{1} << (index % kWordBits);
      if (TCMALLOC_UNLIKELY(after == before)) owner.CrashOnTwice(object);
      bin.free[index / kWordBits] = after;
    }
    objects_ += seen - strays.count;
    return strays;
  }

  // Takes the objects of the next regions, at least kFewest or all that there are, and links them
  // in ascending order. Calls check(object) for one whose link was overwritten.
  template <typename Check>
  TCMALLOC_NOINLINE Chain Take(const LinkCodec& by, Check check) {
    const LinkCodec codec = by;
    ObjectReference head = codec.end;
    void* last = nullptr;
    uint32_t count = 0;
    for (; count < kFewest && objects_ > 0;) {
      const size_t number = NextUsed();
      const uint32_t before = count;
      ForEachIn(bins_[number], [&](void* object) {
        if (TCMALLOC_UNLIKELY(!LinkCodec::IsToAddress(codec.Next(object)))) check(object);
        if (TCMALLOC_LIKELY(last != nullptr)) {
          codec.Link(last, ReferenceTo(object));
        } else {
          head = ReferenceTo(object);
        }
        last = object;
        ++count;
      });
      used_[number] = false;
      next_ = (number + 1) % kBins;
      objects_ -= count - before;
    }
    if (last != nullptr) codec.Link(last, codec.end);
    return {head, count};
  }

  // Returns true if it has `object`.
  TCMALLOC_COLD bool Has(const void* object) const;

  // Calls f(object) for each object, in the order of the bins.
  template <typename F>
  void ForEach(F f) const {
    for (size_t number = 0; number < kBins; ++number) {
      if (used_[number]) ForEachIn(bins_[number], f);
    }
  }

 private:
  static constexpr uint32_t kKernelPage = 4096;
  static constexpr uint32_t kWordBits = 64;
  static constexpr uint32_t kWords = kMostInRegion / kWordBits;

  // Defined while the bin is used.
  struct Bin {
    uintptr_t first;        // where the first object of the region begins
    uint64_t free[kWords];  // bit i: the i-th object of the region is here
  };

  TCMALLOC_COLD explicit PageBins(uint8_t c);

  // Makes the bin that of the region of an address, if an object of the class begins there.
  // Otherwise no address lies in the bin.
  template <typename Owner>
  TCMALLOC_NOINLINE void Begin(size_t number, uintptr_t address, const Owner& owner) {
    Bin& bin = bins_[number];
    bin = {address + 1, {}};
    if (!owner.IsObject(reinterpret_cast<const void*>(address))) return;
    const uintptr_t offset = address % (uintptr_t{1} << shift_);
    const auto before = size_class_internal::Product{offset} * reciprocal_ >> 64;
    bin.first = address - static_cast<uintptr_t>(before) * size_;
    used_[number] = true;
  }

  template <typename F>
  TCMALLOC_ALWAYS_INLINE void ForEachIn(const Bin& bin, F f) const {
    uintptr_t start = bin.first;
    for (uint32_t i = 0; i < kWords; ++i, start += uintptr_t{kWordBits} * size_) {
      for (uint64_t bits = bin.free[i]; bits != 0; bits &= bits - 1) {
        f(reinterpret_cast<void*>(start + static_cast<uintptr_t>(std::countr_zero(bits)) * size_));
      }
    }
  }

  size_t NextUsed() const;

  const uint64_t reciprocal_;  // of the class
  const uint32_t size_;
  const int shift_;  // from an address to the number of its region
  uint32_t objects_ = 0;
  size_t next_ = 0;        // the bin behind the one that was taken last
  bool used_[kBins] = {};  // which bins have objects
  Bin bins_[kBins];
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_THREAD_PAGE_BINS_H_
