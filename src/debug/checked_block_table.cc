// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/checked_block_table.h"

#include "system/own_memory.h"

namespace tcmalloc {

void CheckedBlockTable::Insert(BlockRecord* record) {
  const uint64_t hash = HashOf(record->user);
  Shard& shard = shards_[ShardOf(hash)];
  SpinLockHolder holder(shard.lock);
  if (shard.buckets == nullptr || shard.count >> shard.log2 != 0) Grow(shard);
  Relaxed<BlockRecord*>& bucket = shard.Bucket(hash);
  record->next = bucket;
  bucket = record;
  ++shard.count;
}

BlockRecord* CheckedBlockTable::Find(const void* user) {
  const uint64_t hash = HashOf(user);
  Shard& shard = shards_[ShardOf(hash)];
  SpinLockHolder holder(shard.lock);
  BlockRecord* record = shard.Bucket(hash);
  while (record != nullptr && record->user != user) record = record->next;
  return record;
}

void CheckedBlockTable::Remove(BlockRecord* record) {
  const uint64_t hash = HashOf(record->user);
  Shard& shard = shards_[ShardOf(hash)];
  SpinLockHolder holder(shard.lock);
  Relaxed<BlockRecord*>* link = &shard.Bucket(hash);
  while (*link != record) link = &static_cast<BlockRecord*>(*link)->next;
  *link = record->next;
  --shard.count;
}

// Doubles the buckets of a part, or makes the first ones. The table becomes slower, but stays
// right, where there is no memory.
void CheckedBlockTable::Grow(Shard& shard) {
  const bool has_buckets = shard.buckets != nullptr;
  const int log2 = has_buckets ? shard.log2 + 1 : kFirstLog2;
  void* memory = MapZeroed(sizeof(*shard.buckets) << log2);
  if (memory == nullptr) return;
  Relaxed<BlockRecord*>* old = has_buckets ? shard.buckets : &shard.only;
  const size_t old_count = has_buckets ? size_t{1} << shard.log2 : 1;
  shard.buckets = static_cast<Relaxed<BlockRecord*>*>(memory);
  shard.log2 = log2;
  for (size_t i = 0; i < old_count; ++i) {
    while (BlockRecord* record = old[i]) {
      old[i] = record->next;
      Relaxed<BlockRecord*>& bucket = shard.Bucket(HashOf(record->user));
      record->next = bucket;
      bucket = record;
    }
  }
  if (has_buckets) UnmapZeroed(old, old_count * sizeof(*old));
}

}  // namespace tcmalloc
