// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What the debug mode knows of a block, apart from the block.

#ifndef TCMALLOC_DEBUG_BLOCK_RECORD_H_
#define TCMALLOC_DEBUG_BLOCK_RECORD_H_

#include <cstddef>
#include <cstdint>

#include "allocator/block_family.h"
#include "heap_profile/stack_table.h"

namespace tcmalloc {

enum class BlockState : uint8_t {
  kLive,
  kFreeing,  // freed; the thread that freed it still fills it
  kQueued,   // freed and filled; the free queue has it, as a spare maybe, or it is kept for good
};

// One block. Its memory, [base, base + total), is
//
//     fence | size and seal, kSealBytes | the program's bytes, from user on | fence
//
// The record is the truth: nothing in the block decides anything while the heap can be locked.
struct BlockRecord {
  BlockRecord* next = nullptr;  // in its bucket, or free
  char* user = nullptr;
  char* base = nullptr;
  size_t size = 0;   // bytes that the program asked for
  size_t total = 0;  // bytes from base on that are the block's
  uintptr_t allocating_thread = 0;
  uintptr_t freeing_thread = 0;
  StackId allocated_at = 0;
  StackId freed_at = 0;
  uint64_t alignment = 0;  // that the program asked for, 0 for none
  BlockRecord* next_spare = nullptr;  // in its list of spares
  BlockFamily family = BlockFamily::kMalloc;
  BlockState state = BlockState::kLive;
  // The size class of memory that may be used again for another block, behind a front fence of
  // kFrontBytes; 0 of all other memory.
  uint8_t size_class = 0;
  bool paged = false;       // in pages of its own, with a guard page behind them
  bool unreadable = false;  // freed, and its pages may not be read

  bool is_live() const { return state == BlockState::kLive; }
  char* end() const { return user + size; }
  bool Surrounds(const void* address) const {
    const auto a = reinterpret_cast<uintptr_t>(address);
    return a - reinterpret_cast<uintptr_t>(base) < total;
  }
};

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_BLOCK_RECORD_H_
