// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Memory for the allocator's own records.

#ifndef TCMALLOC_PAGES_METADATA_ARENA_H_
#define TCMALLOC_PAGES_METADATA_ARENA_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>

#include "base/attributes.h"
#include "base/bits.h"
#include "base/spin_lock.h"

namespace tcmalloc {

// Provides the arena with zeroed memory of at least `bytes` bytes, aligned to the kernel's page, or
// returns null. system/memory.h has one; tests have fakes.
using MetadataSource = void* (*)(size_t bytes);

struct MetadataStats {
  size_t mapped_bytes = 0;  // drawn from the source
  size_t used_bytes = 0;    // handed out, or left in a page for the alignment of what came next
};

// Hands out memory that is never given back. It does so in address order, so that only memory in
// use is ever touched. Thread safe.
class MetadataArena {
 public:
  constexpr explicit MetadataArena(MetadataSource source) : source_(source) {}

  // Returns zeroed memory, or null if the source has none. `alignment` is a power of two.
  void* Allocate(size_t bytes, size_t alignment) TCMALLOC_EXCLUDES(lock_) {
    return AllocateLeaving(Left::kNothing, bytes, alignment);
  }

  // Works as Allocate, but leaves what is reserved to others, and after many refusals in a row asks
  // the source only now and then: for callers that can do without.
  void* AllocateUnreserved(size_t bytes, size_t alignment) TCMALLOC_EXCLUDES(lock_) {
    return AllocateLeaving(Left::kReserve, bytes, alignment);
  }
  // Works as AllocateUnreserved, but may take what is spare.
  void* AllocateSpare(size_t bytes, size_t alignment) TCMALLOC_EXCLUDES(lock_) {
    return AllocateLeaving(Left::kNeeded, bytes, alignment);
  }

  // Makes sure, where the source can, that Allocate has so many bytes in small pieces when the
  // source gives nothing any more, and AllocateSpare so many beside them.
  TCMALLOC_COLD void Reserve(size_t bytes, size_t spare = 0) TCMALLOC_EXCLUDES(lock_);

  MetadataStats stats() TCMALLOC_EXCLUDES(lock_);

 private:
  // Memory that is kept for when the source gives nothing. The record of one that is not the newest
  // lies at its begin.
  struct Region {
    uintptr_t begin = 0;
    uintptr_t end = 0;
    Region* next = nullptr;
  };

  // Large compared with the needs of one growth of the heap, small compared with a program.
  static constexpr size_t kChunkBytes = size_t{256} << 10;
  static constexpr size_t kLeastChunkBytes = size_t{64} << 10;
  // Of what the source gives, at least.
  static constexpr size_t kSourceAlignment = 4096;
  // After so many refusals in a row the source is asked for one of so many requests.
  static constexpr uint32_t kManyRefusals = 16;
  static constexpr uint32_t kRequestsPerAsk = 64;

  // How much of the reserve a request leaves.
  enum class Left : uint8_t { kNothing, kNeeded, kReserve };

  void* AllocateLeaving(Left left, size_t bytes, size_t alignment) TCMALLOC_EXCLUDES(lock_);
  bool HasRoom(size_t bytes, size_t alignment) const TCMALLOC_REQUIRES(lock_) {
    return next_ != 0 && AlignUp(next_, alignment) + bytes <= end_;
  }
  void* TakeNext(size_t bytes, size_t alignment) TCMALLOC_REQUIRES(lock_);
  bool TakeChunk(size_t bytes, size_t alignment) TCMALLOC_REQUIRES(lock_);
  // Returns false for most requests after many refusals of the source.
  bool MayAsk() TCMALLOC_REQUIRES(lock_) {
    return refusals_ < kManyRefusals || ++refusals_ % kRequestsPerAsk == 0;
  }
  TCMALLOC_NOINLINE void* AllocateRefused(Left left, size_t bytes, size_t alignment)
      TCMALLOC_REQUIRES(lock_);
  bool IsReserved(Left left, size_t bytes) const TCMALLOC_REQUIRES(lock_);
  void* TakeReserved(size_t bytes, size_t alignment) TCMALLOC_REQUIRES(lock_);
  void DropNewestRegion() TCMALLOC_REQUIRES(lock_);
  void* Draw(size_t bytes) TCMALLOC_REQUIRES(lock_);

  SpinLock lock_{LockRank::kMetadata};
  MetadataSource source_;
  uintptr_t next_ TCMALLOC_GUARDED_BY(lock_) = 0;
  uintptr_t end_ TCMALLOC_GUARDED_BY(lock_) = 0;
  Region reserve_ TCMALLOC_GUARDED_BY(lock_);             // the newest
  size_t reserved_bytes_ TCMALLOC_GUARDED_BY(lock_) = 0;  // in all regions
  size_t needed_bytes_ TCMALLOC_GUARDED_BY(lock_) = 0;    // of these, what is not spare
  // Refusals since the source gave memory last, and requests that were kept from it.
  uint32_t refusals_ TCMALLOC_GUARDED_BY(lock_) = 0;
  MetadataStats stats_ TCMALLOC_GUARDED_BY(lock_);
};

// Recycles records of one type. The pool itself has no lock: its owner's lock guards it. A record
// that was given back keeps its bytes past the first word.
template <typename T>
class MetadataPool {
 public:
  constexpr explicit MetadataPool(MetadataArena& arena) : arena_(arena) {}

  // Returns a default-constructed T, or null if no memory can be had.
  T* New() {
    void* memory = free_;
    if (memory != nullptr) {
      std::memcpy(&free_, free_, sizeof(free_));
    } else {
      memory = arena_.Allocate(sizeof(T), alignof(T));
      if (memory == nullptr) return nullptr;
      ++made_;
    }
    ++live_;
    return new (memory) T();
  }

  void Delete(T* record) {
    std::memcpy(static_cast<void*>(record), &free_, sizeof(free_));
    free_ = record;
    --live_;
  }

  // Reserves memory for as many records as `count` is more than there ever were, and some to spare.
  void Reserve(size_t count) {
    constexpr size_t kMostSpare = size_t{512} << 10;
    const size_t more = count > made_ ? count - made_ : 0;
    const size_t spare = count * sizeof(T) / 4;
    arena_.Reserve(more * sizeof(T), std::min(spare, kMostSpare));
  }

  size_t live() const { return live_; }

 private:
  // No destructor runs, and the link is copied, not constructed: a compiler may drop stores to an
  // object whose lifetime ends, and stale readers must see the last state of the record.
  static_assert(std::is_trivially_destructible_v<T> && sizeof(T) >= sizeof(void*));

  MetadataArena& arena_;
  void* free_ = nullptr;  // each free record begins with the next one's address
  size_t live_ = 0;
  size_t made_ = 0;  // by the arena
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGES_METADATA_ARENA_H_
