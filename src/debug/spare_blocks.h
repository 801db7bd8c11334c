// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Blocks that have waited long enough, and whose memory the next blocks of their sizes get.

#ifndef TCMALLOC_DEBUG_SPARE_BLOCKS_H_
#define TCMALLOC_DEBUG_SPARE_BLOCKS_H_

#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "debug/block_record.h"
#include "debug/fences.h"
#include "size_class/size_classes.h"

namespace tcmalloc {

// A list for each size class, last in, first out. A spare keeps its place in the table of blocks,
// its fences, its filling and its stacks, so that mistakes with it still show, and so that the next
// block needs neither the allocator below nor the table. Guarded by its owner.
class SpareBlocks {
 public:
  constexpr SpareBlocks() = default;
  SpareBlocks(const SpareBlocks&) = delete;
  SpareBlocks& operator=(const SpareBlocks&) = delete;

  // Keeps a freed block if all spares then are no more than `limit` bytes, and if its memory suits
  // other blocks. Returns false otherwise.
  bool Put(BlockRecord* block, size_t limit) {
    if (TCMALLOC_UNLIKELY(block->size_class == 0) || bytes_ + block->total > limit) return false;
    bytes_ += block->total;
    block->next_spare = firsts_[block->size_class];
    firsts_[block->size_class] = block;
    return true;
  }

  // Returns a block of that size class, or null.
  BlockRecord* Take(uint8_t size_class) {
    BlockRecord* block = firsts_[size_class];
    if (TCMALLOC_UNLIKELY(block == nullptr)) return nullptr;
    BlockRecord* next = block->next_spare;
    firsts_[size_class] = next;
    bytes_ -= block->total;
    if (TCMALLOC_LIKELY(next != nullptr)) Prefetch(*next);
    return block;
  }

  // Returns any block, or null.
  BlockRecord* TakeAny() {
    if (bytes_ == 0) return nullptr;
    uint8_t c = 0;
    while (firsts_[c] == nullptr) ++c;
    return Take(c);
  }

  size_t bytes() const { return bytes_; }

 private:
  // Brings the block that is taken next into the cache, and the record of the one after that: the
  // record of the first was brought in before.
  static void Prefetch(const BlockRecord& next) {
    __builtin_prefetch(next.next_spare, 1);
    __builtin_prefetch(next.user - kFrontBytes, 1);
    __builtin_prefetch(next.end(), 1);
  }

  size_t bytes_ = 0;
  BlockRecord* firsts_[kSizeClassCount] = {};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_SPARE_BLOCKS_H_
