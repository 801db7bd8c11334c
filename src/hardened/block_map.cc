// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hardened/block_map.h"

#include <sys/mman.h>

#include <cerrno>

#include "heap/heap.h"
#include "system/auxv.h"
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

bool BlockMap::Initialize() {
  constexpr size_t kLeaves = (size_t{1} << (kAddressBits - kGranuleLog2)) / kLeafBytes;
  root_ = static_cast<std::atomic<uintptr_t>*>(MapGuarded(kLeaves * sizeof(*root_)));
  return root_ != nullptr;
}

// The page behind a leaf has the further bytes of a block that begins in it and ends in the next.
size_t BlockMap::LeafBytes() { return kLeafBytes + KernelPageSize(); }

// Returns memory for a leaf, or null. One leaf is always mapped ahead: the allocator below may just
// have taken all that the process may map, and would hand that memory out again and again.
BlockMap::Byte* BlockMap::MapLeaf() {
  auto* leaf = static_cast<Byte*>(MapGuarded(LeafBytes()));
  // Acquire-release pairs with the exchange in MapLeaf of another thread.
  if (leaf == nullptr) return spare_.exchange(nullptr, std::memory_order_acq_rel);
  if (spare_.load(std::memory_order_relaxed) != nullptr) return leaf;
  auto* spare = static_cast<Byte*>(MapGuarded(LeafBytes()));
  if (spare == nullptr) return leaf;
  // Acquire-release pairs with MapLeaf of another thread, and publishes the mapping.
  Byte* other = spare_.exchange(spare, std::memory_order_acq_rel);
  if (other != nullptr) UnmapGuarded(other, LeafBytes());
  return leaf;
}

BlockMap::Byte* BlockMap::MakeLeaf(const void* block) {
  const uintptr_t granule = reinterpret_cast<uintptr_t>(block) / kGranule;
  std::atomic<uintptr_t>& entry = root_[granule / kLeafBytes];
  const int saved_errno = errno;
  Byte* leaf = MapLeaf();
  errno = saved_errno;
  if (leaf == nullptr) return nullptr;
  const uintptr_t numbered =
      reinterpret_cast<uintptr_t>(leaf) - granule / kLeafBytes * kLeafBytes + 1;
  uintptr_t other = 0;
  // Release pairs with the acquire in Find and publishes the mapping, which is all zero; acquire
  // with the release of a thread that was faster.
  if (!entry.compare_exchange_strong(other, numbered, std::memory_order_acq_rel,
                                     std::memory_order_acquire)) {
    UnmapGuarded(leaf, LeafBytes());
  }
  return Find(block);
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
