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

  // Returns true if Put keeps a freed block and needs no memory: if its memory suits other blocks,
  // and if all spares then are no more than `limit` bytes.
  bool HasPlaceFor(const BlockRecord& block, size_t limit) const {
    const uint8_t size_class = block.size_class;
    return size_class != 0 && bytes_ + block.total <= limit &&
           (stacks_[size_class].room != 0 || free_ != nullptr);
  }
  // Keeps a block for which there is a place.
  TCMALLOC_ALWAYS_INLINE void PutInPlace(BlockRecord* block) {
    Stack& stack = stacks_[block->size_class];
    if (TCMALLOC_UNLIKELY(stack.room == 0)) Extend(stack);
    bytes_ += block->total;
    stack.chunk->blocks[--stack.room] = block;
  }
  // Keeps a block if there is a place for it, or with one made of memory of `arena`. Returns false
  // otherwise.
  bool Put(BlockRecord* block, size_t limit, MetadataArena& arena) {
    if (!HasPlaceFor(*block, limit)) {
      if (free_ == nullptr) AddChunks(arena);
      if (!HasPlaceFor(*block, limit)) return false;
    }
    PutInPlace(block);
    return true;
  }

  // Returns a block of that size class, or null.
  TCMALLOC_ALWAYS_INLINE BlockRecord* Take(uint8_t size_class) {
    Stack& stack = stacks_[size_class];
    const Chunk* chunk = stack.chunk;
    if (TCMALLOC_UNLIKELY(chunk == nullptr)) return nullptr;
    BlockRecord* block = chunk->blocks[stack.room++];
    bytes_ -= block->total;
    Prefetch(stack);
    if (TCMALLOC_UNLIKELY(stack.room == kPerChunk)) Shrink(stack);
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

  struct Chunk {
    Chunk* below;  // or the next free one
    BlockRecord* blocks[kPerChunk];
  };
  // Has no chunk without a block.
  struct Stack {
    Chunk* chunk = nullptr;
    size_t room = 0;  // places in the chunk that are free, before the others; 0 without a chunk
  };

  // Brings records, and then blocks, into the cache some calls ahead.
  static void Prefetch(const Stack& stack) {
    constexpr size_t kRecordsAhead = 5;
    constexpr size_t kBlocksAhead = 1;
    if (TCMALLOC_UNLIKELY(stack.room + kRecordsAhead >= kPerChunk)) return;
    BlockRecord* const* next = stack.chunk->blocks + stack.room;
    __builtin_prefetch(next[kRecordsAhead], 1);
    const BlockRecord& block = *next[kBlocksAhead];
    __builtin_prefetch(block.user - kFrontBytes, 1);
    __builtin_prefetch(block.end(), 1);
  }

  // Makes a page of free chunks, if there is memory.
  TCMALLOC_NOINLINE void AddChunks(MetadataArena& arena) {
    constexpr size_t kAtOnce = 8;
    auto* chunks =
        static_cast<Chunk*>(arena.Allocate(kAtOnce * sizeof(Chunk), alignof(BlockRecord)));
    if (chunks == nullptr) return;
    for (size_t i = 0; i < kAtOnce; ++i) {
      chunks[i].below = free_;
      free_ = &chunks[i];
    }
  }
  // Gives a stack without room a chunk more. Requires a free one.
  TCMALLOC_NOINLINE void Extend(Stack& stack) {
    Chunk* chunk = free_;
    free_ = chunk->below;
    chunk->below = stack.chunk;
    stack = {chunk, kPerChunk};
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
