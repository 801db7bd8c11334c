// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/per_thread/page_bins.h"

#include <bit>
#include <memory>
#include <new>

namespace tcmalloc {

PageBins::PageBins(uint32_t size, void* heads)
    : heads_(new(heads) ObjectReference[kBins]{}),
      shift_(std::countr_zero(RegionBytes(size)) - std::countr_zero(sizeof(void*))) {}

PageBins* PageBins::New(uint32_t size, ChainArrays& arrays) {
  static_assert(sizeof(PageBins) <= sizeof(PackedChain) << kSelfLog2);
  static_assert(sizeof(ObjectReference) == sizeof(PackedChain));
  PackedChain* heads = arrays.Allocate(kHeadsLog2);
  if (heads == nullptr) return nullptr;
  PackedChain* memory = arrays.Allocate(kSelfLog2);
  if (memory != nullptr) return new (memory) PageBins(size, heads);
  arrays.Deallocate(heads, kHeadsLog2);
  return nullptr;
}

void PageBins::Delete(PageBins* bins, ChainArrays& arrays) {
  arrays.Deallocate(reinterpret_cast<PackedChain*>(bins->heads_), kHeadsLog2);
  std::destroy_at(bins);
  arrays.Deallocate(reinterpret_cast<PackedChain*>(bins), kSelfLog2);
}

// Returns the first bin from next_ on that has objects, or kBins if none has.
uint32_t PageBins::NextUsed() const {
  constexpr uint32_t kWords = kBins / kWordBits;
  if (objects_ == 0) return kBins;
  uint32_t word = next_ / kWordBits;
  uint64_t bits = used_[word] & ~uint64_t{0} << (next_ % kWordBits);
  while (bits == 0) {
    word = (word + 1) % kWords;
    bits = used_[word];
  }
  return word * kWordBits + static_cast<uint32_t>(std::countr_zero(bits));
}

Chain PageBins::Take() {
  const uint32_t bin = NextUsed();
  if (bin == kBins) return {};
  const Chain chain = At(bin);
  heads_[bin] = kNone;
  counts_[bin] = 0;
  used_[bin / kWordBits] &= ~(uint64_t{1} << (bin % kWordBits));
  objects_ -= chain.count;
  next_ = (bin + 1) % kBins;
  return chain;
}

}  // namespace tcmalloc
