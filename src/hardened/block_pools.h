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
#include "hardened/block_map.h"
#include "hardened/canary.h"
#include "hardened/quarantine.h"
#include "pages/metadata_arena.h"
#include "size_class/size_classes.h"

namespace tcmalloc {

// Draws small numbers.
class SmallDraws {
 public:
  explicit SmallDraws(uint64_t random) : random_(random) {}

  // Returns a number below `limit`, which is 1 to 256.
  TCMALLOC_ALWAYS_INLINE size_t Below(size_t limit) { return size_t{Bits()} * limit >> 32; }
  // Returns bits of which each is as good as any.
  TCMALLOC_ALWAYS_INLINE uint32_t Bits() {
    random_ = Quarantine::NextDraw(random_);
    return static_cast<uint32_t>(random_ >> 32);
  }
  uint64_t random() const { return random_; }

 private:
  uint64_t random_;
};

// The quarantine of the small blocks of threads that have a part to themselves. A pool has for each
// class a ring of places: a group of blocks that go next, and behind it a queue of freed blocks.
//
//     waiting <= most;  ready <= kRun, and kGroup if they were freed
//     ready + waiting <= kMostBlocks
//
// Freed blocks leave the queue kGroup at a time, the oldest ones, while at least `least` others
// stay: the group then ends behind them, and nothing moves but within it. So most pairs of an
// allocation and a free never reach the allocator below, and still no block comes back soon. The
// order within a group is drawn when it is made, from all orders; the order of groups stays, so
// that blocks that were near each other in time stay so however often they pass. A program runs
// slower whose blocks are far from those that it asked for before.
//
// If too few wait, the group is of new objects, which are not filled. Each two of them change
// places or do not, because programs read new objects in the order in which they got them, and
// processors fetch memory ahead that is read in order.
//
// A pool is its thread's own. Others may look at its places. A signal handler must not come in the
// middle of a change and change it, too; a fork may.
class BlockPools {
  struct List;
  struct Pool;

 public:
  // The facts of a class that the fast paths need.
  struct Facts {
    BlockPairs pairs;
    BlockMap::ShortStates states;
  };

  static constexpr size_t kPools = Quarantine::kOwnParts;
  // Larger blocks are filled at both ends alone, and wait elsewhere.
  static constexpr size_t kLargest = kMostFilled;
  static constexpr size_t kMostBlocks = 128;
  static constexpr size_t kFewestWaiting = 16;
  static constexpr size_t kGroup = 32;
  static constexpr size_t kFirstRun = 8;  // new objects of a first group, at most
  static constexpr size_t kRun = 64;      // the most of a later one
  // Blocks that are fetched before the queue gives up the first.
  static constexpr size_t kAhead = 8;
  // The part of the places that is always full, and that is emptied at once.
  static constexpr size_t kShare = 4;

  constexpr BlockPools() = default;
  BlockPools(const BlockPools&) = delete;
  BlockPools& operator=(const BlockPools&) = delete;

  // Makes places for at most `bytes_per_class` bytes of each class in a pool. Called once, before
  // all others. Returns false if there is no memory.
  [[nodiscard]] bool Initialize(MetadataArena& arena, size_t bytes_per_class,
                                const Filling& filling, uint64_t seed);

  // Returns true if the part of the quarantine is a pool.
  TCMALLOC_ALWAYS_INLINE static bool IsPool(uint8_t part) { return ThreadParts::IsPart(part); }
  static constexpr bool HasClass(uint8_t size_class) {
    return kFirstClass <= size_class && size_class < kClasses;
  }

  static constexpr size_t kFirstClass = SizeClassFor(BlockMap::kGranule);
  static constexpr size_t kClasses = SizeClassFor(kLargest) + 1;

 private:
  // Places are numbered on for ever, modulo 256.
  struct alignas(64) List {
    uint8_t next = 0;   // the place of the group's next block
    uint8_t first = 0;  // behind the group: of the block that waits longest
    uint8_t end = 0;    // for the next block that waits
    uint8_t full = 0;   // where `end` had no room when it was looked for last
    uint8_t least = 0;
    uint8_t most = 0;
    uint8_t group = 0;       // freed blocks that go at once
    bool is_filled = false;  // those of the group were freed
    std::atomic<void*>* places = nullptr;
    Facts facts;

