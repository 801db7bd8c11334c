// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The fast paths of the hardened mode. Where they refuse they have changed nothing, and call
// nothing, so that their callers need not save registers.

#ifndef TCMALLOC_HARDENED_HARDENED_HEAP_INL_H_
#define TCMALLOC_HARDENED_HARDENED_HEAP_INL_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "hardened/below_checks.h"
#include "hardened/hardened_heap.h"
#include "heap/heap.h"
#include "hook/hooks.h"
#include "thread/current_thread.h"

namespace tcmalloc {

// The class of a block, by the size that the program asks for.
inline constexpr auto kPlainClasses = [] {
  std::array<uint8_t, BlockPools::kLargest> classes{};
  for (size_t size = 0; size < classes.size(); ++size) {
    classes[size] = kClassBySize[std::max<size_t>(size + 1, BlockMap::kGranule)];
  }
  return classes;
}();

template <bool kIsLong>
void* HardenedHeap::TryAllocateShort(size_t size, BlockFamily family) {
  if (TCMALLOC_UNLIKELY(size >= (kIsLong ? BlockPools::kLargest : kMostInFour))) return nullptr;
  const uint8_t part = thread_state.quarantine_part;
  if (TCMALLOC_UNLIKELY(!hooks.new_block.empty())) return nullptr;
  const BelowChecks scope(part);
  const BlockPools::Turn turn = pools_.Next(part, kPlainClasses[size]);
  if (TCMALLOC_UNLIKELY(!turn.has_come())) return nullptr;
  const BlockPairs& pairs = turn.facts().pairs;
  if (kIsLong && TCMALLOC_UNLIKELY(size + Canary::kShortSlack < pairs.bytes))
    return nullptr;  // so is the slack
  // The allocator below counts bytes as well, and takes samples. They are counted first, which
  // needs fewer registers: if somebody wrote to the block, the slow path ends the process.
  if (!current_thread->clock.TryAdvance(pairs.bytes)) return nullptr;
  auto* start = static_cast<char*>(turn.block());
  if (TCMALLOC_LIKELY(turn.is_filled()) &&
      TCMALLOC_UNLIKELY(!ArePairsFilled<kIsLong>(start, pairs, filling_))) {
    return nullptr;
  }
  turn.Take();
  BeginFresh(start, pairs);
  canary_.WriteFreshEnd(pairs.LastOf(start), size);
  BlockMap::SetShort(map_.Known(start), family, turn.facts().states, size);
  return start;
}

bool HardenedHeap::FindShort(void* block, BlockFamily family, ShortBlock* known) const {
  known->state = map_.FindLow(block);
  if (TCMALLOC_UNLIKELY(known->state == nullptr)) return false;
  // Acquire pairs with the release in BlockMap::Set.
  known->live = known->state->load(std::memory_order_acquire);
  return BlockMap::GetShort(family, known);
}

template <bool kIsLong>
bool HardenedHeap::TryFreeShort(void* block, ShortBlock known, size_t size) {
  constexpr uint8_t kLast = kIsLong ? BlockPools::kClasses - 1 : SizeClassFor(kMostInFour);
  if (TCMALLOC_UNLIKELY(known.size_class > kLast)) return false;
  const uint8_t part = thread_state.quarantine_part;
  if (TCMALLOC_UNLIKELY(!hooks.delete_block.empty())) return false;
  const BelowChecks scope(part);
  const BlockPools::Place place = pools_.PlaceFor(part, known.size_class);
  if (TCMALLOC_UNLIKELY(!place.is_free())) return false;
  const BlockPairs& pairs = place.facts().pairs;
  if (size != BlockClaim::kUnknown &&
      TCMALLOC_UNLIKELY(Padded(size) + known.slack != pairs.bytes)) {
    return false;
  }
  auto* start = static_cast<char*>(block);
  if (TCMALLOC_UNLIKELY(!canary_.IsIntactShort(pairs.LastOf(start), known.slack))) return false;
  if (TCMALLOC_UNLIKELY(!HasFront(start))) return false;
  if (TCMALLOC_UNLIKELY(!Retire(known.state, known.live))) return false;
  FillPairs<kIsLong>(start, pairs, filling_);
  place.Put(start);
  return true;
}

void* HardenedHeap::TryAllocate(size_t size, BlockFamily family) {
  if (TCMALLOC_UNLIKELY(size >= BlockPools::kLargest)) return nullptr;
  const uint8_t part = thread_state.quarantine_part;
  if (TCMALLOC_UNLIKELY(!BlockPools::IsPool(part))) return nullptr;
  if (TCMALLOC_UNLIKELY(!hooks.new_block.empty())) return nullptr;
  PlainBlock block;
  block.size_class = kClassBySize[std::max<size_t>(size + 1, BlockMap::kGranule)];
  block.capacity = kSizeClasses[block.size_class].size;
  block.slack = block.capacity - size;
  const BelowChecks scope(part);
  const BlockPools::Turn turn = pools_.Next(part, block.size_class);
  if (TCMALLOC_UNLIKELY(!turn.has_come())) return nullptr;
  auto* start = static_cast<char*>(turn.block());
  if (TCMALLOC_LIKELY(turn.is_filled()) &&
      TCMALLOC_UNLIKELY(!IsFilledWhole(start, block.capacity, filling_))) {
    return nullptr;
  }
  if (!current_thread->clock.TryAdvance(block.capacity)) return nullptr;
  turn.Take();
  canary_.WriteFreshOfAny(start, size, block.capacity);
  BlockMap::SetPlain(map_.Known(start), family, block);
  return start;
}

bool HardenedHeap::TryFree(void* block, BlockFamily family, size_t size) {
  const uint8_t part = thread_state.quarantine_part;
  if (TCMALLOC_UNLIKELY(!BlockPools::IsPool(part))) return false;
  if (TCMALLOC_UNLIKELY(!hooks.delete_block.empty())) return false;
  BlockMap::Byte* state = map_.FindLow(block);
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
  const bool is_intact =
      TCMALLOC_LIKELY(known.slack <= Canary::kShortSlack)
          ? canary_.IsIntactShort(start + known.capacity - sizeof(WordPair), known.slack)
          : canary_.IsIntactLong(start, asked, known.capacity);
  if (TCMALLOC_UNLIKELY(!is_intact)) return false;
  if (TCMALLOC_UNLIKELY(!HasFront(start))) return false;
  if (TCMALLOC_UNLIKELY(!Retire(state, value))) return false;
  FillWhole(start, known.capacity, filling_);
  bool is_in;
  {
    const BelowChecks scope(part);
    is_in = pools_.TryAdd(part, start, known.size_class);
  }
  if (TCMALLOC_UNLIKELY(!is_in)) PutInQuarantine(start, known.size_class);
  return true;
}

// Makes a block that is live, as its state says, one in quarantine. Returns false if another thread
// was faster.
bool HardenedHeap::Retire(BlockMap::Byte* state, uint8_t live) const {
  if (TCMALLOC_LIKELY(*single_threaded_ != 0)) {
    state->store(BlockMap::kQuarantined, std::memory_order_relaxed);
    return true;
  }
  // Of two threads that free the same block, one gets here first. Acquire-release pairs with the
  // release in BlockMap::Set and the acquire in CheckLive.
  return state->compare_exchange_strong(live, BlockMap::kQuarantined, std::memory_order_acq_rel);
}

// Returns true if the byte before a block is a canary, or is none of a block.
bool HardenedHeap::HasFront(const char* block) const {
  return reinterpret_cast<uintptr_t>(block) % kPageSize == 0 || canary_.IsIntactBefore(block);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_HARDENED_HARDENED_HEAP_INL_H_
