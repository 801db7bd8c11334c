// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Freed blocks of small classes, each thread's apart, which its next allocations take again.

#ifndef TCMALLOC_HARDENED_BLOCK_POOLS_H_
#define TCMALLOC_HARDENED_BLOCK_POOLS_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "hardened/canary.h"
#include "hardened/quarantine.h"
#include "pages/metadata_arena.h"
#include "size_class/size_classes.h"

namespace tcmalloc {

// The quarantine of the small blocks of threads that have a part to themselves. A pool has a list
// of blocks for each class:
//
//     0 <= count <= most <= kMostBlocks;  next < window <= most
//
// Blocks come out in the order in which they came in, but for a window of the oldest ones, one of
// which is drawn at random. They do so only while more than `least` of them wait, or if the list is
// full. So most pairs of an allocation and a free never reach the allocator below, and still no
// block comes back soon, or at a known time. The window is small because a program runs slower
// whose blocks are far from those that it asked for before. The next block is drawn ahead, and is
// fetched meanwhile.
//
// A pool is its thread's own. Others may look at its places. A signal handler must not come in the
// middle of a change and change it, too; a fork may.
class BlockPools {
  struct Pool;

 public:
  static constexpr size_t kPools = Quarantine::kOwnParts;
  // Larger blocks are filled at both ends alone, and wait elsewhere.
  static constexpr size_t kLargest = kMostFilled;
  static constexpr size_t kMostBlocks = 128;
  // A class with fewer places has no block to take, and only exchanges blocks.
  static constexpr size_t kFewestWaiting = 16;
  static constexpr size_t kWindow = 16;
  // The part of the places that is always full, and that is filled or emptied at once.
  static constexpr size_t kShare = 4;

  constexpr BlockPools() = default;
  BlockPools(const BlockPools&) = delete;
  BlockPools& operator=(const BlockPools&) = delete;

  // Makes places for at most `bytes_per_class` bytes of each class in a pool. Called once, before
  // all others. Returns false if there is no memory.
  [[nodiscard]] bool Initialize(MetadataArena& arena, size_t bytes_per_class, uint64_t seed);

  // Returns true if the part of the quarantine is a pool.
  TCMALLOC_ALWAYS_INLINE static bool IsPool(uint8_t part) {
    return static_cast<uint8_t>(part - 1) < kPools;
  }
  static constexpr bool HasClass(uint8_t size_class) {
    return size_class < kClasses && size_class != 0;
  }

  static constexpr size_t kClasses = SizeClassFor(kLargest) + 1;

 private:
  struct List {
    std::atomic<void*>* places = nullptr;
    uint8_t first = 0;  // of the blocks, a place
    uint8_t next = 0;   // the block that goes next, counted from the first
    uint8_t count = 0;
    uint8_t window = 0;
    uint8_t least = 0;
    uint8_t most = 0;

    std::atomic<void*>& PlaceOf(size_t block) const {
      return places[(first + block) % kMostBlocks];
    }
  };
  // How far behind the beginning of a block another line is fetched. Few blocks end far behind it.
  static constexpr size_t kPrefetched = 64;
  struct alignas(64) Pool {
    uint64_t random = 0;
    List lists[kClasses];
    std::atomic<void*> places[kClasses][kMostBlocks];
  };

 public:
  // The block that goes next. Ends with the next change of the pool.
  class Turn {
   public:
    // Returns true if more blocks wait than always do.
    bool has_come() const { return TCMALLOC_LIKELY(list_.count > list_.least); }
    // Null if the class has no place. Any other block is there if the turn has come, or if the list
    // is full.
    void* block() const { return list_.PlaceOf(list_.next).load(std::memory_order_relaxed); }
    // Takes the block, which is not null, out of the pool.
    TCMALLOC_ALWAYS_INLINE void Take() const {
      std::atomic<void*>& oldest = list_.PlaceOf(0);
      list_.PlaceOf(list_.next)
          .store(oldest.load(std::memory_order_relaxed), std::memory_order_relaxed);
      oldest.store(nullptr, std::memory_order_relaxed);
      ++list_.first;
      --list_.count;
      Draw(pool_, list_);
    }

   private:
    friend class BlockPools;
    Turn(Pool& pool, List& list) : pool_(pool), list_(list) {}

    Pool& pool_;
    List& list_;
  };

  // All require IsPool and HasClass.
  TCMALLOC_ALWAYS_INLINE Turn Next(uint8_t part, uint8_t size_class) {
    Pool& pool = *pools_[part];
    return {pool, pool.lists[size_class]};
  }
  // Returns false if there is no room.
  TCMALLOC_ALWAYS_INLINE bool TryAdd(uint8_t part, void* block, uint8_t size_class) {
    List& list = pools_[part]->lists[size_class];
    if (TCMALLOC_UNLIKELY(list.count >= list.most)) return false;
    // Release pairs with the acquire in LookAt.
    list.PlaceOf(list.count).store(block, std::memory_order_release);
    ++list.count;
    return true;
  }
  // Returns how many blocks a list that is full gives up at once, one at least.
  size_t Batch(uint8_t part, uint8_t size_class) const {
    return std::max<size_t>(pools_[part]->lists[size_class].most / kShare, 1);
  }
  // Returns how many blocks a list wants that has none to take.
  size_t Wanted(uint8_t part, uint8_t size_class) const {
    const List& list = pools_[part]->lists[size_class];
    const size_t full = list.least + size_t{list.most} / kShare;
    return list.most > list.least && list.count < full ? full - list.count : 0;
  }
  // Takes any block out of a pool. Returns null if it is empty.
  void* TakeAny(uint8_t part);

  // Calls f(block, is_there) as Quarantine::LookAtOthers does.
  template <typename F>
  void LookAtOthers(uint8_t own, F f) const {
    for (size_t p = 1; p <= kPools; ++p) {
      if (p == own) continue;
      for (const auto& places : pools_[p]->places) {
        for (const std::atomic<void*>& place : places) Quarantine::LookAt(place, f);
      }
    }
  }

 private:
  // Draws the block that goes next.
  TCMALLOC_ALWAYS_INLINE static void Draw(Pool& pool, List& list) {
    pool.random = Quarantine::NextDraw(pool.random);
    list.next = static_cast<uint8_t>((pool.random >> 32) * list.window >> 32);
    const void* block = list.PlaceOf(list.next).load(std::memory_order_relaxed);
    __builtin_prefetch(block, 1);
    __builtin_prefetch(static_cast<const char*>(block) + kPrefetched, 1);
  }

  Pool* pools_[1 + kPools] = {};  // by part
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HARDENED_BLOCK_POOLS_H_
