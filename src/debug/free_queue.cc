// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/free_queue.h"

#include "debug/fences.h"

namespace tcmalloc {
namespace {

// Changes a counter that one thread at a time writes.
void Add(std::atomic<size_t>& counter, size_t bytes) {
  counter.store(counter.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
}

}  // namespace

TCMALLOC_ALWAYS_INLINE WaitingBlock FreeQueue::TakeFirst(Part& part, const WaitingBlock* entries) {
  const WaitingBlock first = entries[part.first];
  DropFirst(part, entries);
  Add(part.bytes, 0 - first.bytes);
  return first;
}

TCMALLOC_ALWAYS_INLINE BlockRecord* FreeQueue::Pop(Part& part, const WaitingBlock* entries,
                                                   size_t share, MetadataArena& arena) {
  const WaitingBlock first = TakeFirst(part, entries);
  if (TCMALLOC_UNLIKELY(!part.spares.Put(first, share, arena))) return first.block;
  part.spare_bytes.store(part.spares.bytes(), std::memory_order_relaxed);
  return nullptr;
}

void FreeQueue::NoteUsed(Part& part) {
  part.used = true;
  used_parts_.fetch_add(1, std::memory_order_relaxed);
}

BlockRecord* FreeQueue::Push(Storage& storage, uint32_t place, BlockRecord* block, size_t limit,
                             MetadataArena& arena) {
  Part& part = parts_[place];
  Storage::Entries* mapped = storage.entries_[place].GetOrMap();
  if (TCMALLOC_UNLIKELY(mapped == nullptr)) return block;
  WaitingBlock* entries = mapped->blocks;
  const WaitingBlock last = WaitingBlock::Of(block);
  PartHolder holder(place, part);
  if (TCMALLOC_UNLIKELY(!part.used)) NoteUsed(part);
  const size_t share = ShareOf(limit);
  BlockRecord* victim = nullptr;
  if (TCMALLOC_LIKELY(part.count == kBlocks)) victim = Pop(part, entries, share, arena);
  entries[(part.first + part.count) % kBlocks] = last;
  ++part.count;
  Add(part.bytes, last.bytes);
  return TCMALLOC_LIKELY(victim == nullptr) ? FindExcess(part, entries, share, arena) : victim;
}

BlockRecord* FreeQueue::PopExcess(const Storage& storage, uint32_t place, size_t limit,
                                  MetadataArena& arena) {
  Part& part = parts_[place];
  PartHolder holder(place, part);
  return FindExcess(part, storage.Of(place), ShareOf(limit), arena);
}

BlockRecord* FreeQueue::PopFirst(const Storage& storage, uint32_t place, size_t limit,
                                 MetadataArena& arena) {
  Part& part = parts_[place];
  PartHolder holder(place, part);
  return part.count > 0 ? Pop(part, storage.Of(place), ShareOf(limit), arena) : nullptr;
}

// Makes spares of the first blocks while there are too many bytes, until one has to go, which it
// returns.
TCMALLOC_ALWAYS_INLINE BlockRecord* FreeQueue::FindExcess(Part& part, const WaitingBlock* entries,
                                                          size_t share, MetadataArena& arena) {
  BlockRecord* victim = nullptr;
  while (TCMALLOC_UNLIKELY(part.bytes.load(std::memory_order_relaxed) > share) &&
         victim == nullptr && part.count > 0) {
    victim = Pop(part, entries, share, arena);
  }
  return victim;
}

BlockRecord* FreeQueue::TakeSpare(uint32_t place, uint8_t size_class) {
  Part& part = parts_[place];
  PartHolder holder(place, part);
  BlockRecord* block = part.spares.Take(size_class);
  part.spare_bytes.store(part.spares.bytes(), std::memory_order_relaxed);
  return block;
}

BlockRecord* FreeQueue::TakeAny(const Storage& storage, uint32_t place) {
  Part& part = parts_[place];
  PartHolder holder(place, part);
  if (BlockRecord* spare = part.spares.TakeAny()) {
    part.spare_bytes.store(part.spares.bytes(), std::memory_order_relaxed);
    return spare;
  }
  return part.count > 0 ? TakeFirst(part, storage.Of(place)).block : nullptr;
}

size_t FreeQueue::bytes() const {
  size_t bytes = 0;
  for (const Part& part : parts_) {
    bytes += part.bytes.load(std::memory_order_relaxed);
    bytes += part.spare_bytes.load(std::memory_order_relaxed);
  }
  return bytes;
}

}  // namespace tcmalloc
