// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The functions that entry points call in a mode that checks blocks (TCMALLOC_MODE).

#ifndef TCMALLOC_ALLOCATOR_BLOCK_FUNCTIONS_H_
#define TCMALLOC_ALLOCATOR_BLOCK_FUNCTIONS_H_

#include <cstddef>
#include <cstdint>

#include "allocator/allocated_size.h"
#include "allocator/block_family.h"
#include "base/attributes.h"
#include "heap/heap.h"
#include "thread/current_thread.h"

namespace tcmalloc {

struct BlockRequest {
  size_t size = 0;
  size_t alignment = 1;
  BlockFamily family = BlockFamily::kMalloc;
  bool zeroed = false;
};

// The claims that a call that frees makes about the block. `call` is named in messages; null is
// plain free.
struct BlockClaim {
  static constexpr size_t kUnknown = SIZE_MAX;

  BlockFamily family = BlockFamily::kMalloc;
  size_t size = kUnknown;
  size_t alignment = kUnknown;
  const char* call = nullptr;
};

// Returns the claims of a delete without an alignment that passed `size`; see kPlainDelete.
TCMALLOC_ALWAYS_INLINE BlockClaim ClaimOfDelete(size_t size) {
  BlockClaim claim = {.family = BlockFamily::kNew, .call = "operator delete"};
  if (size == kArrayDelete || (size != kPlainDelete && size >= kArrayTag)) {
    claim = {.family = BlockFamily::kNewArray, .call = "operator delete[]"};
  }
  if (size < kArrayDelete) claim.size = size % kArrayTag;
  return claim;
}

struct BlockFunctions {
  void* (*allocate)(const BlockRequest& request);
  // Works as `allocate` for a size and a family alone.
  void* (*allocate_plain)(size_t size, BlockFamily family);
  void (*free)(void* block, const BlockClaim& claim);
  // Works as `free` for plain free, which claims nothing.
  void (*free_plain)(void* block);
  // Requires block != nullptr and size > 0.
  void* (*reallocate)(void* block, size_t size);
  void (*set_family)(void* block, BlockFamily family);
  size_t (*usable_size)(const void* block, const char* call);
  size_t (*size_for)(size_t size, size_t alignment);
  bool (*owns)(const void* block);
  void (*check_at_exit)();
};

// Null in the default mode. Set when the heap is made, before the program gets its first block.
extern constinit const BlockFunctions* block_functions;

// Sets them. From then on the fast paths that read the page map go to the functions as well.
TCMALLOC_COLD void EnterMode(const BlockFunctions& functions);

// Returns the functions of the mode. Makes the heap if there is none yet, because options are read
// then.
inline const BlockFunctions* FunctionsOfMode() {
  if (TCMALLOC_UNLIKELY(!heap.initialized())) MakeHeap();
  return block_functions;
}

// Answer the program's questions about blocks, in any mode.
inline size_t EstimatedSizeInMode(size_t size) {
  const BlockFunctions* functions = FunctionsOfMode();
  return functions != nullptr ? functions->size_for(size, 1) : AllocatedSizeFor(size);
}
inline bool OwnsInMode(const void* block) {
  if (block_functions != nullptr) return block_functions->owns(block);
  return heap.emergency().Owns(block) || heap.guarded().Owns(block) ||
         heap.page_map().FindInUse(block) != nullptr;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_ALLOCATOR_BLOCK_FUNCTIONS_H_
