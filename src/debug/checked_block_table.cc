// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/checked_block_table.h"

#include <sys/mman.h>

#include "base/check.h"
#include "system/system_calls.h"

namespace tcmalloc {

bool CheckedBlockTable::Insert(const BlockRecord& block, MetadataArena& arena) {
  const uint64_t hash = HashOf(block.user);
  Shard& shard = shards_[ShardOf(hash)];
  SpinLockHolder holder(shard.lock);
  if (2 * shard.count >= BucketsOf(shard) && !Grow(shard) && shard.buckets == nullptr) return false;
  BlockRecord* record = NewRecord(shard, arena);
  if (record == nullptr) return false;
  BlockRecord*& bucket = BucketOf(shard, hash);
  *record = block;
  record->next = bucket;
  bucket = record;
  ++shard.count;
  return true;
}

BlockRecord CheckedBlockTable::Remove(const void* user) {
  const uint64_t hash = HashOf(user);
  Shard& shard = shards_[ShardOf(hash)];
  SpinLockHolder holder(shard.lock);
  BlockRecord** link = &BucketOf(shard, hash);
  while ((*link)->user != user) link = &(*link)->next;
  BlockRecord* record = *link;
  *link = record->next;
  const BlockRecord removed = *record;
  record->next = shard.free;
  shard.free = record;
  --shard.count;
  return removed;
}

// Doubles the buckets of a part. The table becomes slower, but stays right, where there is no
// memory.
bool CheckedBlockTable::Grow(Shard& shard) {
  const int log2 = shard.buckets == nullptr ? kFirstLog2 : shard.log2 + 1;
  const size_t bytes = sizeof(BlockRecord*) << log2;
  void* memory =
      system_calls.mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  BlockRecord** old = shard.buckets;
  const size_t old_count = BucketsOf(shard);
  shard.buckets = static_cast<BlockRecord**>(memory);
  shard.log2 = log2;
  for (size_t i = 0; i < old_count; ++i) {
    while (BlockRecord* record = old[i]) {
      old[i] = record->next;
      BlockRecord*& bucket = BucketOf(shard, HashOf(record->user));
      record->next = bucket;
      bucket = record;
    }
  }
  if (old != nullptr) system_calls.munmap(old, old_count * sizeof(BlockRecord*));
  return true;
}

BlockRecord* CheckedBlockTable::NewRecord(Shard& shard, MetadataArena& arena) {
  if (shard.free == nullptr) {
    return static_cast<BlockRecord*>(arena.Allocate(sizeof(BlockRecord), alignof(BlockRecord)));
  }
  BlockRecord* record = shard.free;
  shard.free = record->next;
  return record;
}

}  // namespace tcmalloc
