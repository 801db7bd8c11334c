// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The blocks of the debug libraries, by their addresses.

#ifndef TCMALLOC_DEBUG_CHECKED_BLOCK_TABLE_H_
#define TCMALLOC_DEBUG_CHECKED_BLOCK_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/relaxed.h"
#include "base/spin_lock.h"
#include "debug/block_record.h"
#include "debug/record_pages.h"
#include "pages/metadata_arena.h"

namespace tcmalloc {

// A hash table in kShards parts, each with a lock, so that threads rarely meet. Records are never
// unmapped and keep their addresses. Called inside the slow path only: there no signal handler
// takes a lock of the same thread, and no fork copies one that is held.
//
// A record may be searched without a lock as well. Such a search may miss a record, because others
// change its chain meanwhile. It never follows anything but links to records.
class CheckedBlockTable {
 public:
  static constexpr size_t kShards = 64;

  constexpr CheckedBlockTable() = default;
  CheckedBlockTable(const CheckedBlockTable&) = delete;
  CheckedBlockTable& operator=(const CheckedBlockTable&) = delete;

  // Adds a copy of `block`, whose address is not in the table, in memory of `arena`, which is
  // always the same. Returns the copy, which is changing until its owner ends that; null if there
  // is no memory.
  [[nodiscard]] BlockRecord* Insert(const BlockRecord& block, MetadataArena& arena);

  // Returns f(record) under the lock of the block that begins at `user`; `record` is null if there
  // is none. It may be read and changed.
  template <typename F>
  auto With(const void* user, F f) {
    const uint64_t hash = HashOf(user);
    Shard& shard = shards_[ShardOf(hash)];
    SpinLockHolder holder(shard.lock);
    return f(Find(shard, hash, user));
  }

  // Returns the first record that FindUnlocked will look at, which is mostly the one that it finds;
  // null if there is none. Brings it into the cache.
  TCMALLOC_ALWAYS_INLINE BlockRecord* BeginFind(const void* user) const {
    const uint64_t hash = HashOf(user);
    // Acquire pairs with the release in Grow: the buckets are mapped, and stay so.
    const Buckets buckets(shards_[ShardOf(hash)].buckets.load(std::memory_order_acquire));
    if (TCMALLOC_UNLIKELY(buckets.count() == 0)) return nullptr;
    BlockRecord* record = buckets.Of(hash);
    __builtin_prefetch(record, 1);
    return record;
  }
  // Returns the record of the block that begins at `user`, whose search began with `record`; null
  // if it was not found, though it may be there. Unless that block is live and stays so, the record
  // may be another block's by now: see BlockVersion.
  TCMALLOC_ALWAYS_INLINE static BlockRecord* FindUnlocked(BlockRecord* record, const void* user) {
    while (record != nullptr && record->user != user) record = record->next;
    return record;
  }

  // Removes a block that is in the table, and returns what was known of it.
  BlockRecord Remove(const void* user);

  // Calls f(record) for the blocks of one part, under its lock.
  template <typename F>
  void ForEachIn(size_t index, F f) {
    Shard& shard = shards_[index];
    SpinLockHolder holder(shard.lock);
    const Buckets buckets = BucketsOf(shard);
    for (size_t i = 0; i < buckets.count(); ++i) {
      for (BlockRecord* record = buckets[i]; record != nullptr; record = record->next) f(*record);
    }
  }

 private:
  static constexpr int kFirstLog2 = 6;  // a page's buckets

  // Blocks that lie next to each other are mostly used one after the other. So those of one page
  // are in one part, in buckets next to each other: the upper bits are those of the page, and the
  // lower ones count the places of the smallest blocks in it.
  static constexpr int kPageLog2 = 12;
  static constexpr int kPlaceLog2 = 6;
  static constexpr int kPlacesLog2 = kPageLog2 - kPlaceLog2;

  static uint64_t HashOf(const void* user) {
    constexpr uint64_t kGolden = 0x9E37'79B9'7F4A'7C15;
    const auto address = reinterpret_cast<uintptr_t>(user);
    const uint64_t of_page = (address >> kPageLog2) * kGolden >> kPlacesLog2 << kPlacesLog2;
    return of_page | (address >> kPlaceLog2 & ((uint64_t{1} << kPlacesLog2) - 1));
  }
  static size_t ShardOf(uint64_t hash) { return hash >> 58; }
  static_assert(kShards == size_t{1} << (64 - 58));

  using Bucket = Relaxed<BlockRecord*>;

  // An array of buckets in one word: the address, of whole pages, and the logarithm of the number.
  class Buckets {
   public:
    explicit Buckets(uintptr_t word) : word_(word) {}
    Buckets(Bucket* first, int log2)
        : word_(reinterpret_cast<uintptr_t>(first) | static_cast<uintptr_t>(log2)) {}

    uintptr_t word() const { return word_; }
    int log2() const { return static_cast<int>(word_ % 64); }
    size_t count() const { return word_ != 0 ? size_t{1} << log2() : 0; }
    size_t bytes() const { return count() * sizeof(Bucket); }
    Bucket& operator[](size_t i) const { return reinterpret_cast<Bucket*>(word_ - word_ % 64)[i]; }
    Bucket& Of(uint64_t hash) const {
      constexpr uint64_t kPlaces = (uint64_t{1} << kPlacesLog2) - 1;
      const uint64_t index = hash >> 24 << kPlacesLog2 | (hash & kPlaces);
      return (*this)[index & ((uint64_t{1} << log2()) - 1)];
    }

   private:
    uintptr_t word_;
  };

  struct alignas(64) Shard {
    SpinLock lock{LockRank::kDebugBlocks};
    std::atomic<uintptr_t> buckets{0};  // a word of Buckets; changed under the lock
    size_t count TCMALLOC_GUARDED_BY(lock) = 0;
    BlockRecord* free TCMALLOC_GUARDED_BY(lock) = nullptr;
  };

  static Buckets BucketsOf(const Shard& shard) {
    return Buckets(shard.buckets.load(std::memory_order_relaxed));
  }
  static BlockRecord* Find(const Shard& shard, uint64_t hash, const void* user)
      TCMALLOC_REQUIRES(shard.lock) {
    const Buckets buckets = BucketsOf(shard);
    if (TCMALLOC_UNLIKELY(buckets.count() == 0)) return nullptr;
    BlockRecord* record = buckets.Of(hash);
    while (record != nullptr && record->user != user) record = record->next;
    return record;
  }

  // A part gets records that many at a time.
  static constexpr size_t kRecordsAtOnce = 8;
  static_assert(RecordPages::kPageBytes % (kRecordsAtOnce * sizeof(BlockRecord)) == 0);

  bool Grow(Shard& shard) TCMALLOC_REQUIRES(shard.lock);
  BlockRecord* NewRecord(Shard& shard, MetadataArena& arena) TCMALLOC_REQUIRES(shard.lock);
  BlockRecord* NewRecords(MetadataArena& arena);

  Shard shards_[kShards];
  SpinLock records_lock_{LockRank::kDebugQueue};
  // Records that no part has yet.
  BlockRecord* next_records_ TCMALLOC_GUARDED_BY(records_lock_) = nullptr;
  BlockRecord* end_of_records_ TCMALLOC_GUARDED_BY(records_lock_) = nullptr;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_CHECKED_BLOCK_TABLE_H_
