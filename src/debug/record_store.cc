// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/record_store.h"

namespace tcmalloc {

constinit RecordChunks record_chunks;

BlockRecord* RecordStore::Take(uint32_t place, MetadataArena& arena) {
  if (TCMALLOC_UNLIKELY(!IsOwnPlace(place))) {
    List one;
    Refill(one, 1, arena);
    return one.Pop();
  }
  List& own = own_[place].list;
  if (TCMALLOC_UNLIKELY(own.count == 0)) Refill(own, kAtOnce, arena);
  return own.Pop();
}

void RecordStore::Give(uint32_t place, BlockRecord* record) {
  {
    SpinLockHolder holder(LockOf(record));
    record->version.BeginChange();
    record->user = nullptr;
    record->version.EndChange(BlockState::kFree);
  }
  List one;
  List& list = TCMALLOC_LIKELY(IsOwnPlace(place)) ? own_[place].list : one;
  list.Push(record);
  const uint32_t most = &list == &one ? 0 : 2 * kAtOnce;
  if (TCMALLOC_LIKELY(list.count <= most)) return;
  SpinLockHolder holder(shared_lock_);
  while (list.count > most / 2) shared_.Push(list.Pop());
}

// Adds up to `count` records to a list.
void RecordStore::Refill(List& list, uint32_t count, MetadataArena& arena) {
  SpinLockHolder holder(shared_lock_);
  for (uint32_t i = 0; i < count; ++i) {
    BlockRecord* record = TakeShared(arena);
    if (record == nullptr) return;
    list.Push(record);
  }
}

BlockRecord* RecordStore::TakeShared(MetadataArena& arena) {
  if (BlockRecord* record = shared_.Pop()) return record;
  if (fresh_ == end_of_fresh_ && !AddChunk(arena)) return nullptr;
  return fresh_++;
}

bool RecordStore::AddChunk(MetadataArena& arena) {
  constexpr size_t kBytes = RecordChunks::kChunkBytes;
  auto* chunk = static_cast<BlockRecord*>(arena.Allocate(kBytes, kBytes));
  if (chunk == nullptr) return false;
  record_chunks.Add(chunk);
  chunk->next = chunks_.load(std::memory_order_relaxed);
  // Release pairs with the acquire in first_chunk.
  chunks_.store(chunk, std::memory_order_release);
  fresh_ = chunk + 1;
  end_of_fresh_ = chunk + kPagesInChunk * kRecordsInPage;
  return true;
}

}  // namespace tcmalloc
