// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The fast paths of the hardened mode. Where they refuse they have changed nothing, and call
// nothing, so that their callers need not save registers.

#ifndef TCMALLOC_HARDENED_HARDENED_HEAP_INL_H_
#define TCMALLOC_HARDENED_HARDENED_HEAP_INL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hardened/below_checks.h"
#include "hardened/hardened_heap.h"
#include "heap/heap.h"
#include "hook/hooks.h"
#include "system/single_threaded.h"
#include "thread/current_thread.h"

namespace tcmalloc {

void* HardenedHeap::TryAllocate(size_t size, BlockFamily family) {
  if (TCMALLOC_UNLIKELY(size >= BlockPools::kLargest)) return nullptr;
  if (TCMALLOC_UNLIKELY(!BlockPools::IsPool(thread_state.quarantine_part))) return nullptr;
  if (TCMALLOC_UNLIKELY(!hooks.new_block.empty())) return nullptr;
  PlainBlock block;
  block.size_class = kClassBySize[std::max<size_t>(size + 1, BlockMap::kGranule)];
  block.capacity = kSizeClasses[block.size_class].size;
  block.slack = block.capacity - size;
  // The allocator below counts bytes as well, and takes samples.
  EventClock& clock = current_thread->clock;
  if (TCMALLOC_UNLIKELY(clock.WouldExpire(block.capacity))) return nullptr;
  const BelowChecks scope(BelowChecks::kHasPart);
  const BlockPools::Turn turn = pools_.Next(scope.part(), block.size_class);
  if (TCMALLOC_UNLIKELY(!turn.has_come())) return nullptr;
  auto* start = static_cast<char*>(turn.block());
  if (TCMALLOC_LIKELY(turn.is_filled()) &&
      TCMALLOC_UNLIKELY(!IsFilledWhole(start, block.capacity, filling_))) {
    return nullptr;
  }
  turn.Take();
  clock.Advance(block.capacity);
  if (TCMALLOC_LIKELY(block.slack <= Canary::kShortSlack)) {
    canary_.WriteFreshShort(start, block.slack, block.capacity);
  } else {
    canary_.WriteFresh(start, size, block.capacity);
  }
  BlockMap::SetPlain(map_.Known(start), family, block);
  return start;
}

bool HardenedHeap::TryFree(void* block, BlockFamily family, size_t size) {
  if (TCMALLOC_UNLIKELY(!BlockPools::IsPool(thread_state.quarantine_part))) return false;
  if (TCMALLOC_UNLIKELY(!hooks.delete_block.empty())) return false;
  BlockMap::Byte* state = map_.Find(block);
  if (TCMALLOC_UNLIKELY(state == nullptr)) return false;
  // Acquire pairs with the release in BlockMap::Set.
  uint8_t value = state->load(std::memory_order_acquire);
  PlainBlock known;
  if (TCMALLOC_UNLIKELY(!BlockMap::GetPlain(state, value, family, BlockPools::kClasses, &known))) {
    return false;
  }
  const size_t asked = known.capacity - known.slack;
  if (TCMALLOC_UNLIKELY(size != BlockClaim::kUnknown && size != asked)) return false;
  auto* start = static_cast<char*>(block);
  const bool is_intact = TCMALLOC_LIKELY(known.slack <= Canary::kShortSlack)
                             ? canary_.IsIntactShort(start + known.capacity, known.slack)
                             : canary_.IsIntactLong(start, asked, known.capacity);
  if (TCMALLOC_UNLIKELY(!is_intact)) return false;
  if (TCMALLOC_UNLIKELY(!HasFront(start))) return false;
  if (IsSingleThreaded()) {
    state->store(BlockMap::kQuarantined, std::memory_order_relaxed);
  } else {
    // Of two threads that free the same block, one gets here first. Acquire-release pairs with the
    // release in BlockMap::Set and the acquire in CheckLive.
    const bool is_first =
        state->compare_exchange_strong(value, BlockMap::kQuarantined, std::memory_order_acq_rel);
    if (TCMALLOC_UNLIKELY(!is_first)) return false;
  }
  FillWhole(start, known.capacity, filling_);
  bool is_in;
  {
    const BelowChecks scope(BelowChecks::kHasPart);
    is_in = pools_.TryAdd(scope.part(), start, known.size_class);
  }
  if (TCMALLOC_UNLIKELY(!is_in)) PutInQuarantine(start, known.size_class);
  return true;
}

// Returns true if the byte before a block is a canary, or is none of a block.
bool HardenedHeap::HasFront(const char* block) const {
  return reinterpret_cast<uintptr_t>(block) % kPageSize == 0 || canary_.IsIntactBefore(block);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_HARDENED_HARDENED_HEAP_INL_H_