    TCMALLOC_ALWAYS_INLINE void* BlockAt(size_t number) const {
      return places[number % kMostBlocks].load(std::memory_order_relaxed);
    }
    uint8_t ready() const { return static_cast<uint8_t>(first - next); }
    uint8_t waiting() const { return static_cast<uint8_t>(end - first); }
    TCMALLOC_ALWAYS_INLINE std::atomic<void*>& PlaceOf(uint8_t number) {
      return places[number % kMostBlocks];
    }
  };
  static_assert(sizeof(List) == 64);
  struct alignas(64) Pool {
    List lists[kClasses];
    std::atomic<void*> places[kClasses][kMostBlocks];
    uint64_t random = 0;
    uint8_t runs[kClasses] = {};  // the most new objects of the next group of them
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
    TCMALLOC_ALWAYS_INLINE bool has_come() const { return TCMALLOC_LIKELY(next_ != list_->first); }
    // Returns true if the block was freed, and nobody should have written to it since.
    TCMALLOC_ALWAYS_INLINE bool is_filled() const { return list_->is_filled; }
    TCMALLOC_ALWAYS_INLINE void* block() const {
      // The place is computed again when the block is taken, which needs fewer registers.
      return list_->PlaceOf(OpaqueToOptimizer(next_)).load(std::memory_order_relaxed);
    }
    TCMALLOC_ALWAYS_INLINE const Facts& facts() const { return list_->facts; }
    // Takes the block out of the pool, and fetches the next one meanwhile.
    TCMALLOC_ALWAYS_INLINE void Take() const {
      list_->PlaceOf(next_).store(nullptr, std::memory_order_relaxed);
      const auto following = static_cast<uint8_t>(next_ + 1);
      list_->next = following;
      Prefetch(list_->PlaceOf(following).load(std::memory_order_relaxed));
    }

   private:
    friend class BlockPools;
    TCMALLOC_ALWAYS_INLINE explicit Turn(List* list) : list_(list), next_(list->next) {}

    List* list_;
    uint8_t next_;
  };

  // The place for a freed block. Ends with the next change of the pool.
  class Place {
   public:
    // Returns true if there is room, or FindRoom may find some. All others require the first.
    TCMALLOC_ALWAYS_INLINE bool is_free() const { return TCMALLOC_LIKELY(end_ != list_->full); }
    TCMALLOC_ALWAYS_INLINE const Facts& facts() const { return list_->facts; }
    TCMALLOC_ALWAYS_INLINE void Put(void* block) const {
      Publish(list_->PlaceOf(end_), block);
      list_->end = static_cast<uint8_t>(end_ + 1);
    }

   private:
    friend class BlockPools;
    TCMALLOC_ALWAYS_INLINE explicit Place(List* list) : list_(list), end_(list->end) {}

    List* list_;
    uint8_t end_;
  };

