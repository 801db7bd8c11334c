// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Every block that the program has, found by its address.

#ifndef TCMALLOC_RECORDER_BLOCK_TABLE_H_
#define TCMALLOC_RECORDER_BLOCK_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/relaxed.h"
#include "base/spin_lock.h"
#include "heap_profile/chunked_array.h"
#include "heap_profile/stack_table.h"

namespace tcmalloc {

// The record of a block.
struct RecordedBlock {
  uintptr_t address = 0;
  uint64_t bytes = 0;  // that the program asked for; less than 2^48
  uint64_t stamp = 0;  // a time or a number in a sequence, as the owner of the table likes
  StackId stack = 0;
};

struct BlockTableStats {
  uint64_t blocks = 0;
  uint64_t bytes = 0;     // of all of them
  uint64_t left_out = 0;  // since the start, because no memory could be had
  size_t mapped_bytes = 0;
};

// A hash table in shards. Each shard has records and buckets in arrays that grow, and never move or
// go; a bucket is split for each record that is added, so that no insertion takes long.
//
// Invariant of a shard, under its lock: each of its records is in the bucket of its address, or
// free; a record's version is odd while it is in a bucket.
//
// Thread safe. Insert, Remove, Find and Clear hold the lock of one shard for a few memory accesses,
// or while they map a chunk. They call nothing else meanwhile. They are called in the slow path, so
// that no other thread forks and a child has whole tables, and not by a signal handler that
// interrupted one of them. ForEach and stats take no lock and may be called anywhere.
class BlockTable {
 public:
  constexpr BlockTable() = default;
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;

  // Records a block, whose address is not 0. Returns the block that had its address, if there was
  // one, whose end the table has missed. Leaves the block out if no memory can be had.
  std::optional<RecordedBlock> Insert(const RecordedBlock& block);
  // Removes the block at an address and returns it, or nothing if it is not in the table.
  std::optional<RecordedBlock> Remove(uintptr_t address);
  std::optional<RecordedBlock> Find(uintptr_t address);
  // Removes all blocks. Blocks that are inserted meanwhile may stay.
  void Clear();

  // Calls f(const RecordedBlock&) for each block that is in the table during the whole call, and
  // perhaps for others. A block is given as it was at one moment, or with the stack or the stamp of
  // one that takes its place at that moment.
  template <typename F>
  void ForEach(F f) const {
    for (const Shard& shard : shards_) {
      const uint32_t used = shard.used;
      for (uint32_t i = 1; i <= used; ++i) {
        const Record* record = shard.records.Find(i);
        RecordedBlock block;
        if (record != nullptr && Read(*record, &block)) f(block);
      }
    }
  }

  BlockTableStats stats() const;

 private:
  static constexpr int kShardBits = 6;
  static constexpr int kShards = 1 << kShardBits;
  static constexpr uint32_t kFirstRecords = 16;
  static constexpr uint32_t kFirstBuckets = 16;
  static constexpr uint32_t kMostRecords = uint32_t{1} << 27;
  // The bits of Record::state above the bytes are the version.
  static constexpr uint64_t kVersion = uint64_t{1} << 48;

  struct Record {
    std::atomic<uint64_t> state;
    Relaxed<uintptr_t> address;
    Relaxed<uint64_t> stamp;
    Relaxed<StackId> stack;
    uint32_t next;  // in the bucket or among the free ones, 0 at the end; guarded by the lock
  };
  static_assert(sizeof(Record) == 32);

  // On lines of its own, because threads hold different locks at a time.
  struct alignas(64) Shard {
    SpinLock lock{LockRank::kBlockTable};
    uint32_t buckets_used TCMALLOC_GUARDED_BY(lock) = 0;
    uint32_t free TCMALLOC_GUARDED_BY(lock) = 0;
    Relaxed<uint32_t> used = 0;  // records that were ever in a bucket: 1 to used
    Relaxed<uint64_t> blocks = 0;
    Relaxed<uint64_t> bytes = 0;
    Relaxed<uint64_t> left_out = 0;
    ChunkedArray<Record, kFirstRecords> records;
    ChunkedArray<uint32_t, kFirstBuckets> buckets;
  };

  static uint64_t HashOf(uintptr_t address);
  Shard& ShardOf(uint64_t hash) { return shards_[hash >> (64 - kShardBits)]; }

  static uint32_t BucketOf(uint64_t hash, uint32_t buckets);
  uint32_t NewRecord(Shard& shard) TCMALLOC_REQUIRES(shard.lock);
  void AddBucket(Shard& shard) TCMALLOC_REQUIRES(shard.lock);
  static uint32_t* LinkTo(Shard& shard, uint64_t hash, uintptr_t address)
      TCMALLOC_REQUIRES(shard.lock);
  static void Fill(Shard& shard, Record& record, const RecordedBlock& block)
      TCMALLOC_REQUIRES(shard.lock);
  static RecordedBlock Empty(Shard& shard, Record& record) TCMALLOC_REQUIRES(shard.lock);
  static RecordedBlock Replace(Shard& shard, Record& record, const RecordedBlock& block)
      TCMALLOC_REQUIRES(shard.lock);
  static RecordedBlock Copy(const Record& record, uint64_t state);
  static bool Read(const Record& record, RecordedBlock* block);

  Shard shards_[kShards];
  SmallChunks small_chunks_;  // of the arrays of all shards, most of which a small program leaves
                              // smaller than a page
};

}  // namespace tcmalloc

#endif  // TCMALLOC_RECORDER_BLOCK_TABLE_H_
