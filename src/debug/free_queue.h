// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Blocks that were freed and wait before their memory is used again.

#ifndef TCMALLOC_DEBUG_FREE_QUEUE_H_
#define TCMALLOC_DEBUG_FREE_QUEUE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/spin_lock.h"
#include "base/thread_annotations.h"
#include "debug/block_record.h"
#include "debug/own_place.h"
#include "debug/spare_blocks.h"
#include "pages/metadata_arena.h"
#include "system/mapped_object.h"

namespace tcmalloc {

// First in, first out, in as many parts as threads have places: each has room for kBlocks blocks
// and its share of the bytes. A block that leaves becomes a spare of its part if that has room for
// it, and goes otherwise. Spares may have as many bytes again. Called inside the slow path
// only, by threads with their own places.
class FreeQueue {
 public:
  static constexpr size_t kBlocks = 1024;
  // The entries of each part, mapped for its first block. Apart, because it begins as zeros and
  // takes no room in the library's file. Given to each call that needs it: a reference would be a
  // word that the dynamic linker writes in every process, and hardly any has this queue.
  class Storage {
   public:
    constexpr Storage() = default;

   private:
    friend class FreeQueue;
    struct Entries {
      WaitingBlock blocks[kBlocks];
    };

    // Returns null if nothing is mapped.
    TCMALLOC_ALWAYS_INLINE WaitingBlock* Of(uint32_t place) const {
      Entries* entries = entries_[place].get();
      return TCMALLOC_LIKELY(entries != nullptr) ? entries->blocks : nullptr;
    }

    MappedObject<Entries> entries_[kPlaces];
  };

  constexpr FreeQueue() = default;
  FreeQueue(const FreeQueue&) = delete;
  FreeQueue& operator=(const FreeQueue&) = delete;

