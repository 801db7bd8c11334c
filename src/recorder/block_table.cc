// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "recorder/block_table.h"

#include <bit>

#include "base/random.h"

namespace tcmalloc {

// Returns a hash whose upper half depends on the page of an address, and whose lower half numbers
// the pieces of 16 bytes of a page one after the other. Most programs allocate and free neighbours
// one after the other, which then have the same shard and neighbouring buckets.
uint64_t BlockTable::HashOf(uintptr_t address) {
  constexpr int kPageBits = 12;
  constexpr int kPieceBits = 4;
  const uint64_t page = NextRandom(address >> kPageBits);
  const uintptr_t piece = (address & ((uintptr_t{1} << kPageBits) - 1)) >> kPieceBits;
  return (page & ~uint64_t{UINT32_MAX}) | static_cast<uint32_t>(page + piece);
}

// Numbers the buckets of a shard so that one more splits the bucket which has its number but for
// the highest bit.
uint32_t BlockTable::BucketOf(uint64_t hash, uint32_t buckets) {
  const auto low = static_cast<uint32_t>(hash);
  const uint32_t half = std::bit_floor(buckets);
  const uint32_t bucket = low & (2 * half - 1);
  return bucket < buckets ? bucket : bucket - half;
}

// Returns the link that leads to the record of an address, or the one that ends its bucket.
uint32_t* BlockTable::LinkTo(Shard& shard, uint64_t hash, uintptr_t address) {
  uint32_t* link = &shard.buckets[BucketOf(hash, shard.buckets_used)];
  while (*link != 0) {
    Record& record = shard.records[*link];
    if (record.address == address) break;
    link = &record.next;
  }
  return link;
}

// Adds a bucket and moves the records to it that belong there. Does nothing without memory: buckets
// grow longer then.
void BlockTable::AddBucket(Shard& shard) {
  const uint32_t added = shard.buckets_used;
  if (!shard.buckets.EnsureFrom(small_chunks_, added)) return;
  shard.buckets_used = added + 1;
  if (added == 0) return;
  uint32_t* link = &shard.buckets[added - std::bit_floor(added)];
  uint32_t* moved = &shard.buckets[added];
  while (*link != 0) {
    Record& record = shard.records[*link];
    if (BucketOf(HashOf(record.address), added + 1) == added) {
      *moved = *link;
      moved = &record.next;
      *link = record.next;
      *moved = 0;
    } else {
      link = &record.next;
    }
  }
}

// Returns a record that is in no bucket, or 0 if no memory can be had.
uint32_t BlockTable::NewRecord(Shard& shard) {
  if (const uint32_t id = shard.free) {
    shard.free = shard.records[id].next;
    return id;
  }
  const uint32_t id = shard.used + 1;
  if (id > kMostRecords || !shard.records.EnsureFrom(small_chunks_, id)) return 0;
  AddBucket(shard);
  if (shard.buckets_used == 0) return 0;
  shard.used = id;
  return id;
}

void BlockTable::Fill(Shard& shard, Record& record, const RecordedBlock& block) {
  record.address = block.address;
  record.stamp = block.stamp;
  record.stack = block.stack;
  const uint64_t version = record.state.load(std::memory_order_relaxed) & ~(kVersion - 1);
  // Release pairs with the acquire in Read and publishes the block.
  record.state.store(version + kVersion + block.bytes, std::memory_order_release);
  shard.blocks += 1;
  shard.bytes += block.bytes;
}

RecordedBlock BlockTable::Empty(Shard& shard, Record& record) {
  const uint64_t state = record.state.load(std::memory_order_relaxed);
  const RecordedBlock block = Copy(record, state);
  record.state.store((state & ~(kVersion - 1)) + kVersion, std::memory_order_relaxed);
  // Release pairs with the fence in Read: whoever copies anything of the record's next block sees
  // the new version.
  std::atomic_thread_fence(std::memory_order_release);
  shard.blocks -= 1;
  shard.bytes -= block.bytes;
  return block;
}

// Puts a block into the record of another one at the same address. The record is never empty
// meanwhile, because a copy of the process that is made then must have it.
RecordedBlock BlockTable::Replace(Shard& shard, Record& record, const RecordedBlock& block) {
  const uint64_t state = record.state.load(std::memory_order_relaxed);
  const RecordedBlock old = Copy(record, state);
  record.state.store(state + 2 * kVersion, std::memory_order_relaxed);
  // Release pairs with the fence in Read: whoever copies anything of the new block sees the new
  // version.
  std::atomic_thread_fence(std::memory_order_release);
  record.stamp = block.stamp;
  record.stack = block.stack;
  const uint64_t version = state & ~(kVersion - 1);
  // Release pairs with the acquire in Read and publishes the block.
  record.state.store(version + 4 * kVersion + block.bytes, std::memory_order_release);
  shard.bytes += block.bytes - old.bytes;
  return old;
}

std::optional<RecordedBlock> BlockTable::Insert(const RecordedBlock& block) {
  const uint64_t hash = HashOf(block.address);
  Shard& shard = ShardOf(hash);
  const SpinLockHolder holder(shard.lock);
  if (shard.buckets_used != 0) {
    if (const uint32_t old = *LinkTo(shard, hash, block.address)) {
      return Replace(shard, shard.records[old], block);
    }
  }
  const uint32_t id = NewRecord(shard);
  if (id == 0) {
    shard.left_out += 1;
    return std::nullopt;
  }
  uint32_t& head = shard.buckets[BucketOf(hash, shard.buckets_used)];
  Record& record = shard.records[id];
  record.next = head;
  head = id;
  Fill(shard, record, block);
  return std::nullopt;
}

std::optional<RecordedBlock> BlockTable::Remove(uintptr_t address) {
  const uint64_t hash = HashOf(address);
  Shard& shard = ShardOf(hash);
  const SpinLockHolder holder(shard.lock);
  if (shard.buckets_used == 0) return std::nullopt;
  uint32_t* link = LinkTo(shard, hash, address);
  const uint32_t id = *link;
  if (id == 0) return std::nullopt;
  Record& record = shard.records[id];
  const RecordedBlock block = Empty(shard, record);
  *link = record.next;
  record.next = shard.free;
  shard.free = id;
  return block;
}

std::optional<RecordedBlock> BlockTable::Find(uintptr_t address) {
  const uint64_t hash = HashOf(address);
  Shard& shard = ShardOf(hash);
  const SpinLockHolder holder(shard.lock);
  const uint32_t id = shard.buckets_used != 0 ? *LinkTo(shard, hash, address) : 0;
  if (id == 0) return std::nullopt;
  const Record& record = shard.records[id];
  return Copy(record, record.state.load(std::memory_order_relaxed));
}

// Takes one bucket at a time, so that nobody waits long for the lock.
void BlockTable::Clear() {
  for (Shard& shard : shards_) {
    for (uint32_t bucket = 0;; ++bucket) {
      const SpinLockHolder holder(shard.lock);
      if (bucket >= shard.buckets_used) break;
      uint32_t& head = shard.buckets[bucket];
      while (const uint32_t id = head) {
        Record& record = shard.records[id];
        Empty(shard, record);
        head = record.next;
        record.next = shard.free;
        shard.free = id;
      }
    }
  }
}

RecordedBlock BlockTable::Copy(const Record& record, uint64_t state) {
  return {.address = record.address,
          .bytes = state & (kVersion - 1),
          .stamp = record.stamp,
          .stack = record.stack};
}

// Copies a block as it was at one moment. Returns false if the record has none.
bool BlockTable::Read(const Record& record, RecordedBlock* block) {
  // Acquire pairs with the release in Fill.
  uint64_t state = record.state.load(std::memory_order_acquire);
  while ((state & kVersion) != 0) {
    *block = Copy(record, state);
    // Acquire pairs with the fence in Empty.
    std::atomic_thread_fence(std::memory_order_acquire);
    const uint64_t after = record.state.load(std::memory_order_relaxed);
    if (after == state) return true;
    state = after;
  }
  return false;
}

BlockTableStats BlockTable::stats() const {
  BlockTableStats stats;
  stats.mapped_bytes = small_chunks_.mapped_bytes();
  for (const Shard& shard : shards_) {
    stats.blocks += shard.blocks;
    stats.bytes += shard.bytes;
    stats.left_out += shard.left_out;
    stats.mapped_bytes += shard.records.mapped_bytes() + shard.buckets.mapped_bytes();
  }
  return stats;
}

}  // namespace tcmalloc
