// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The fast paths of the hardened mode.

#ifndef TCMALLOC_HARDENED_FAST_PATHS_H_
#define TCMALLOC_HARDENED_FAST_PATHS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hardened/below_checks.h"
#include "hardened/hardened_heap.h"
#include "heap/heap.h"
#include "hook/hooks.h"
#include "thread/current_thread.h"

namespace tcmalloc {

void* HardenedHeap::TryAllocate(size_t size, BlockFamily family) {
  if (TCMALLOC_UNLIKELY(size >= BlockPools::kLargest)) return nullptr;
  if (TCMALLOC_UNLIKELY(!BlockPools::IsPool(thread_state.quarantine_part))) return nullptr;
  if (TCMALLOC_UNLIKELY(!hooks.new_block.empty())) return nullptr;
  SmallBlock block;
  block.size_class = kClassBySize[std::max<size_t>(size + 1, BlockMap::kGranule)];
  block.capacity = kSizeClasses[block.size_class].size;
  block.slack = block.capacity - size;
  // The allocator below counts bytes as well, and takes samples.
  EventClock& clock = current_thread->clock;
  if (TCMALLOC_UNLIKELY(clock.WouldExpire(block.capacity))) return nullptr;
  char* start;
  {
    const BelowChecks scope;
    start = static_cast<char*>(pools_.TryTake(scope.part(), block.size_class));
    if (TCMALLOC_UNLIKELY(start == nullptr)) return nullptr;
    clock.Advance(block.capacity);
  }
  const bool is_odd =
      heap.page_map().ClassAt(PageId::Containing(start)) != block.size_class ||
      !IsFilledWhole(start, block.capacity, filling_, last_filling_);
  if (TCMALLOC_UNLIKELY(is_odd)) {
    ReturnOdd(start, block.size_class);
    return nullptr;
  }
  if (TCMALLOC_LIKELY(block.slack <= Canary::kShortSlack)) {
    canary_.WriteFreshShort(start, block.slack, block.capacity);
  } else {
    canary_.WriteFresh(start, size, block.capacity);
  }
  BlockMap::SetSmall(map_.Known(start), family, block);
  return start;
}

bool HardenedHeap::TryFree(void* block, BlockFamily family, size_t size) {
  if (TCMALLOC_UNLIKELY(!BlockPools::IsPool(thread_state.quarantine_part))) return false;
  if (TCMALLOC_UNLIKELY(!hooks.delete_block.empty())) return false;
  BlockMap::Byte* state = map_.Find(block);
  if (TCMALLOC_UNLIKELY(state == nullptr)) return false;
  // Acquire pairs with the release in BlockMap::Set.
  uint8_t value = state->load(std::memory_order_acquire);
  SmallBlock small;
  constexpr uint8_t kLargestClass = SizeClassFor(BlockPools::kLargest);
  if (TCMALLOC_UNLIKELY(!BlockMap::GetSmall(state, value, family, kLargestClass, &small))) {
    return false;
  }
  if (size != BlockClaim::kUnknown && small.capacity - small.slack != size) return false;
  if (family != BlockFamily::kMalloc && BlockMap::IsAligned(state, small.capacity)) return false;
  auto* start = static_cast<char*>(block);
  if (TCMALLOC_LIKELY(small.slack <= Canary::kShortSlack)) {
    if (!canary_.IsIntactShort(start + small.capacity, small.slack)) return false;
  } else {
    const size_t asked = small.capacity - small.slack;
    if (canary_.Check(start, asked, small.capacity) != nullptr) return false;
  }
  if (TCMALLOC_UNLIKELY(!HasFront(start))) return false;
  // Acquire-release as in Free.
  if (TCMALLOC_UNLIKELY(!state->compare_exchange_strong(value, BlockMap::kQuarantined,
                                                        std::memory_order_acq_rel))) {
    return false;
  }
  FillWhole(start, small.capacity, filling_, last_filling_);
  bool is_in;
  {
    const BelowChecks scope;
    is_in = pools_.TryAdd(scope.part(), start, small.size_class);
  }
  if (TCMALLOC_UNLIKELY(!is_in)) PutInQuarantine(start, small.size_class);
  return true;
}

// Returns true if the byte before a block is a canary, or is none of a block.
bool HardenedHeap::HasFront(const char* block) const {
  return reinterpret_cast<uintptr_t>(block) % kPageSize == 0 || canary_.IsIntactBefore(block);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_HARDENED_FAST_PATHS_H_
