// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The blocks of the debug libraries that do not name their records, by their addresses.

#ifndef TCMALLOC_DEBUG_CHECKED_BLOCK_TABLE_H_
#define TCMALLOC_DEBUG_CHECKED_BLOCK_TABLE_H_

#include <cstddef>
#include <cstdint>

#include "base/relaxed.h"
#include "base/spin_lock.h"
#include "base/thread_annotations.h"
#include "debug/block_record.h"

namespace tcmalloc {

// A hash table in kShards parts, each with a lock, so that threads rarely meet. Called inside the
// slow path only: there no signal handler takes a lock of the same thread, and no fork copies one
// that is held.
class CheckedBlockTable {
 public:
  static constexpr size_t kShards = 64;

  constexpr CheckedBlockTable() = default;
  CheckedBlockTable(const CheckedBlockTable&) = delete;
  CheckedBlockTable& operator=(const CheckedBlockTable&) = delete;

  // Adds a record whose address is not in the table. Needs no memory: a program that has none left
  // but what it freed gets that again.
  void Insert(BlockRecord* record);
  // Returns the record of the block that begins at `user`, or null.
  BlockRecord* Find(const void* user);
  // Removes a record that is in the table.
  void Remove(BlockRecord* record);

 private:
  static constexpr int kFirstLog2 = 9;  // a page of buckets

  static uint64_t HashOf(const void* user) {
    constexpr uint64_t kGolden = 0x9E37'79B9'7F4A'7C15;
    return (reinterpret_cast<uintptr_t>(user) >> 4) * kGolden;
  }
  static size_t ShardOf(uint64_t hash) { return hash >> 58; }
  static_assert(kShards == size_t{1} << (64 - 58));

  struct alignas(64) Shard {
    SpinLock lock{LockRank::kDebugBlocks};
    int log2 TCMALLOC_GUARDED_BY(lock) = 0;  // of the number of buckets, if there are any
    size_t count TCMALLOC_GUARDED_BY(lock) = 0;
    Relaxed<BlockRecord*>* buckets TCMALLOC_GUARDED_BY(lock) = nullptr;
    Relaxed<BlockRecord*> only TCMALLOC_GUARDED_BY(lock) = nullptr;  // bucket while there are none

    Relaxed<BlockRecord*>& Bucket(uint64_t hash) TCMALLOC_REQUIRES(lock) {
      return buckets != nullptr ? buckets[hash >> 16 & ((uint64_t{1} << log2) - 1)] : only;
    }
  };

  static void Grow(Shard& shard) TCMALLOC_REQUIRES(shard.lock);

  Shard shards_[kShards];
};

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_CHECKED_BLOCK_TABLE_H_
