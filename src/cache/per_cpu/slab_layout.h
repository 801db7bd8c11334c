// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The layout of a slab:
//
//     0      TCM_LIMITS TCM_SLAB_CLASSES       TCM_SLOTS                             kSlabBytes
//     | tops | limits   | classes      | zeros | slots of class n-1 | ... | of class 1 |       |
//
// Everything is counted in slots from the slab's start. Large objects come first: they have few
// slots, which share pages with each other. Memory that no class ever reached is never touched, nor
// are the zeros. The classes begin with kClassBySize; rows of larger sizes may follow among the
// zeros.

#ifndef TCMALLOC_CACHE_PER_CPU_SLAB_LAYOUT_H_
#define TCMALLOC_CACHE_PER_CPU_SLAB_LAYOUT_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cache/event_clock.h"
#include "cache/per_cpu/sections_layout.h"
#include "pages/page_types.h"
#include "size_class/size_classes.h"

namespace tcmalloc {

inline constexpr size_t kSlabBytes = TCM_SLAB_BYTES;
inline constexpr size_t kSlotBytes = sizeof(uint64_t);
// The sections compute the offset of a slab in 32 bits.
inline constexpr size_t kMaxSlabs = (size_t{1} << 32) / kSlabBytes;

// The word in a slot: the address of a free object and, in the low bits, the index of the next
// slot. The top of a class is a copy of its highest slot in use, so its index tells which slots are
// in use: the objects are in [begin, index). The slot before the first one holds the top of an
// empty class, without an address. While the slab is open, only the sections change the tops and
// the slots above them; everything else is changed under the slab's lock. No access publishes
// anything: see CpuSlab.
using SlotWord = uint64_t;

inline void* SlotObject(SlotWord word) { return reinterpret_cast<void*>(word >> TCM_INDEX_BITS); }
constexpr uint32_t SlotIndex(SlotWord word) {
  return static_cast<uint32_t>(word & ((1U << TCM_INDEX_BITS) - 1));
}
static_assert(kAddressBits + TCM_INDEX_BITS <= 64);

// The limits of one size class in one slab: free may add objects while the top's index is below
// `end`.
struct ClassLimits {
  std::atomic<uint16_t> begin;
  std::atomic<uint16_t> end;
  std::atomic<uint16_t> capacity;  // what end - begin is while the slab is open; sections ignore it
  uint16_t unused;
};
static_assert(sizeof(SlotWord) == size_t{1} << TCM_CLASS_SHIFT);
static_assert(sizeof(ClassLimits) == size_t{1} << TCM_CLASS_SHIFT);
static_assert(TCM_LIMITS + offsetof(ClassLimits, begin) == TCM_BEGIN);
static_assert(TCM_LIMITS + offsetof(ClassLimits, end) == TCM_END);

// The `begin` of every class in a closed slab. No index is above it.
inline constexpr uint16_t kClosedBegin = UINT16_MAX;

namespace slab_layout_internal {

// A class may hold kClassBytes, or kFewSlots objects of up to kMostClassBytes, but at least two
// batches, so that one can be fetched or returned without the next operation needing another. The
// number of slots is not a power of two, so that the first slots of different classes fall into
// different sets of the processor's cache.
inline constexpr size_t kClassBytes = size_t{256} << 10;
inline constexpr size_t kMostClassBytes = size_t{4} << 20;
inline constexpr size_t kFewSlots = 63;
inline constexpr size_t kMostSlots = 1000;

consteval auto MakeMaxSlots() {
  std::array<uint16_t, kSizeClassCount> slots{};
  for (size_t c = 1; c < kSizeClassCount; ++c) {
    const SizeClassInfo& info = kSizeClasses[c];
    const size_t few = std::min(kFewSlots, kMostClassBytes / info.size);
    slots[c] = static_cast<uint16_t>(std::clamp<size_t>(std::max(kClassBytes / info.size, few),
                                                        size_t{2} * info.batch, kMostSlots));
  }
  return slots;
}

inline constexpr size_t kFirstSlot = TCM_SLOTS / kSlotBytes;

consteval auto MakeBegins(const std::array<uint16_t, kSizeClassCount>& slots) {
  std::array<uint16_t, kSizeClassCount> begins{};
  auto next = static_cast<uint16_t>(kFirstSlot);
  for (size_t c = kSizeClassCount - 1; c > 0; --c) {
    begins[c] = static_cast<uint16_t>(next + 1);
    next = static_cast<uint16_t>(begins[c] + slots[c]);
  }
  return begins;
}

consteval size_t UsedSlots(const std::array<uint16_t, kSizeClassCount>& slots) {
  size_t used = kFirstSlot + kSizeClassCount - 1;  // one before each class
  for (const uint16_t n : slots) used += n;
  return used;
}

}  // namespace slab_layout_internal

// The most objects of a class that a slab can hold, and its first slot. Class 0 has none.
inline constexpr std::array<uint16_t, kSizeClassCount> kMaxSlots =
    slab_layout_internal::MakeMaxSlots();
inline constexpr std::array<uint16_t, kSizeClassCount> kSlabBegin =
    slab_layout_internal::MakeBegins(kMaxSlots);

// Returns true if a class is of objects so small that the number of its slots, not their bytes,
// bounds what a slab holds of them.
constexpr bool HasFewBytesInSlots(uint8_t c) {
  return slab_layout_internal::kMostSlots * kSizeClasses[c].size <
         slab_layout_internal::kClassBytes;
}

// Every index fits its 16 bits, with kClosedBegin above all of them, and a slab is no larger than
// it has to be.
static_assert(slab_layout_internal::UsedSlots(kMaxSlots) < kClosedBegin);
static_assert(slab_layout_internal::UsedSlots(kMaxSlots) * kSlotBytes <= kSlabBytes);
static_assert(slab_layout_internal::UsedSlots(kMaxSlots) * kSlotBytes > kSlabBytes / 2);
static_assert(TCM_TOP + kSizeClassCount * sizeof(SlotWord) <= TCM_LIMITS);
static_assert(TCM_LIMITS + kSizeClassCount * sizeof(ClassLimits) <= TCM_SLAB_CLASSES);
static_assert(kSlabBegin[0] == 0 && kMaxSlots[0] == 0);

// Malloc looks up the class within the slab for every size that the clock lets pass.
static_assert(TCM_SLAB_CLASSES + kClassBySize.size() < TCM_SLOTS);
static_assert(TCM_SLAB_CLASSES + EventClock::kLongestInterval < TCM_SLOTS);
#ifdef TCMALLOC_PAGE_SHIFT
static_assert(kPageShift == TCMALLOC_PAGE_SHIFT);
#endif

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_CPU_SLAB_LAYOUT_H_
