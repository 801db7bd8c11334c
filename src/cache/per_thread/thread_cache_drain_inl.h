// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The part of ThreadCache for size classes that drain: see DrainWatch. Included by thread_cache.h
// alone.

#ifndef TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_DRAIN_INL_H_
#define TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_DRAIN_INL_H_

#include <algorithm>
#include <utility>

namespace tcmalloc {

// Requires that the current list is empty and that nothing is beside it. The list stays doubtful
// until it is filled: where a room changes by several instructions, that of a free which a signal
// handler has interrupted may go by the list that was there before.
template <SourceTable Sources>
void ThreadCache<Sources>::StartDraining(uint8_t c) {
  ClassState& state = states_[c];
  TCMALLOC_DCHECK(state.beside.empty());
  if (ObjectsBeyondTwo(c, state.capacity) > 0) SetCapacity(c, static_cast<int>(Batch(c)));
  const ListChange change(*this, c);
  state.drain.Begin();
  state.beside = {context_->codec->end, 0};
  state.capacity = -kDraining;
  room[c] = -kDraining;
  state.is_doubtful = true;
}

// Returns the objects that were leaving to the spans.
template <SourceTable Sources>
Chain ThreadCache<Sources>::StopDraining(uint8_t c) {
  ClassState& state = states_[c];
  const ListChange change(*this, c);
  const int length = state.capacity - room[c];
  state.drain.End();
  state.capacity = static_cast<int16_t>(std::max(static_cast<int>(LongestList(c)), length));
  room[c] = static_cast<int16_t>(state.capacity - length);
  return std::exchange(state.beside, {});
}

// Stops draining. The objects that were leaving become the current list, unless a fast path is
// using the list or it has objects already.
template <SourceTable Sources>
void ThreadCache<Sources>::ResumeKeeping(uint8_t c) {
  const Chain chain = StopDraining(c);
  if (chain.empty()) return;
  if (HasEmptyList(c)) return SetCurrent(c, chain);
  KeepIfWhole(c, chain);
}

// Returns the number of objects allocated since the last call, while the class drains.
template <SourceTable Sources>
uint32_t ThreadCache<Sources>::TakeAllocations(uint8_t c) {
  const int allocated = std::max(room[c] + kDraining, 0);
  room[c] = static_cast<int16_t>(room[c] - allocated);
  states_[c].capacity = static_cast<int16_t>(states_[c].capacity - allocated);
  return static_cast<uint32_t>(allocated);
}

// Returns true if a class that no longer drains should still be treated as draining.
template <SourceTable Sources>
bool ThreadCache<Sources>::KeepsDraining(uint8_t c) {
  return states_[c].drain.MayKeepDraining() && source(c).IsSparse();
}

// Returns true if a signal handler, which runs now, has interrupted an allocation between its first
// and its last change of the current list. Looks at lists as short as those of a class that drains.
template <SourceTable Sources>
TCMALLOC_COLD bool ThreadCache<Sources>::InterruptsAllocation(uint8_t c) const {
  const int length = states_[c].capacity - room[c];
  if (length > static_cast<int>(DrainingFetch(c))) return false;
  const auto more_than_length = static_cast<uint32_t>(std::max(length, 0) + 1);
  return static_cast<int>(CountUpTo(more_than_length, c, heads[c])) > length;
}

// Returns true if an object that is freed while the class drains was probably allocated just now:
// it lies where the list came from, more was allocated than came back, and few were freed since.
template <SourceTable Sources>
bool ThreadCache<Sources>::IsTemporary(const void* object, uint8_t c) const {
  const uint32_t distance = LowPageNumber(object) - states_[c].list_page;
  return distance < kSizeClasses[c].pages && room[c] > -kDraining && states_[c].drain.IsSoon();
}

// Takes an object in. Gives up the full chains with each batch, because they would only delay a
// class that drains. What was allocated just now comes back to the list. A signal handler may free
// an object that it has taken from the current list, to which the allocation that it interrupted
// leads: it has to come back to that list. That can be so only after two allocations, each of which
// changes the room: that one and the handler's.
template <SourceTable Sources>
void ThreadCache<Sources>::FreeDraining(void* object, uint8_t c) {
  ClassState& state = states_[c];
  if (room[c] > state.room_at_free) state.drain.NoteAllocated();
  if (IsTemporary(object, c)) {
    PutIn(object, c);
    state.room_at_free = std::min(state.room_at_free, room[c]);
    if (state.drain.NoteTemporary()) ResumeKeeping(c);
    return;
  }
  const bool may_interrupt = room[c] - state.room_at_free > 1;
  if (TCMALLOC_UNLIKELY(may_interrupt) && InterruptsAllocation(c)) return PutIn(object, c);
  const uint32_t batch = Batch(c);
  context_->codec->Prepend(object, &state.beside);
  state.room_at_free = room[c];
  state.drain.NoteFree();
  if (state.beside.count < state.drain.ObjectsBeforeNextCheck(batch)) return;
  state.drain.NoteAllocations(TakeAllocations(c));
  state.room_at_free = room[c];
  if (!state.drain.Drains() && !KeepsDraining(c)) return ResumeKeeping(c);
  if (state.beside.count < batch) return;
  FlushFull(c);
  source(c).InsertPast(std::exchange(state.beside, {context_->codec->end, 0}));
  state.drain.NoteBatch();
}

// Fills the empty current list of a class that drains. Returns false if nothing was leaving and the
// class drains no longer, because it grows or because no memory can be had.
template <SourceTable Sources>
TCMALLOC_COLD bool ThreadCache<Sources>::RefillDraining(uint8_t c) {
  ClassState& state = states_[c];
  state.drain.NoteAllocations(TakeAllocations(c));
  Chain chain;
  if (state.drain.MayDrain() || KeepsDraining(c)) {
    chain = source(c).FetchPast(DrainingFetch(c));
  }
  if (chain.empty()) {
    ResumeKeeping(c);
    return heads[c] != context_->codec->end;
  }
  heads[c] = chain.head;
  state.list_page = LowPageNumber(ObjectAt(chain.head));
  state.strays = 0;
  state.is_doubtful = false;
  state.room_at_free = INT16_MIN;
  state.capacity = static_cast<int16_t>(room[c] + static_cast<int>(chain.count));
  return true;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_DRAIN_INL_H_
