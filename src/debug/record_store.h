// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The memory of all records of debug blocks.

#ifndef TCMALLOC_DEBUG_RECORD_STORE_H_
#define TCMALLOC_DEBUG_RECORD_STORE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/check.h"
#include "base/relaxed.h"
#include "base/spin_lock.h"
#include "base/thread_annotations.h"
#include "debug/block_record.h"
#include "debug/own_place.h"
#include "pages/metadata_arena.h"

namespace tcmalloc {

// Tells records from other addresses, because a word in a block that names its record may have been
// overwritten. Each chunk has one place, which another chunk may have; then its records are never
// known here. Begins as zeros. Thread safe, but for Add.
class RecordChunks {
 public:
  static constexpr size_t kChunkBytes = size_t{64} << 10;

  constexpr RecordChunks() = default;
  RecordChunks(const RecordChunks&) = delete;
  RecordChunks& operator=(const RecordChunks&) = delete;

  // Adds a chunk of nothing but records, which stays one for good. One thread at a time.
  void Add(const void* chunk) {
    Relaxed<uintptr_t>& place = places_[PlaceOf(chunk)];
    if (place == 0) place = NumberOf(chunk);
  }

  // Returns true if a record lies at `address`; false if there is none or it is not known. The same
  // for an address in all calls after Add.
  TCMALLOC_ALWAYS_INLINE bool Hold(const void* address) const {
    return places_[PlaceOf(address)] == NumberOf(address) && NumberOf(address) != 0 &&
           reinterpret_cast<uintptr_t>(address) % alignof(BlockRecord) == 0;
  }

 private:
  // Enough for the records of sixty million blocks, if they lie in a row. Few in paranoid builds,
  // so that their programs have blocks whose records are not known here.
  static constexpr size_t kPlaces = kParanoidChecks ? 4 : size_t{1} << 16;

  static uintptr_t NumberOf(const void* address) {
    return reinterpret_cast<uintptr_t>(address) / kChunkBytes;
  }
  static size_t PlaceOf(const void* address) { return NumberOf(address) % kPlaces; }

  Relaxed<uintptr_t> places_[kPlaces];  // the number of a chunk; 0 for none
};

extern constinit RecordChunks record_chunks;

// Records in chunks, which are never unmapped. A thread with a place of its own keeps some
// free ones there. Called inside the slow path only.
//
// Who looks at a record that is not its own, and at the block, has the lock of the record; and who
// makes it free, or forbids the pages of the block, has it meanwhile. So a block that is looked at
// stays readable. Looks in a BriefPath take no lock, because they are at small blocks alone, whose
// pages are never forbidden; a record may be given back meanwhile where two threads free one block.
class RecordStore {
 public:
  constexpr RecordStore() = default;
  RecordStore(const RecordStore&) = delete;
  RecordStore& operator=(const RecordStore&) = delete;

  // Returns a free record, in memory of `arena`, which is always the same; null if there is none.
  BlockRecord* Take(uint32_t place, MetadataArena& arena);
  // Makes a record free that the caller has to itself.
  void Give(uint32_t place, BlockRecord* record);

  // Returns true if there are records at addresses like that one.
  static bool MayHold(const BlockRecord* record) {
    const auto address = reinterpret_cast<uintptr_t>(record);
    return address != 0 && address % alignof(BlockRecord) == 0 && address >> kAddressBits == 0;
  }

  // Returns the lock of a record.
  SpinLock& LockOf(const BlockRecord* record) {
    return locks_[reinterpret_cast<uintptr_t>(record) / kPageBytes % kLocks].lock;
  }

  // A chunk is named by its first record, which is no block's and links the chunks.
  BlockRecord* first_chunk() const {
    // Acquire pairs with the release in AddChunk.
    return chunks_.load(std::memory_order_acquire);
  }
  static BlockRecord* NextChunk(const BlockRecord* chunk) { return chunk->next; }
  // Calls f(record) for the records of a chunk that are not free, under their locks.
  template <typename F>
  void ForEachIn(BlockRecord* chunk, F f) {
    for (size_t page = 0; page < kPagesInChunk; ++page) {
      BlockRecord* records = chunk + page * kRecordsInPage;
      SpinLockHolder holder(LockOf(records));
      for (size_t i = 0; i < kRecordsInPage; ++i) {
        if (records[i].version.state() != BlockState::kFree) f(records[i]);
      }
    }
  }

 private:
  static constexpr size_t kLocks = 64;
  // Of a lock each.
  static constexpr size_t kPageBytes = 4096;
  static constexpr size_t kPagesInChunk = RecordChunks::kChunkBytes / kPageBytes;
  static constexpr size_t kRecordsInPage = kPageBytes / sizeof(BlockRecord);
  // A place gets and gives back that many at a time.
  static constexpr uint32_t kAtOnce = 16;

  struct alignas(64) Lock {
    SpinLock lock{LockRank::kDebugBlocks};
  };
  // Free records, linked by BlockRecord::next.
  struct List {
    BlockRecord* first = nullptr;
    uint32_t count = 0;

    void Push(BlockRecord* record) {
      record->next = first;
      first = record;
      ++count;
    }
    BlockRecord* Pop() {
      BlockRecord* record = first;
      if (record == nullptr) return nullptr;
      first = record->next;
      --count;
      return record;
    }
  };
  struct alignas(64) OwnList {
    List list;
  };

  void Refill(List& list, uint32_t count, MetadataArena& arena);
  BlockRecord* TakeShared(MetadataArena& arena) TCMALLOC_REQUIRES(shared_lock_);
  bool AddChunk(MetadataArena& arena) TCMALLOC_REQUIRES(shared_lock_);

  Lock locks_[kLocks];
  OwnList own_[kOwnPlaces];
  std::atomic<BlockRecord*> chunks_{nullptr};
  SpinLock shared_lock_{LockRank::kDebugQueue};
  List shared_ TCMALLOC_GUARDED_BY(shared_lock_);
  // Records that nobody ever had.
  BlockRecord* fresh_ TCMALLOC_GUARDED_BY(shared_lock_) = nullptr;
  BlockRecord* end_of_fresh_ TCMALLOC_GUARDED_BY(shared_lock_) = nullptr;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_RECORD_STORE_H_
