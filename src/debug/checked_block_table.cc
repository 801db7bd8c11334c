// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/checked_block_table.h"

#include <sys/mman.h>

#include "base/check.h"
#include "system/system_calls.h"

namespace tcmalloc {

constinit RecordPages record_pages;

BlockRecord* CheckedBlockTable::Insert(const BlockRecord& block, MetadataArena& arena) {
  const uint64_t hash = HashOf(block.user);
  Shard& shard = shards_[ShardOf(hash)];
  SpinLockHolder holder(shard.lock);
  const size_t buckets = BucketsOf(shard).count();
  if (2 * shard.count >= buckets && !Grow(shard) && buckets == 0) return nullptr;
  BlockRecord* record = NewRecord(shard, arena);
  if (record == nullptr) return nullptr;
  Bucket& bucket = BucketsOf(shard).Of(hash);
  // The version of the record goes on, so that whoever searches without the lock and finds it live
  // finds the new address as well.
  record->version.BeginChange();
  BlockRecord added = block;
  added.next = bucket;
  added.version = record->version;
  *record = added;
  bucket = record;
  ++shard.count;
  return record;
}

BlockRecord CheckedBlockTable::Remove(const void* user) {
  const uint64_t hash = HashOf(user);
  Shard& shard = shards_[ShardOf(hash)];
  SpinLockHolder holder(shard.lock);
  Bucket& bucket = BucketsOf(shard).Of(hash);
  BlockRecord* record = bucket;
  if (record->user == user) {
    bucket = record->next;
  } else {
    BlockRecord* previous = nullptr;
    while (record->user != user) {
      previous = record;
      record = record->next;
    }
    previous->next = record->next;
  }
  const BlockRecord removed = *record;
  record->next = shard.free;
  shard.free = record;
  --shard.count;
  return removed;
}

// Doubles the buckets of a part. The table becomes slower, but stays right, where there is no
// memory. The addresses of the old ones stay mapped, without memory, because BeginFind may
// still read them; they are as many as the new ones.
bool CheckedBlockTable::Grow(Shard& shard) {
  const Buckets old = BucketsOf(shard);
  const int log2 = old.count() == 0 ? kFirstLog2 : old.log2() + 1;
  void* memory = system_calls.mmap(nullptr, sizeof(Bucket) << log2, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  const Buckets grown(static_cast<Bucket*>(memory), log2);
  for (size_t i = 0; i < old.count(); ++i) {
    while (BlockRecord* record = old[i]) {
      old[i] = record->next;
      Bucket& bucket = grown.Of(HashOf(record->user));
      record->next = bucket;
      bucket = record;
    }
  }
  // Release pairs with the acquire in BeginFind.
  shard.buckets.store(grown.word(), std::memory_order_release);
  if (old.count() != 0) system_calls.madvise(&old[0], old.bytes(), MADV_DONTNEED);
  return true;
}

// Returns kRecordsAtOnce records that nobody ever had, or null.
BlockRecord* CheckedBlockTable::NewRecords(MetadataArena& arena) {
  constexpr size_t kPagesAtOnce = 16;
  constexpr size_t kBytes = kPagesAtOnce * RecordPages::kPageBytes;
  SpinLockHolder holder(records_lock_);
  if (next_records_ == end_of_records_) {
    auto* pages = static_cast<char*>(arena.Allocate(kBytes, RecordPages::kPageBytes));
    if (pages == nullptr) return nullptr;
    for (size_t i = 0; i < kPagesAtOnce; ++i) record_pages.Add(pages + i * RecordPages::kPageBytes);
    next_records_ = reinterpret_cast<BlockRecord*>(pages);
    end_of_records_ = next_records_ + kBytes / sizeof(BlockRecord);
  }
  BlockRecord* records = next_records_;
  next_records_ += kRecordsAtOnce;
  return records;
}

BlockRecord* CheckedBlockTable::NewRecord(Shard& shard, MetadataArena& arena) {
  if (shard.free == nullptr) {
    BlockRecord* records = NewRecords(arena);
    if (records == nullptr) return nullptr;
    for (size_t i = kRecordsAtOnce; i-- > 0;) {
      records[i].next = shard.free;
      shard.free = &records[i];
    }
  }
  BlockRecord* record = shard.free;
  shard.free = record->next;
  return record;
}

}  // namespace tcmalloc
