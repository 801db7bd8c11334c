// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hardened/block_map.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "heap/heap.h"
#include "system/address_window.h"
#include "system/auxv.h"
#include "system/own_memory.h"
#include "system/region_name.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

// Maps zeroed memory between two pages without access.
void* MapGuarded(size_t bytes) {
  const size_t page = KernelPageSize();
  void* start = system_calls.mmap(nullptr, bytes + 2 * page, PROT_NONE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  char* inside = static_cast<char*>(start) + page;
  if (system_calls.mprotect(inside, bytes, PROT_READ | PROT_WRITE) != 0) {
    system_calls.munmap(start, bytes + 2 * page);
    return nullptr;
  }
  // A hugepage would be resident as a whole.
  system_calls.madvise(inside, bytes, MADV_NOHUGEPAGE);
  NameRegion(inside, bytes, kMetadataName);
  return inside;
}

void UnmapGuarded(void* inside, size_t bytes) {
  const size_t page = KernelPageSize();
  system_calls.munmap(static_cast<char*>(inside) - page, bytes + 2 * page);
}

}  // namespace

bool BlockMap::Initialize(uint64_t random) {
  constexpr size_t kFewestBytes = kPartEntries * sizeof(*root_);
  constexpr size_t kMostBytes = kMostLowLeaves * sizeof(*root_);
  const size_t bytes =
      std::bit_floor(std::clamp(AddressSpaceLimit() / kLimitShare, kFewestBytes, kMostBytes));
  root_ = reinterpret_cast<std::atomic<uintptr_t>*>(
      MapLoneTable(bytes, kLeaves * sizeof(*root_), random));
  may_grow_ = root_ != nullptr;
  if (!may_grow_) root_ = static_cast<std::atomic<uintptr_t>*>(MapGuarded(bytes));
  if (root_ != nullptr) low_leaves_ = bytes / sizeof(*root_);
  return root_ != nullptr;
}

bool BlockMap::HasPart(size_t part) const {
  // Acquire pairs with the release in MapPart: the entries are mapped.
  return (parts_[part / 64].load(std::memory_order_acquire) >> part % 64 & 1) != 0;
}

// Maps a part of the root that is not mapped yet. Returns false if there is no memory.
bool BlockMap::MapPart(size_t part) {
  if (!may_grow_) return false;
  // Another thread may have been faster, and not have noted that yet.
  if (!MapPartOfLoneTable(root_ + part * kPartEntries, kPartEntries * sizeof(*root_))) return false;
  // Release pairs with the acquire in HasPart.
  parts_[part / 64].fetch_or(uint64_t{1} << part % 64, std::memory_order_release);
  return true;
}

BlockMap::Byte* BlockMap::FindHigh(const void* address) const {
  const uintptr_t granule = GranuleOf(address);
  const uintptr_t leaf_number = granule / kLeafBytes;
  if (leaf_number < low_leaves_ || leaf_number >= kLeaves) return nullptr;
  if (!HasPart(leaf_number / kPartEntries)) return nullptr;
  // Acquire pairs with the release in MakeLeaf.
  const uintptr_t leaf = root_[leaf_number].load(std::memory_order_acquire);
  return leaf != 0 ? StateIn(leaf, granule) : nullptr;
}

// The page behind a leaf has the further bytes of a block that begins in it and ends in the next.
size_t BlockMap::LeafBytes() { return kLeafBytes + KernelPageSize(); }

// Maps an eighth as many leaves as there are, so that a large heap has few mappings, or one.
// Returns them as ahead_ has them; 0 if there is no memory.
uintptr_t BlockMap::MapLeaves() {
  size_t count =
      std::clamp<size_t>(mapped_leaves_.load(std::memory_order_relaxed) / 8, 1, kMostAtOnce);
  void* first = MapGuarded(count * LeafBytes());
  if (first == nullptr && count > 1) {
    count = 1;
    first = MapGuarded(LeafBytes());
  }
  if (first == nullptr) return 0;
  mapped_leaves_.fetch_add(count, std::memory_order_relaxed);
  return reinterpret_cast<uintptr_t>(first) + count;
}