  // Adds a block to the part of that place. Returns one that has to go, for the number of blocks
  // or, as PopExcess, for the bytes; null if PopExcess would return null. Returns `block` if there
  // is no memory for the part. The places of spares are in memory of `arena`, which is always the
  // same.
  BlockRecord* Push(Storage& storage, uint32_t place, BlockRecord* block, size_t limit,
                    MetadataArena& arena);
  // Adds a block to the part of a thread's own place, if take() returns true. Does nothing, and
  // returns false, if Push would return a block or need memory, or if take() returns false.
  template <typename F>
  TCMALLOC_ALWAYS_INLINE bool PushOwn(Storage& storage, uint32_t place, BlockRecord* block,
                                      size_t limit, F take) TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
    Part& part = *OpaqueToOptimizer(&parts_[place]);
    WaitingBlock* entries = storage.Of(place);
    if (TCMALLOC_UNLIKELY(entries == nullptr)) return false;
    const size_t share = ShareOf(limit);
    const WaitingBlock last = WaitingBlock::Of(block);
    size_t after = part.bytes.load(std::memory_order_relaxed) + last.bytes;
    if (TCMALLOC_LIKELY(part.count == kBlocks) || after > share) {
      const WaitingBlock first = entries[part.first];
      after -= first.bytes;
      if (TCMALLOC_UNLIKELY(part.count == 0 || after > share ||
                            !part.spares.MakePlace(first, share) || !take())) {
        return false;
      }
      DropFirst(part, entries);
      part.spares.PutInPlace(first);
      part.spare_bytes.store(part.spares.bytes(), std::memory_order_relaxed);
    } else if (TCMALLOC_UNLIKELY(!take())) {
      return false;
    }
    entries[(part.first + part.count++) % kBlocks] = last;
    part.bytes.store(after, std::memory_order_relaxed);
    return true;
  }
  // Returns true if the part of a thread's own place has a spare of that size class.
  TCMALLOC_ALWAYS_INLINE bool HasOwnSpare(uint32_t place,
                                          uint8_t size_class) TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
    return OpaqueToOptimizer(&parts_[place])->spares.Has(size_class);
  }
  // Takes a spare out of the part of a thread's own place, which has one of that size class.
  TCMALLOC_ALWAYS_INLINE BlockRecord* TakeOwnSpare(uint32_t place, uint8_t size_class)
      TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
    Part& part = *OpaqueToOptimizer(&parts_[place]);
    BlockRecord* block = part.spares.TakeHeld(size_class);
    part.spare_bytes.store(part.spares.bytes(), std::memory_order_relaxed);
    return block;
  }
  // Takes the first block out of the part if all parts together may hold no more than `limit` bytes
  // and this one holds more than its share, until one has to go. Returns null otherwise.
  BlockRecord* PopExcess(const Storage& storage, uint32_t place, size_t limit,
                         MetadataArena& arena);
  // Takes the first block out of the part, and returns it if it cannot become a spare. Returns null
  // otherwise.
  BlockRecord* PopFirst(const Storage& storage, uint32_t place, size_t limit, MetadataArena& arena);
  // Takes a spare of that size class out of the part; null if there is none.
  BlockRecord* TakeSpare(uint32_t place, uint8_t size_class);
  // Takes a spare out of the part or, if there is none, the first block; null if it is empty.
  BlockRecord* TakeAny(const Storage& storage, uint32_t place);

  // Returns the bytes in all parts, with those of spares.
  size_t bytes() const;

 private:
  struct alignas(64) Part {
    SpinLock lock{LockRank::kDebugQueue};  // of one that is shared
    uint32_t first TCMALLOC_GUARDED_BY(lock) = 0;
    uint32_t count TCMALLOC_GUARDED_BY(lock) = 0;
    // Written by who has the part.
    std::atomic<size_t> bytes{0};  // without the spares
    std::atomic<size_t> spare_bytes{0};
    bool used TCMALLOC_GUARDED_BY(lock) = false;
    SpareBlocks spares TCMALLOC_GUARDED_BY(lock);
  };

  // Has a part for its scope, by the lock if others use the part.
  class TCMALLOC_SCOPED_CAPABILITY PartHolder {
   public:
    TCMALLOC_ALWAYS_INLINE PartHolder(uint32_t place, Part& part)
        TCMALLOC_ACQUIRE(part.lock) TCMALLOC_NO_THREAD_SAFETY_ANALYSIS
        : lock_(TCMALLOC_LIKELY(IsOwnPlace(place)) ? nullptr : &part.lock) {
      if (TCMALLOC_UNLIKELY(lock_ != nullptr)) lock_->Lock();
    }
    TCMALLOC_ALWAYS_INLINE ~PartHolder() TCMALLOC_RELEASE() TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
      if (TCMALLOC_UNLIKELY(lock_ != nullptr)) lock_->Unlock();
    }
    PartHolder(const PartHolder&) = delete;
    PartHolder& operator=(const PartHolder&) = delete;

   private:
    SpinLock* lock_;
  };

  // Returns the bytes that each part may hold if all together may hold `limit`. Few programs have
  // more than one thread that frees; the division is for the others.
  TCMALLOC_ALWAYS_INLINE size_t ShareOf(size_t limit) const {
    const size_t parts = used_parts_.load(std::memory_order_relaxed);
    return TCMALLOC_LIKELY(parts <= 1) ? limit : limit / parts;
  }
  TCMALLOC_COLD void NoteUsed(Part& part) TCMALLOC_REQUIRES(part.lock);
  // Takes the first of `entries`, which are those of the part. Returns it if it has to go, because
  // it cannot become a spare. The part's share of the bytes is `share`.
  static BlockRecord* Pop(Part& part, const WaitingBlock* entries, size_t share,
                          MetadataArena& arena) TCMALLOC_REQUIRES(part.lock);
  // Takes the first of `entries`, which are those of the part.
  static WaitingBlock TakeFirst(Part& part, const WaitingBlock* entries)
      TCMALLOC_REQUIRES(part.lock);
  // Takes the first of `entries` out, and brings what the next calls, and the blocks that get the
  // memory, will look at into the cache. A block that has waited long is in none.
  TCMALLOC_ALWAYS_INLINE static void DropFirst(Part& part, const WaitingBlock* entries)
      TCMALLOC_REQUIRES(part.lock) {
    constexpr uint32_t kRecordsAhead = 8;
    constexpr uint32_t kBlocksAhead = 3;
    part.first = (part.first + 1) % kBlocks;
    --part.count;
    if (TCMALLOC_UNLIKELY(part.count <= kRecordsAhead)) return;
    __builtin_prefetch(entries[(part.first + kRecordsAhead) % kBlocks].block, 1);
    const BlockRecord* block = entries[(part.first + kBlocksAhead) % kBlocks].block;
    __builtin_prefetch(block->user - kSealBytes, 1);
    __builtin_prefetch(block->user + kSealBytes * 3, 1);
  }
  static BlockRecord* FindExcess(Part& part, const WaitingBlock* entries, size_t share,
                                 MetadataArena& arena) TCMALLOC_REQUIRES(part.lock);

  std::atomic<uint32_t> used_parts_{0};
  // The entries of a part in the storage are guarded as it is.
  Part parts_[kPlaces];
};

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_FREE_QUEUE_H_
