// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "pages/metadata_arena.h"

namespace tcmalloc {

void* MetadataArena::Allocate(size_t bytes, size_t alignment) {
  SpinLockHolder holder(lock_);
  uintptr_t begin = AlignUp(next_, alignment);
  if (begin + bytes > end_ || next_ == 0) {
    size_t chunk = bytes > kChunkBytes ? AlignUp(bytes, kChunkBytes) : kChunkBytes;
    void* memory = source_(chunk);
    if (memory == nullptr) {
      // Asks for no more than this request needs, which may still be there near the end of address
      // space.
      chunk = AlignUp(bytes, kLeastChunkBytes);
      memory = source_(chunk);
    }
    if (memory == nullptr) return nullptr;
    begin = reinterpret_cast<uintptr_t>(memory);
    // A chunk that follows the last one directly leaves no rest of that one unused.
    if (begin == end_ && next_ != 0) begin = AlignUp(next_, alignment);
    end_ = reinterpret_cast<uintptr_t>(memory) + chunk;
    stats_.mapped_bytes += chunk;
  }
  next_ = begin + bytes;
  stats_.used_bytes += bytes;
  return reinterpret_cast<void*>(begin);
}

MetadataStats MetadataArena::stats() {
  SpinLockHolder holder(lock_);
  return stats_;
}

}  // namespace tcmalloc