// Makes leaves those that are mapped ahead. Returns false if there are some.
bool BlockMap::KeepAhead(uintptr_t leaves) {
  uintptr_t none = 0;
  // Release pairs with the acquire in TakeLeaf.
  return ahead_.compare_exchange_strong(none, leaves, std::memory_order_release,
                                        std::memory_order_relaxed);
}

// Maps leaves ahead, unless another thread does. Returns false if there is no memory.
bool BlockMap::MapAhead() {
  const uintptr_t leaves = MapLeaves();
  if (leaves == 0) return false;
  if (KeepAhead(leaves)) return true;
  const size_t count = leaves % kMostInRow;
  UnmapGuarded(reinterpret_cast<void*>(leaves - count), count * LeafBytes());
  mapped_leaves_.fetch_sub(count, std::memory_order_relaxed);
  return true;
}

// Returns the address of a leaf, or 0. One leaf at least is always mapped ahead: the allocator
// below may just have taken all that the process may map, and would hand that memory out again and
// again.
uintptr_t BlockMap::TakeLeaf() {
  // Acquire pairs with the release in KeepAhead.
  uintptr_t leaves = ahead_.load(std::memory_order_acquire);
  for (;;) {
    if (leaves == 0) {
      const bool has_memory = MapAhead();
      // Acquire pairs with the release in KeepAhead, of this thread or another.
      leaves = ahead_.load(std::memory_order_acquire);
      if (leaves == 0 && !has_memory) return 0;
      continue;
    }
    const uintptr_t rest = leaves % kMostInRow > 1 ? leaves + LeafBytes() - 1 : 0;
    // Acquire pairs with the release in KeepAhead.
    if (!ahead_.compare_exchange_weak(leaves, rest, std::memory_order_acquire,
                                      std::memory_order_acquire)) {
      continue;
    }
    if (rest == 0) static_cast<void>(MapAhead());
    return leaves - leaves % kMostInRow;
  }
}

BlockMap::Byte* BlockMap::MakeLeaf(const void* block) {
  const uintptr_t granule = GranuleOf(block);
  const uintptr_t leaf_number = granule / kLeafBytes;
  const size_t part = leaf_number / kPartEntries;
  if (leaf_number >= low_leaves_ && !HasPart(part) && !MapPart(part)) return nullptr;
  const uintptr_t leaf = TakeLeaf();
  if (leaf == 0) return nullptr;
  const uintptr_t numbered = leaf - leaf_number * kLeafBytes + 1;
  uintptr_t other = 0;
  // Release pairs with the acquire in FindLow and publishes the mapping, which is all zero; acquire
  // with the release of a thread that was faster.
  if (root_[leaf_number].compare_exchange_strong(other, numbered, std::memory_order_acq_rel,
                                                 std::memory_order_acquire)) {
    // Most programs use all of a leaf. The page behind it mostly stays unused, but that of the
    // root's entry may be used for the first time.
    own_bytes.Add(LeafBytes());
  } else if (!KeepAhead(leaf + 1)) {
    // Its neighbours in the row are others'.
    system_calls.munmap(reinterpret_cast<void*>(leaf), LeafBytes());
  }
  return Find(block);
}

BlockMap::Byte* BlockMap::EnsureSlow(const void* block) {
  if (Byte* state = FindHigh(block)) return state;
  const int saved_errno = errno;
  Byte* state = MakeLeaf(block);
  errno = saved_errno;
  return state;
}

size_t BlockMap::SpanCapacity(const void* start, GuardKind guard) {
  const Span* span = heap.page_map().Get(PageId::Containing(start));
  return span->bytes() - (guard == GuardKind::kNone ? 0 : KernelPageSize());
}

BlockMap::ShortStates::ShortStates(size_t capacity)
    : first(kLive + kShortSlacks + (capacity == kTinyBytes ? kFirstTiny - 1 : 0)),
      family(capacity == kTinyBytes ? kTinySlacks : kCodes) {}

bool BlockMap::CanHold(size_t size, size_t capacity) { return capacity - size < size_t{1} << 21; }

}  // namespace tcmalloc