  // Require HasClass. Without IsPool, no turn has come and no place is free.
  TCMALLOC_ALWAYS_INLINE Turn Next(uint8_t part, size_t size_class) {
    return Turn(OpaqueToOptimizer(&pools_[part]->lists[size_class]));
  }
  TCMALLOC_ALWAYS_INLINE Place PlaceFor(uint8_t part, size_t size_class) {
    return Place(OpaqueToOptimizer(&pools_[part]->lists[size_class]));
  }
  // All others require IsPool and HasClass. Returns false if there is no room.
  TCMALLOC_ALWAYS_INLINE bool TryAdd(uint8_t part, void* block, uint8_t size_class) {
    const Place place = PlaceFor(part, size_class);
    if (TCMALLOC_UNLIKELY(!place.is_free())) return false;
    place.Put(block);
    return true;
  }
  // Looks for room that has come since the last time. Returns for how many blocks.
  size_t FindRoom(uint8_t part, uint8_t size_class) {
    return FindRoom(pools_[part]->lists[size_class]);
  }
  // Returns how many blocks a queue that is full gives up at once, one at least.
  size_t Batch(uint8_t part, uint8_t size_class) const {
    return std::max<size_t>(pools_[part]->lists[size_class].most / kShare, 1);
  }
  // Takes the blocks out of a queue that wait longest, `most` at most, and calls f(block, facts)
  // for each. Returns how many it took. The group, which lies before them, moves.
  template <typename F>
  TCMALLOC_ALWAYS_INLINE size_t TakeOldest(uint8_t part, uint8_t size_class, size_t most, F f) {
    List& list = pools_[part]->lists[size_class];
    const size_t count = std::min<size_t>(most, list.waiting());
    const size_t first = list.first;
    for (size_t i = first; i < first + std::min(count, kAhead); ++i) Prefetch(list.BlockAt(i));
    for (size_t i = first; i < first + count; ++i) {
      Prefetch(list.BlockAt(i + kAhead));
      void* block = list.BlockAt(i);
      list.places[i % kMostBlocks].store(nullptr, std::memory_order_relaxed);
      f(block, list.facts);
    }
    MoveGroup(list, count);
    return count;
  }
  // Returns how many freed blocks go at once, kGroup at most.
  size_t GroupSize(uint8_t part, uint8_t size_class) const {
    return pools_[part]->lists[size_class].group;
  }
  // Returns how many blocks of a queue may go, which are more than always wait.
  size_t MayGo(uint8_t part, uint8_t size_class) const {
    const List& list = pools_[part]->lists[size_class];
    return list.waiting() > list.least ? size_t{list.waiting()} - list.least : 0;
  }
  // Makes the group, which is empty, of the `most` blocks that wait longest, but for those for
  // which leaves(block) takes over and returns true. Requires that as many wait. Returns false if
  // none is left.
  template <typename F>
  TCMALLOC_ALWAYS_INLINE bool MakeGroup(uint8_t part, uint8_t size_class, size_t most, F leaves) {
    Pool& pool = *pools_[part];
    List& list = pool.lists[size_class];
    std::atomic<void*>* const places = list.places;
    SmallDraws draws(pool.random);
    size_t begin = list.next;
    const size_t end = begin + most;
    for (size_t i = begin; i < end; ++i) {
      std::atomic<void*>& place = places[i % kMostBlocks];
      void* block = place.load(std::memory_order_relaxed);
      if (TCMALLOC_UNLIKELY(leaves(block))) {
        // The group begins later.
        std::atomic<void*>& first = places[begin++ % kMostBlocks];
        Publish(place, first.load(std::memory_order_relaxed));
        first.store(nullptr, std::memory_order_relaxed);
        continue;
      }
      std::atomic<void*>& drawn = places[(begin + draws.Below(i - begin + 1)) % kMostBlocks];
      Publish(place, drawn.load(std::memory_order_relaxed));
      Publish(drawn, block);
    }
    pool.random = draws.random();
    list.next = static_cast<uint8_t>(begin);
    list.first = static_cast<uint8_t>(end);
    list.is_filled = true;
    FindRoom(list);
    return begin != end;
  }
  // Returns how many new objects the next group of them may have: kFirstRun at first, and twice as
  // many each time up to kRun, if there are places. There are as many as a group has if blocks wait
  // that are too few for one, or if those left that it was made of.
  size_t MostInRun(uint8_t part, uint8_t size_class) const {
    const Pool& pool = *pools_[part];
    return std::min<size_t>(pool.runs[size_class], kMostBlocks - pool.lists[size_class].waiting());
  }
  // Makes the group, which is empty, of `count` new objects, MostInRun at most, in the order of
  // addresses but for neighbours.
  void MakeRun(uint8_t part, uint8_t size_class, void* const* objects, size_t count);
  // Takes any block out of a pool. Returns null if it is empty.
  void* TakeAny(uint8_t part);

  // Calls f(block, is_there) as Quarantine::LookAtOthers does.
  template <typename F>
  void LookAtOthers(uint8_t own, F f) const {
    for (size_t p = 1; p <= Quarantine::OwnParts(); ++p) {
      if (p == own) continue;
      for (const auto& places : pools_[p]->places) {
        for (const std::atomic<void*>& place : places) Quarantine::LookAt(place, f);
      }
    }
  }

 private:
  static void Publish(std::atomic<void*>& place, void* block) {
    // Release pairs with the acquire in LookAt.
    place.store(block, std::memory_order_release);
  }
  static void MoveGroup(List& list, size_t places);
  // Lets the queue grow as far as it may and as there are places.
  static size_t FindRoom(List& list) {
    const size_t may = size_t{list.most} - list.waiting();
    const size_t places = kMostBlocks - list.ready() - list.waiting();
    const size_t room = std::min(may, places);
    list.full = static_cast<uint8_t>(list.end + room);
    return room;
  }

  Pool* pools_[UINT8_MAX + 1] = {};  // by part
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HARDENED_BLOCK_POOLS_H_
