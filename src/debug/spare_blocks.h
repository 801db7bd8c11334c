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

// A block that waits, with what is asked of it while its record is in no cache.
struct WaitingBlock {
  BlockRecord* block;
  uint64_t size_class : 8;
  uint64_t bytes : 56;

  static WaitingBlock Of(BlockRecord* block) {
    return {.block = block, .size_class = block->size_class, .bytes = block->total};
  }
};

// A stack of blocks for each size class. A spare keeps its place in the table of blocks, its
// fences, its filling and its stacks, so that mistakes with it still show, and so that the next
// block needs neither the allocator below nor the table. Guarded by its owner.
//
// Stacks are arrays of pointers, so that the spares that are taken next are known without a look at
// those before them. The last chunk of a stack may be empty, so that a stack that goes up and down
// by a few blocks changes no chunk.
class SpareBlocks {
 public:
  constexpr SpareBlocks() = default;
  SpareBlocks(const SpareBlocks&) = delete;
  SpareBlocks& operator=(const SpareBlocks&) = delete;

  // Makes a place for a freed block, if its memory suits other blocks, if all spares then are no
  // more than `limit` bytes, and if that needs no memory. Returns true if PutInPlace may follow.
  TCMALLOC_ALWAYS_INLINE bool MakePlace(WaitingBlock waiting, size_t limit) {
    if (TCMALLOC_UNLIKELY(waiting.size_class == 0 || bytes_ + waiting.bytes > limit)) return false;
    Stack& stack = stacks_[waiting.size_class];
    return TCMALLOC_LIKELY(stack.HasRoom()) || TryExtend(stack);
  }
  // Keeps a block for which there is a place.
  TCMALLOC_ALWAYS_INLINE void PutInPlace(WaitingBlock waiting) {
    bytes_ += waiting.bytes;
    *++stacks_[waiting.size_class].top = waiting.block;
  }
  // Keeps a block if there is a place for it, or with one made of memory of `arena`. Returns false
  // otherwise.
  bool Put(WaitingBlock waiting, size_t limit, MetadataArena& arena) {
    if (!MakePlace(waiting, limit)) {
      if (free_ == nullptr) AddChunks(arena);
      if (!MakePlace(waiting, limit)) return false;
    }
    PutInPlace(waiting);
    return true;
  }

  // Returns true if there is a block of that size class.
  TCMALLOC_ALWAYS_INLINE bool Has(uint8_t size_class) {
    Stack& stack = stacks_[size_class];
    if (TCMALLOC_LIKELY(stack.HeldInChunk() != 0)) return true;
    return stack.top != nullptr && TryShrink(stack);
  }
  // Returns a block of that size class, or null.
  BlockRecord* Take(uint8_t size_class) { return Has(size_class) ? TakeHeld(size_class) : nullptr; }
  // Returns a block of that size class, of which there is one in the last chunk, as after Has.
  TCMALLOC_ALWAYS_INLINE BlockRecord* TakeHeld(uint8_t size_class) {
    Stack& stack = stacks_[size_class];
    BlockRecord* block = *stack.top--;
    bytes_ -= block->total;
    Prefetch(stack);
    return block;
  }

  // Returns any block, or null.
  BlockRecord* TakeAny() {
    if (bytes_ == 0) return nullptr;
    for (uint8_t c = 0;; ++c) {
      if (BlockRecord* block = Take(c)) return block;
    }
  }

  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kPerChunk = 63;

  // Aligned to its size, so that a pointer into it tells how full it is.
  struct alignas((kPerChunk + 1) * sizeof(BlockRecord*)) Chunk {
    BlockRecord** below;  // the last block of the full chunk below, or the next free chunk
    BlockRecord* blocks[kPerChunk];
  };
  struct Stack {
    // The last block; the beginning of a chunk without any. Null without a chunk.
    BlockRecord** top = nullptr;

    size_t HeldInChunk() const {
      return reinterpret_cast<uintptr_t>(top) % sizeof(Chunk) / sizeof(*top);
    }
    bool HasRoom() const { return top != nullptr && HeldInChunk() != kPerChunk; }
  };

  // Brings records, and then blocks, into the cache some calls ahead.
  static void Prefetch(const Stack& stack) {
    constexpr size_t kRecordsAhead = 5;
    constexpr size_t kBlocksAhead = 1;
    if (TCMALLOC_UNLIKELY(stack.HeldInChunk() <= kRecordsAhead)) return;
    BlockRecord* const* next = stack.top;
    __builtin_prefetch(*(next - kRecordsAhead), 1);
    const BlockRecord& block = **(next - kBlocksAhead);
    __builtin_prefetch(block.user - kFrontBytes, 1);
    __builtin_prefetch(block.end(), 1);
  }

  // Makes a page of free chunks, if there is memory.
  TCMALLOC_NOINLINE void AddChunks(MetadataArena& arena) {
    constexpr size_t kAtOnce = 8;
    auto* chunks = static_cast<Chunk*>(arena.Allocate(kAtOnce * sizeof(Chunk), alignof(Chunk)));
    if (chunks == nullptr) return;
    for (size_t i = 0; i < kAtOnce; ++i) Free(&chunks[i]);
  }
  void Free(Chunk* chunk) {
    chunk->below = reinterpret_cast<BlockRecord**>(free_);
    free_ = chunk;
  }
  // Gives a stack without room a chunk more, if there is a free one.
  TCMALLOC_NOINLINE bool TryExtend(Stack& stack) {
    Chunk* chunk = free_;
    if (chunk == nullptr) return false;
    free_ = reinterpret_cast<Chunk*>(chunk->below);
    chunk->below = stack.top;
    stack.top = reinterpret_cast<BlockRecord**>(chunk);
    return true;
  }
  // Takes the chunk away, which has no block. Returns false, with nothing done, if there is none
  // below.
  TCMALLOC_NOINLINE bool TryShrink(Stack& stack) {
    auto* chunk = reinterpret_cast<Chunk*>(stack.top);
    if (chunk->below == nullptr) return false;
    stack.top = chunk->below;
    Free(chunk);
    return true;
  }

  size_t bytes_ = 0;
  Chunk* free_ = nullptr;
  Stack stacks_[kSizeClassCount] = {};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_SPARE_BLOCKS_H_
