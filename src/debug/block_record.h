// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The debug mode's record of a block, which lies apart from the block.

#ifndef TCMALLOC_DEBUG_BLOCK_RECORD_H_
#define TCMALLOC_DEBUG_BLOCK_RECORD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/block_family.h"
#include "base/relaxed.h"
#include "heap_profile/stack_table.h"

namespace tcmalloc {

enum class BlockState : uint8_t {
  kLive,
  kFreeing,  // freed; the thread that freed it still fills it
  kQueued,   // freed and filled; the free queue has it, as a spare maybe, or it is kept for good
};

// One block. Begins as zeros. Its memory, [base, base + total), is
//
//     fence | size and seal, kSealBytes | the program's bytes, from user on | fence
//
// The record is the truth: nothing in the block decides anything while the heap can be locked.
struct BlockRecord {
  BlockRecord* next;  // in its bucket, or free
  char* user;
  char* base;
  size_t size;   // bytes that the program asked for
  size_t total;  // bytes from base on that are the block's
  uintptr_t allocating_thread;
  uintptr_t freeing_thread;
  StackId allocated_at;
  StackId freed_at;
  uint64_t alignment;       // that the program asked for, 0 for none
  BlockRecord* next_spare;  // in its list of spares
  Relaxed<uint32_t> changes;
  BlockFamily family;
  BlockState state;
  // The size class of memory that may be used again for another block, behind a front fence of
  // kFrontBytes; 0 of all other memory.
  uint8_t size_class;
  bool paged : 1;       // in pages of its own, with a guard page behind them
  bool unreadable : 1;  // freed, and its pages may not be read

  bool is_live() const { return state == BlockState::kLive; }
  char* end() const { return user + size; }

  // Mark a change that is made without the lock of the table, of the record and of the block's
  // bytes: `changes` is odd meanwhile. Who looks at a block under the lock, and finds a fault, has
  // to ask if it has changed.
  void BeginChange() {
    changes += 1;
    // Release pairs with the acquire in HasChangedSince: whoever read what is written from now on
    // reads the count.
    std::atomic_thread_fence(std::memory_order_release);
  }
  void EndChange() {
    // Release pairs with the acquire in BeginLook and publishes the change.
    std::atomic_thread_fence(std::memory_order_release);
    changes += 1;
  }
  uint32_t BeginLook() const {
    const uint32_t before = changes;
    // Acquire pairs with the release in EndChange.
    std::atomic_thread_fence(std::memory_order_acquire);
    return before;
  }
  bool HasChangedSince(uint32_t before) const {
    // Acquire pairs with the release in BeginChange.
    std::atomic_thread_fence(std::memory_order_acquire);
    return before % 2 != 0 || changes != before;
  }

  bool Surrounds(const void* address) const {
    const auto a = reinterpret_cast<uintptr_t>(address);
    return a - reinterpret_cast<uintptr_t>(base) < total;
  }
};

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_BLOCK_RECORD_H_
