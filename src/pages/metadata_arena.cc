// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "pages/metadata_arena.h"

#include <algorithm>

namespace tcmalloc {

void* MetadataArena::Draw(size_t bytes) {
  void* memory = source_(bytes);
  if (memory != nullptr) stats_.mapped_bytes += bytes;
  return memory;
}

// Makes a chunk with room for this request the one that records come from.
bool MetadataArena::TakeChunk(size_t bytes, size_t alignment) {
  if (alignment > kSourceAlignment) bytes += alignment;
  size_t chunk = bytes > kChunkBytes ? AlignUp(bytes, kChunkBytes) : kChunkBytes;
  void* memory = Draw(chunk);
  if (memory == nullptr) {
    // Asks for no more than this request needs, which may still be there near the end of address
    // space.
    chunk = AlignUp(bytes, kLeastChunkBytes);
    memory = Draw(chunk);
  }
  if (memory == nullptr) {
    ++refusals_;
    return false;
  }
  refusals_ = 0;
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  // A chunk that follows the last one directly leaves no rest of that one unused.
  if (begin != end_ || next_ == 0) next_ = begin;
  end_ = begin + chunk;
  return true;
}

void* MetadataArena::TakeNext(size_t bytes, size_t alignment) {
  const uintptr_t begin = AlignUp(next_, alignment);
  // The rest of a page that is left is resident with it.
  const uintptr_t end_of_page = AlignUp(next_, kSourceAlignment);
  if (begin > end_of_page) stats_.used_bytes += end_of_page - next_;
  next_ = begin + bytes;
  stats_.used_bytes += bytes;
  return reinterpret_cast<void*>(begin);
}

void* MetadataArena::AllocateLeaving(Left left, size_t bytes, size_t alignment) {
  SpinLockHolder holder(lock_);
  const bool has_room = HasRoom(bytes, alignment) || (MayAsk() && TakeChunk(bytes, alignment));
  return TCMALLOC_LIKELY(has_room) ? TakeNext(bytes, alignment)
                                   : AllocateRefused(left, bytes, alignment);
}

// Does this where the source gives nothing, or was not asked. Who cannot do without asks once more.
void* MetadataArena::AllocateRefused(Left left, size_t bytes, size_t alignment) {
  if (!IsReserved(left, bytes + alignment)) {
    const bool may_have_more = left == Left::kNothing && refusals_ >= kManyRefusals;
    return may_have_more && TakeChunk(bytes, alignment) ? TakeNext(bytes, alignment) : nullptr;
  }
  if (left == Left::kNothing) needed_bytes_ -= std::min(needed_bytes_, bytes);
  return TakeReserved(bytes, alignment);
}

// Looks at the two newest regions alone.
bool MetadataArena::IsReserved(Left left, size_t bytes) const {
  if (left == Left::kReserve) return false;
  if (left == Left::kNeeded && reserved_bytes_ < needed_bytes_ + bytes) return false;
  const Region* older = reserve_.next;
  return reserve_.end - reserve_.begin >= bytes ||
         (older != nullptr && older->end - older->begin >= bytes);
}

void MetadataArena::DropNewestRegion() {
  reserved_bytes_ -= reserve_.end - reserve_.begin;
  Region* const older = reserve_.next;
  reserve_ = {};
  if (older == nullptr) return;
  reserve_ = *older;
  *older = {};
}

// Takes from the end of the newest region, because at its begin more may be added.
void* MetadataArena::TakeReserved(size_t bytes, size_t alignment) {
  if (reserve_.end - reserve_.begin < bytes + alignment) DropNewestRegion();
  const uintptr_t begin = AlignDown(reserve_.end - bytes, alignment);
  reserved_bytes_ -= reserve_.end - begin;
  reserve_.end = begin;
  stats_.used_bytes += bytes;
  if (reserve_.end - reserve_.begin < sizeof(Region)) DropNewestRegion();
  return reinterpret_cast<void*>(begin);
}

void MetadataArena::Reserve(size_t bytes, size_t spare) {
  SpinLockHolder holder(lock_);
  needed_bytes_ = bytes;
  if (reserved_bytes_ >= bytes + spare) return;
  const size_t more = AlignUp(bytes + spare - reserved_bytes_, kLeastChunkBytes);
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
