// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/per_thread/page_bins.h"

#include <bit>
#include <cstring>
#include <memory>
#include <new>

namespace tcmalloc {
namespace {

constexpr int kLog2Slots = std::countr_zero(std::bit_ceil(sizeof(PageBins) / sizeof(PackedChain)));
static_assert(sizeof(PageBins) <= sizeof(PackedChain) << kLog2Slots);

}  // namespace

PageBins::PageBins(uint8_t c)
    : reciprocal_(kSizeClasses[c].reciprocal),
      size_(kSizeClasses[c].size),
      shift_(std::countr_zero(RegionBytes(size_))) {}

PageBins* PageBins::New(uint8_t c, ChainArrays& arrays) {
  PackedChain* memory = arrays.Allocate(kLog2Slots);
  return memory != nullptr ? new (memory) PageBins(c) : nullptr;
}

void PageBins::Delete(PageBins* bins, ChainArrays& arrays) {
  std::destroy_at(bins);
  arrays.Deallocate(reinterpret_cast<PackedChain*>(bins), kLog2Slots);
}

// Returns the first bin from next_ on that has objects, as one has.
size_t PageBins::NextUsed() const {
  const void* found = std::memchr(used_ + next_, true, kBins - next_);
  if (found == nullptr) found = std::memchr(used_, true, next_);
  return static_cast<size_t>(static_cast<const bool*>(found) - used_);
}

bool PageBins::Has(const void* object) const {
  const auto address = reinterpret_cast<uintptr_t>(object);
  const size_t number = (address >> shift_) % kBins;
  bool found = false;
  if (used_[number]) ForEachIn(bins_[number], [&](void* other) { found |= other == object; });
  return found;
}

}  // namespace tcmalloc
