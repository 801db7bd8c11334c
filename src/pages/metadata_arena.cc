// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "pages/metadata_arena.h"

namespace tcmalloc {

void* MetadataArena::Draw(size_t bytes) {
  void* memory = source_(bytes);
  if (memory != nullptr) stats_.mapped_bytes += bytes;
  return memory;
}

// Makes a chunk of at least `bytes` bytes the one that records come from.
bool MetadataArena::TakeChunk(size_t bytes) {
  size_t chunk = bytes > kChunkBytes ? AlignUp(bytes, kChunkBytes) : kChunkBytes;
  void* memory = Draw(chunk);
  if (memory == nullptr) {
    // Asks for no more than this request needs, which may still be there near the end of address
    // space.
    chunk = AlignUp(bytes, kLeastChunkBytes);
    memory = Draw(chunk);
  }
  if (memory == nullptr) return TakeReserved(bytes);
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  // A chunk that follows the last one directly leaves no rest of that one unused.
  if (begin != end_ || next_ == 0) next_ = begin;
  end_ = begin + chunk;
  return true;
}

// Does this with the newest of the reserved regions.
bool MetadataArena::TakeReserved(size_t bytes) {
  if (reserve_.end - reserve_.begin < bytes) return false;
  next_ = reserve_.begin;
  end_ = reserve_.end;
  reserved_bytes_ -= end_ - next_;
  auto* older = reserve_.next;
  reserve_ = {};
  if (older == nullptr) return true;
  reserve_ = *older;
  *older = {};
  return true;
}

void* MetadataArena::Allocate(size_t bytes, size_t alignment) {
  SpinLockHolder holder(lock_);
  if (next_ == 0 || AlignUp(next_, alignment) + bytes > end_) {
    if (!TakeChunk(bytes)) return nullptr;
  }
  const uintptr_t begin = AlignUp(next_, alignment);
  next_ = begin + bytes;
  stats_.used_bytes += bytes;
  return reinterpret_cast<void*>(begin);
}

void MetadataArena::Reserve(size_t bytes) {
  SpinLockHolder holder(lock_);
  const size_t have = reserved_bytes_ + (end_ - next_);
  if (have >= bytes) return;
  const size_t more = AlignUp(bytes - have, kLeastChunkBytes);
  const auto begin = reinterpret_cast<uintptr_t>(Draw(more));
  if (begin == 0) return;
  reserved_bytes_ += more;
  // As a rule mappings come one below the other.
  if (begin + more == reserve_.begin) {
    reserve_.begin = begin;
    return;
  }
  Region* older = nullptr;
  if (reserve_.begin != 0) older = new (reinterpret_cast<void*>(reserve_.begin)) Region(reserve_);
  reserve_ = {begin, begin + more, older};
}

MetadataStats MetadataArena::stats() {
  SpinLockHolder holder(lock_);
  return stats_;
}

}  // namespace tcmalloc
