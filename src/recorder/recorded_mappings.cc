// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "recorder/recorded_mappings.h"

#include <algorithm>

#include "system/own_memory.h"

namespace tcmalloc {

RecordedMappings::Range* RecordedMappings::FirstEndingAfter(uintptr_t address) {
  return std::partition_point(ranges_, ranges_ + count_,
                              [=](const Range& range) { return range.limit <= address; });
}

// Makes room for two more ranges. Returns false if no memory can be had.
bool RecordedMappings::EnsureRoom() {
  if (count_ + 2 <= room_) return true;
  const size_t room = std::max(2 * room_, kFirstRanges);
  void* memory = MapZeroed(room * sizeof(Range));
  if (memory == nullptr) return false;
  auto* grown = static_cast<Range*>(memory);
  std::copy_n(ranges_, count_, grown);
  if (ranges_ != nullptr) UnmapZeroed(ranges_, room_ * sizeof(Range));
  ranges_ = grown;
  room_ = room;
  return true;
}

void RecordedMappings::Insert(Range* place, const Range& range) {
  std::copy_backward(place, ranges_ + count_, ranges_ + count_ + 1);
  *place = range;
  ++count_;
}

// Takes the addresses from `start` to `limit`, which lie inside, out of a range of which something
// is left on both sides.
void RecordedMappings::Cut(Range& range, uintptr_t start, uintptr_t limit) {
  const Range behind = {
      .start = limit, .limit = range.limit, .stack = range.stack, .counts = false};
  range.limit = start;
  Insert(&range + 1, behind);
}

// Requires room for one more range.
uint64_t RecordedMappings::RemoveLocked(uintptr_t start, uintptr_t limit) {
  uint64_t removed = 0;
  Range* kept = FirstEndingAfter(start);
  Range* range = kept;
  for (; range < ranges_ + count_ && range->start < limit; ++range) {
    const uintptr_t from = std::max(range->start, start);
    const uintptr_t to = std::min(range->limit, limit);
    const bool whole = from == range->start && to == range->limit;
    stacks_.NoteFreed(range->stack, to - from, whole && range->counts ? 1 : 0);
    removed += to - from;
    if (whole) continue;
    if (from != range->start && to != range->limit) {
      Cut(*range, from, to);
      return removed;
    }
    (from == range->start ? range->start : range->limit) = from == range->start ? to : from;
    *kept++ = *range;
  }
  count_ = static_cast<size_t>(std::copy(range, ranges_ + count_, kept) - ranges_);
  return removed;
}

uint64_t RecordedMappings::Add(uintptr_t start, size_t bytes, StackId stack) {
  const SpinLockHolder holder(lock_);
  if (!EnsureRoom()) return 0;
  const uint64_t removed = RemoveLocked(start, start + bytes);
  Insert(FirstEndingAfter(start),
         {.start = start, .limit = start + bytes, .stack = stack, .counts = true});
  stacks_.NoteAllocated(stack, bytes);
  return removed;
}

uint64_t RecordedMappings::Remove(uintptr_t start, size_t bytes) {
  const SpinLockHolder holder(lock_);
  return count_ != 0 && EnsureRoom() ? RemoveLocked(start, start + bytes) : 0;
}

void RecordedMappings::Clear() {
  const SpinLockHolder holder(lock_);
  count_ = 0;
}

}  // namespace tcmalloc
