// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Blocks that have waited long enough, and whose memory the next blocks of their sizes get.

#ifndef TCMALLOC_DEBUG_SPARE_BLOCKS_H_
#define TCMALLOC_DEBUG_SPARE_BLOCKS_H_

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "debug/block_record.h"
#include "debug/fences.h"
#include "pages/metadata_arena.h"
#include "size_class/size_classes.h"

namespace tcmalloc {

// A stack of blocks for each size class. A spare keeps its place in the table of blocks, its
// fences, its filling and its stacks, so that mistakes with it still show, and so that the next
// block needs neither the allocator below nor the table. Guarded by its owner.
//
// Stacks are arrays of pointers, so that the spares that are taken next are known without a look at
// those before them.
class SpareBlocks {
 public:
  constexpr SpareBlocks() = default;
  SpareBlocks(const SpareBlocks&) = delete;
  SpareBlocks& operator=(const SpareBlocks&) = delete;

  // Keeps a freed block if all spares then are no more than `limit` bytes, and if its memory suits
  // other blocks. Returns false otherwise, or if `arena` has no memory.
  bool Put(BlockRecord* block, size_t limit, MetadataArena& arena) {
    const uint8_t size_class = block->size_class;
    if (TCMALLOC_UNLIKELY(size_class == 0) || bytes_ + block->total > limit) return false;
    Stack& stack = stacks_[size_class];
    if (TCMALLOC_UNLIKELY(stack.count == 0) && !Extend(stack, arena)) return false;
    bytes_ += block->total;
    stack.chunk->blocks[--stack.count] = block;
    return true;
  }

  // Returns true if Put keeps the block and needs no memory.
  bool HasRoomFor(const BlockRecord& block, size_t limit) const {
    const uint8_t size_class = block.size_class;
    return size_class != 0 && bytes_ + block.total <= limit &&
           (stacks_[size_class].count != 0 || free_ != nullptr);
  }

  // Returns a block of that size class, or null.
  BlockRecord* Take(uint8_t size_class) {
    Stack& stack = stacks_[size_class];
    const Chunk* chunk = stack.chunk;
    if (TCMALLOC_UNLIKELY(chunk == nullptr)) return nullptr;
    BlockRecord* block = chunk->blocks[stack.count++];
    bytes_ -= block->total;
    Prefetch(stack);
    if (TCMALLOC_UNLIKELY(stack.count == kPerChunk)) Shrink(stack);
    return block;
  }

  // Returns any block, or null.
  BlockRecord* TakeAny() {
    if (bytes_ == 0) return nullptr;
    uint8_t c = 0;
    while (stacks_[c].chunk == nullptr) ++c;
    return Take(c);
  }

  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kPerChunk = 63;

  // Blocks from an index on, the one that is taken first at that index.
  struct Chunk {
    Chunk* below;  // or the next free one
    BlockRecord* blocks[kPerChunk];
  };
  // Has no chunk without a block.
  struct Stack {
    Chunk* chunk = nullptr;
    size_t count = 0;  // of places in the chunk that are free; 0 without a chunk
  };

  // Brings records, and then blocks, into the cache some calls ahead.
  static void Prefetch(const Stack& stack) {
    constexpr size_t kRecordsAhead = 5;
    constexpr size_t kBlocksAhead = 1;
    if (TCMALLOC_UNLIKELY(stack.count + kRecordsAhead >= kPerChunk)) return;
    BlockRecord* const* next = stack.chunk->blocks + stack.count;
    __builtin_prefetch(next[kRecordsAhead], 1);
    const BlockRecord& block = *next[kBlocksAhead];
    __builtin_prefetch(block.user - kFrontBytes, 1);
    __builtin_prefetch(block.end(), 1);
  }

  // Gives a stack without a free place a chunk more. Returns false if there is no memory.
  TCMALLOC_NOINLINE bool Extend(Stack& stack, MetadataArena& arena) {
    Chunk* chunk = free_;
    if (chunk != nullptr) {
      free_ = chunk->below;
    } else {
      const int saved_errno = errno;
      chunk = static_cast<Chunk*>(arena.Allocate(sizeof(Chunk), alignof(BlockRecord)));
      errno = saved_errno;
      if (chunk == nullptr) return false;
    }
    chunk->below = stack.chunk;
    stack = {chunk, kPerChunk};
    return true;
  }

  // Takes the chunk away that has no block any more.
  TCMALLOC_NOINLINE void Shrink(Stack& stack) {
    Chunk* chunk = stack.chunk;
    stack = {chunk->below, 0};
    chunk->below = free_;
    free_ = chunk;
  }

  size_t bytes_ = 0;
  Chunk* free_ = nullptr;
  Stack stacks_[kSizeClassCount] = {};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_SPARE_BLOCKS_H_
