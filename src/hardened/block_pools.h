// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Freed blocks of small classes, each thread's apart, which its next allocations take again.

#ifndef TCMALLOC_HARDENED_BLOCK_POOLS_H_
#define TCMALLOC_HARDENED_BLOCK_POOLS_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/attributes.h"
#include "hardened/canary.h"
#include "hardened/quarantine.h"
#include "pages/metadata_arena.h"
#include "size_class/size_classes.h"

namespace tcmalloc {

// Draws small numbers, several from each number of a generator.
class SmallDraws {
 public:
  explicit SmallDraws(uint64_t random) : random_(random) {}

  // Returns a number below `limit`, which is 1 to 256. All are as likely but for a 256th.
  TCMALLOC_ALWAYS_INLINE size_t Below(size_t limit) {
    if (left_ == 0) {
      random_ = Quarantine::NextDraw(random_);
      bits_ = random_;
      left_ = kDraws;
    }
    const size_t drawn = (bits_ >> (64 - kBits)) * limit >> kBits;
    bits_ <<= kBits;
    --left_;
    return drawn;
  }
  uint64_t random() const { return random_; }

 private:
  static constexpr int kBits = 8;
  static constexpr size_t kDraws = 5;  // the low bits of a number are not good
  uint64_t random_;
  uint64_t bits_ = 0;
  size_t left_ = 0;
};

// The quarantine of the small blocks of threads that have a part to themselves. A pool has for each
// class a queue of freed blocks, and a group of blocks that go next:
//
//     waiting <= most <= kMostBlocks;  ready <= kRun, and kGroup if they were freed
//
// Freed blocks leave the queue kGroup at a time, the oldest ones, while at least `least` others
// stay. So most pairs of an allocation and a free never reach the allocator below, and still no
// block comes back soon. The order within a group is drawn when it is made, from all orders; the
// order of groups stays, so that blocks that were near each other in time stay so however often
// they pass. A program runs slower whose blocks are far from those that it asked for before.
//
// If too few wait, the group is of new objects, which are not filled. Each changes places with
// neighbours alone, kNeighbours in a row, because programs read new objects in the order in which
// they got them, and processors fetch memory ahead that is read in order.
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
  static constexpr size_t kFewestWaiting = 16;
  static constexpr size_t kGroup = 32;
  static constexpr size_t kRun = 64;  // the most new objects of a group
  static constexpr size_t kNeighbours = 4;
  // The part of the places that is always full, and that is emptied at once.
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
    uint8_t first = 0;    // of the blocks in the queue, a place
    uint8_t waiting = 0;  // blocks in the queue
    uint8_t least = 0;
    uint8_t most = 0;
    uint8_t group = 0;       // freed blocks that go at once
    uint8_t ready = 0;       // blocks of the group
    bool is_filled = false;  // they were freed
  };
  struct alignas(64) Pool {
    uint64_t random = 0;
    List lists[kClasses];
    // The last one goes first. There is none at 0.
    std::atomic<void*> groups[kClasses][1 + kRun];
    std::atomic<void*> queues[kClasses][kMostBlocks];

    std::atomic<void*>& PlaceOf(uint8_t size_class, size_t block) {
      return queues[size_class][(lists[size_class].first + block) % kMostBlocks];
    }
  };

 public:
  // Fetches a block, or nothing for null, that whoever takes it out looks at and writes. Few end
  // far behind their second line.
  TCMALLOC_ALWAYS_INLINE static void Prefetch(const void* block) {
    constexpr size_t kLineBytes = 64;
    __builtin_prefetch(block, 1);
    __builtin_prefetch(
        reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(block) + kLineBytes), 1);
  }

  // The block that goes next. Ends with the next change of the pool.
  class Turn {
   public:
    // Returns true if there is a block in the group. All others require that.
    TCMALLOC_ALWAYS_INLINE bool has_come() const { return TCMALLOC_LIKELY(list_.ready != 0); }
    // Returns true if the block was freed, and nobody should have written to it since.
    TCMALLOC_ALWAYS_INLINE bool is_filled() const { return list_.is_filled; }
    TCMALLOC_ALWAYS_INLINE void* block() const {
      return group_[list_.ready].load(std::memory_order_relaxed);
    }
    // Takes the block out of the pool, and fetches the next one meanwhile.
    TCMALLOC_ALWAYS_INLINE void Take() const {
      std::atomic<void*>* place = group_ + list_.ready--;
      place->store(nullptr, std::memory_order_relaxed);
      Prefetch(place[-1].load(std::memory_order_relaxed));
    }

   private:
    friend class BlockPools;
    Turn(List& list, std::atomic<void*>* group) : list_(list), group_(group) {}

    List& list_;
    std::atomic<void*>* group_;
  };

  // All require IsPool and HasClass.
  TCMALLOC_ALWAYS_INLINE Turn Next(uint8_t part, uint8_t size_class) {
    Pool& pool = *pools_[part];
    return {pool.lists[size_class], pool.groups[size_class]};
  }
  // Returns false if there is no room.
  TCMALLOC_ALWAYS_INLINE bool TryAdd(uint8_t part, void* block, uint8_t size_class) {
    Pool& pool = *pools_[part];
    List& list = pool.lists[size_class];
    if (TCMALLOC_UNLIKELY(list.waiting >= list.most)) return false;
    // Release pairs with the acquire in LookAt.
    pool.PlaceOf(size_class, list.waiting).store(block, std::memory_order_release);
    ++list.waiting;
    return true;
  }
  // Returns how many blocks a queue that is full gives up at once, one at least.
  size_t Batch(uint8_t part, uint8_t size_class) const {
    return std::max<size_t>(pools_[part]->lists[size_class].most / kShare, 1);
  }
  // Takes the blocks out of a queue that wait longest, `most` at most. Returns how many it took.
  TCMALLOC_ALWAYS_INLINE size_t TakeOldest(uint8_t part, uint8_t size_class, void** blocks,
                                           size_t most) {
    Pool& pool = *pools_[part];
    List& list = pool.lists[size_class];
    std::atomic<void*>* queue = pool.queues[size_class];
    const size_t count = std::min<size_t>(most, list.waiting);
    const size_t first = list.first;
    for (size_t i = 0; i < count; ++i) {
      std::atomic<void*>& place = queue[(first + i) % kMostBlocks];
      blocks[i] = place.load(std::memory_order_relaxed);
      place.store(nullptr, std::memory_order_relaxed);
    }
    list.first = static_cast<uint8_t>(first + count);
    list.waiting = static_cast<uint8_t>(list.waiting - count);
    return count;
  }
  // Returns how many freed blocks go at once, kGroup at most.
  size_t GroupSize(uint8_t part, uint8_t size_class) const {
    return pools_[part]->lists[size_class].group;
  }
  // Returns how many blocks of a queue may go, which are more than always wait.
  size_t MayGo(uint8_t part, uint8_t size_class) const {
    const List& list = pools_[part]->lists[size_class];
    return list.waiting > list.least ? size_t{list.waiting} - list.least : 0;
  }
  // Makes the group, which is empty, of the blocks that wait longest, `most` at most, but for those
  // for which leaves(block) takes over and returns true. Returns false if none is left.
  template <typename F>
  TCMALLOC_ALWAYS_INLINE bool MakeGroup(uint8_t part, uint8_t size_class, size_t most, F leaves) {
    Pool& pool = *pools_[part];
    void* oldest[kGroup];
    const size_t taken = TakeOldest(part, size_class, oldest, std::min(most, kGroup));
    SmallDraws draws(pool.random);
    void* blocks[kGroup];
    size_t count = 0;
    for (size_t i = 0; i < taken; ++i) {
      if (leaves(oldest[i])) continue;
      blocks[count] = oldest[i];
      std::swap(blocks[count], blocks[draws.Below(count + 1)]);
      ++count;
    }
    pool.random = draws.random();
    Put(pool, size_class, blocks, count, /*is_filled=*/true);
    return count != 0;
  }
  // Makes the group, which is empty, of new objects, kRun at most, in the order of the allocator
  // below.
  void MakeRun(uint8_t part, uint8_t size_class, void** objects, size_t count);
  // Takes any block out of a pool. Returns null if it is empty.
  void* TakeAny(uint8_t part);

  // Calls f(block, is_there) as Quarantine::LookAtOthers does.
  template <typename F>
  void LookAtOthers(uint8_t own, F f) const {
    for (size_t p = 1; p <= kPools; ++p) {
      if (p == own) continue;
      for (const auto& queue : pools_[p]->queues) {
        for (const std::atomic<void*>& place : queue) Quarantine::LookAt(place, f);
      }
      for (const auto& group : pools_[p]->groups) {
        for (const std::atomic<void*>& place : group) Quarantine::LookAt(place, f);
      }
    }
  }

 private:
  static void Put(Pool& pool, uint8_t size_class, void* const* blocks, size_t count,
                  bool is_filled);

  Pool* pools_[1 + kPools] = {};  // by part
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HARDENED_BLOCK_POOLS_H_
