// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The bounds on the objects of each size class in a ThreadCache. Included by thread_cache.h alone.

#ifndef TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_ROOM_INL_H_
#define TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_ROOM_INL_H_

#include <algorithm>
#include <cstdint>
#include <utility>

namespace tcmalloc {

// Lets the current list become longer, up to `most`. Requires that it is shorter. Returns false if
// the budget does not allow it.
template <SourceTable Sources>
bool ThreadCache<Sources>::GrowCapacity(uint8_t c, uint32_t most) {
  ClassState& state = states_[c];
  const uint32_t doubled =
      state.capacity > 0 ? static_cast<uint32_t>(state.capacity) * 2 : FirstCapacity(c);
  const int wanted = static_cast<int>(std::min(doubled, most));
  const int more = AffordedObjects(c, wanted - state.capacity);
  if (TCMALLOC_UNLIKELY(more == 0)) return false;
  room[c] = static_cast<int16_t>(std::max<int>(room[c], 0) + more);
  SetCapacity(c, state.capacity + more);
  return true;
}

// Changes how many objects the current list may hold; requires that the class does not drain.
template <SourceTable Sources>
TCMALLOC_NOINLINE void ThreadCache<Sources>::SetCapacity(uint8_t c, int capacity) {
  ClassState& state = states_[c];
  TCMALLOC_DCHECK(!state.drain.active());
  list_bytes_ += (int64_t{capacity} - state.capacity) * SizeOf(c);
  const int longer = ObjectsBeyondTwo(c, capacity) - ObjectsBeyondTwo(c, state.capacity);
  if (TCMALLOC_UNLIKELY(longer != 0)) {
    context_->budget->NoteLongLists(share_, int64_t{longer} * SizeOf(c));
  }
  state.capacity = static_cast<int16_t>(capacity);
}

// Works as SetCapacity where the current list is empty, and so has room for all.
template <SourceTable Sources>
TCMALLOC_ALWAYS_INLINE void ThreadCache<Sources>::ResizeEmptyList(uint8_t c, int capacity) {
  SetCapacity(c, capacity);
  room[c] = static_cast<int16_t>(capacity);
}

// Returns how many of `wanted` more objects the current list may have room for.
template <SourceTable Sources>
int ThreadCache<Sources>::AffordedObjects(uint8_t c, int wanted) {
  const int64_t bytes = int64_t{wanted} * SizeOf(c);
  if (TCMALLOC_LIKELY(HasRoomFor(bytes)) || GrowShare(bytes)) return wanted;
  GiveUpOthers(c, bytes);
  const int64_t room_left = share_.limit() - HeldBytes();
  return static_cast<int>(std::clamp<int64_t>(room_left / SizeOf(c), 0, wanted));
}

// Asks the budget for room until `bytes` more fit. Returns true if they do.
template <SourceTable Sources>
bool ThreadCache<Sources>::GrowShare(int64_t bytes) {
  while (context_->budget->Grow(share_)) {
    if (HasRoomFor(bytes)) return true;
  }
  return false;
}

// Returns how many objects a class gives up of those that it keeps so that `bytes` more fit: as
// many as that takes, if it has so many, and not so few that the next request comes at once.
template <SourceTable Sources>
uint32_t ThreadCache<Sources>::ObjectsToGiveUp(uint8_t c, int64_t bytes) const {
  const uint32_t kept = states_[c].kept;
  if (kept == 0) return 0;
  const int64_t missing = HeldBytes() + bytes - share_.limit();
  const auto needed = static_cast<uint32_t>((missing + SizeOf(c) - 1) / SizeOf(c));
  return std::min(std::max(needed, kept / kGivenUpShare + 1), kept);
}

// Takes from the other classes in turn until `bytes` more fit. A class gives up full chains, and if
// these do not suffice half of its list's capacity with all of its objects.
template <SourceTable Sources>
void ThreadCache<Sources>::GiveUpOthers(uint8_t kept, int64_t bytes) {
  constexpr size_t kHalvings = 8;
  for (size_t i = 0; i < kHalvings * kSizeClassCount && !HasRoomFor(bytes); ++i) {
    const uint8_t c = next_given_up_;
    next_given_up_ = static_cast<uint8_t>((c + 1) % kSizeClassCount);
    if (c == kept || (used_classes_[c / 64] >> (c % 64) & 1) == 0) continue;
    ReturnOldest(c, ObjectsToGiveUp(c, bytes));
    if (!HasRoomFor(bytes)) HalveList(c);
  }
}

template <SourceTable Sources>
void ThreadCache<Sources>::HalveList(uint8_t c) {
  ClassState& state = states_[c];
  if (!IsConsistent(c)) return;
  if (state.drain.active()) {
    FlushFull(c);
    return FlushCurrent(c);
  }
  ReturnCurrent(c);
  ResizeEmptyList(c, state.capacity / 2);
}

// Returns the number of objects to ask the source for. It grows with every miss.
template <SourceTable Sources>
uint32_t ThreadCache<Sources>::FetchCount(uint8_t c) {
  ClassState& state = states_[c];
  const uint32_t batch = Batch(c);
  const auto capacity = static_cast<uint32_t>(state.capacity);
  if (capacity < batch) {
    GrowCapacity(c, batch);
    return std::max(static_cast<uint32_t>(state.capacity), 1U);
  }
  if (state.max_chains < kMaxChains) ++state.max_chains;
  return batch;
}

// Called after an allocation of class `c`. Gives up an empty list first, so that an object larger
// than the share is not kept when it is freed.
template <SourceTable Sources>
void ThreadCache<Sources>::ReturnExcess(uint8_t c) {
  GiveUpEmptyList(c);
  GiveUpOthers(c, 0);
}

template <SourceTable Sources>
void ThreadCache<Sources>::GiveUpEmptyList(uint8_t c) {
  if (HasEmptyList(c) && !states_[c].drain.active()) ResizeEmptyList(c, 0);
}

// Returns the length to which frees alone may grow the current list. A class that never missed a
// full batch may be one that other threads allocate and this thread only frees; keeping many would
// gain nothing.
template <SourceTable Sources>
uint32_t ThreadCache<Sources>::LongestList(uint8_t c) const {
  const uint32_t batch = Batch(c);
  if (states_[c].frees_at_random()) return std::min(batch, kScatterListObjects);
  return states_[c].max_chains > 0 ? batch : std::max(batch / 2, 1U);
}

// Returns true if a class may begin to drain: it is large, there is room for that, and the full
// current list agrees with its room. Where it does not, the fast path that a signal handler has
// interrupted goes by that room, and CorrectList by the chains of a class that does not drain.
// Counts the list last, because a trial for which there is no room stays the next one.
template <SourceTable Sources>
TCMALLOC_COLD bool ThreadCache<Sources>::MayBeginToDrain(uint8_t c) {
  if (source(c).SpanBytes() < DrainWatch::kLeastBytes) return false;
  if (!FitsBudget(DrainingBytes(c) - ListBytes(c))) return false;
  const auto length = static_cast<uint32_t>(states_[c].capacity - room[c]);
  return CountUpTo(length + 1, c, heads[c]) == length;
}

// Makes room in a full current list. Afterwards the list is full only if the budget admits no
// object of the class.
template <SourceTable Sources>
TCMALLOC_ALWAYS_INLINE void ThreadCache<Sources>::MakeRoom(uint8_t c) {
  const uint32_t most = LongestList(c);
  if (states_[c].capacity < static_cast<int>(most)) {
    NoteUsed(c);
    if (!GrowCapacity(c, most)) ReturnCurrent(c);
    return;
  }
  const bool may_drain = states_[c].drain.IsTrialNext() && MayBeginToDrain(c);
  const bool both_leave = BothLeave(c);
  if (!both_leave && Lengthen(c)) return;
  if (!PutListInBins(c)) {
    const Chain older = TakeOlder(c);
    const Chain newer = both_leave ? TakeBeside(c) : Chain();
    KeepIfWhole(c, older);
    KeepIfWhole(c, newer);
  }
  // A trial is never the first overflow, so a long newer batch has left.
  if (states_[c].drain.NoteOverflow() && may_drain && FitsBudget(DrainingBytes(c) - ListBytes(c))) {
    KeepIfWhole(c, TakeCurrent(c));
    StartDraining(c);
  }
}

// Returns true if a full current list of short batches, which holds two or more, may become twice
// as long in place of full chains.
template <SourceTable Sources>
bool ThreadCache<Sources>::MayDouble(uint8_t c) const {
  const ClassState& state = states_[c];
  const uint32_t batch = Batch(c);
  const uint32_t longer = 2 * static_cast<uint32_t>(state.capacity);
  if (batch >= kLongBatch || longer > kListObjects || longer * SizeOf(c) > kListBytes) return false;
  return state.kept + longer <= (state.max_chains + 1U) * batch &&
         !IsWorthMoreAsPages(c, FullBytes(c)) &&
         context_->budget->HasRoomForLongLists(int64_t{state.capacity} * SizeOf(c));
}

// Lets a class whose current list is full hold twice as much, in place of full chains. Returns
// false if there may be none, if the list is as long as it may be, or if the budget does not allow
// it.
template <SourceTable Sources>
TCMALLOC_ALWAYS_INLINE bool ThreadCache<Sources>::Lengthen(uint8_t c) {
  ClassState& state = states_[c];
  const int capacity = state.capacity;
  if (state.max_chains == 0 || !state.beside.empty()) return false;
  if (capacity != static_cast<int>(Batch(c)) && !MayDouble(c)) return false;
  const int64_t bytes = int64_t{capacity} * SizeOf(c);
  if (!HasRoomFor(bytes) && !GrowShare(bytes)) return false;
  if (Batch(c) < kLongBatch) {
    room[c] = static_cast<int16_t>(std::max<int>(room[c], 0) + capacity);
    SetCapacity(c, 2 * capacity);
  } else {
    SetBeside(c, TakeCurrent(c));
  }
  return true;
}

// Sets a batch aside, or nothing. Requires that nothing is, and that the class does not drain.
template <SourceTable Sources>
void ThreadCache<Sources>::SetBeside(uint8_t c, Chain chain) {
  states_[c].beside = chain;
  list_bytes_ += int64_t{chain.count} * SizeOf(c);
}

// Takes the batch beside the current list; empty if there is none. Requires that the class does not
// drain.
template <SourceTable Sources>
TCMALLOC_NOINLINE Chain ThreadCache<Sources>::TakeBeside(uint8_t c) {
  const Chain chain = std::exchange(states_[c].beside, {});
  list_bytes_ -= int64_t{chain.count} * SizeOf(c);
  return chain;
}

// Fills the empty current list with the batch beside it, which there is. The list may grow by as
// much, so that a few frees and allocations in turn do not set it aside each time.
template <SourceTable Sources>
TCMALLOC_NOINLINE void ThreadCache<Sources>::TakeBack(uint8_t c) {
  const Chain chain = TakeBeside(c);
  SetCapacity(c, states_[c].capacity + static_cast<int>(chain.count));
  SetCurrent(c, chain);
}

// Takes the older batch of two. A newer one that is long is beside the current list from then on,
// which holds one batch. Counts what it cut off a list of two, because CorrectList looks at the
// chains that were put away last.
template <SourceTable Sources>
Chain ThreadCache<Sources>::TakeOlder(uint8_t c) {
  Chain older = TakeBeside(c);
  if (older.empty()) older = TakeOldestOfList(c);
  if (Batch(c) < kLongBatch) return older;
  SetBeside(c, TakeCurrent(c));
  if (HoldOneBatch(c)) older.count = CountUpTo(older.count, c, older.head);
  return older;
}

// Makes the empty current list of a class with long batches hold one at most. Returns true if it
// might hold two.
template <SourceTable Sources>
TCMALLOC_NOINLINE bool ThreadCache<Sources>::HoldOneBatch(uint8_t c) {
  const auto batch = static_cast<int>(Batch(c));
  if (Batch(c) < kLongBatch || states_[c].capacity <= batch) return false;
  ResizeEmptyList(c, batch);
  return true;
}

// Cuts off what follows the first n objects of a chain that says it has more, and corrects its
// count. Returns it; nothing if the chain ends sooner.
template <SourceTable Sources>
TCMALLOC_NOINLINE Chain ThreadCache<Sources>::CutOff(uint8_t c, uint32_t n, Chain* chain) const {
  const ObjectReference end = context_->codec->end;
  void* last = nullptr;
  ObjectReference next = chain->head;
  uint32_t count = 0;
  for (; count < n && next != end; ++count) {
    last = ObjectAt(next);
    next = NextOf(last, c);
  }
  const uint32_t rest = chain->count - count;
  chain->count = count;
  if (TCMALLOC_UNLIKELY(next == end)) return {};
  CheckPlace(ObjectAt(next), c);
  context_->codec->Link(last, end);
  return {next, rest};
}

// Takes the objects of the current list that were freed first, and leaves half of them but at least
// a batch; takes all where there is no more than that. A list that ends sooner than its room says
// was left so by a signal handler; it goes with the length that it has, because the room may say
// more than a batch.
template <SourceTable Sources>
Chain ThreadCache<Sources>::TakeOldestOfList(uint8_t c) {
  const uint32_t batch = Batch(c);
  const int length = states_[c].capacity - std::max<int>(room[c], 0);
  if (length <= static_cast<int>(batch)) return TakeCurrent(c);
  Chain newer{heads[c], static_cast<uint32_t>(length)};
  const Chain older = CutOff(c, std::max(batch, newer.count / 2), &newer);
  room[c] = static_cast<int16_t>(states_[c].capacity - static_cast<int>(newer.count));
  return TCMALLOC_LIKELY(!older.empty()) ? Counted(c, older) : TakeCurrent(c);
}

// Returns the current list and what is beside it to the source, in chains of a batch at most.
template <SourceTable Sources>
void ThreadCache<Sources>::ReturnCurrent(uint8_t c, Past past) {
  Chain chain = TakeBeside(c);
  if (chain.empty()) chain = TakeOldestOfList(c);
  for (; !chain.empty(); chain = TakeOldestOfList(c)) ReturnChain(c, chain, past);
}

// Returns a chain to the source, past all caches if it shall be so.
template <SourceTable Sources>
TCMALLOC_NOINLINE void ThreadCache<Sources>::ReturnChain(uint8_t c, Chain chain, Past past) const {
  const bool past_caches = past == Past::kCachesIfScattered
                               ? ScatterOf(c, chain) == Scatter::kFarApart
                               : past == Past::kCaches;
  past_caches ? source(c).InsertPast(chain) : InsertInBatches(c, chain);
}

// Returns a chain to the source, in chains of a batch at most.
template <SourceTable Sources>
TCMALLOC_NOINLINE void ThreadCache<Sources>::InsertInBatches(uint8_t c, Chain chain) const {
  while (TCMALLOC_UNLIKELY(chain.count > Batch(c))) {
    const Chain rest = CutOff(c, Batch(c), &chain);
    source(c).Insert(chain);
    chain = rest;
  }
  if (!chain.empty()) source(c).Insert(chain);
}

// Stores a chain of a batch or more, or returns it. Returns any other.
template <SourceTable Sources>
TCMALLOC_NOINLINE void ThreadCache<Sources>::KeepIfWhole(uint8_t c, Chain chain) {
  if (chain.empty()) return;
  if (chain.count >= Batch(c)) return KeepOrReturn(c, chain);
  ClassState& state = states_[c];
  if (state.frees_at_random() && ScatterOf(c, chain) == Scatter::kFarApart) {
    return source(c).InsertPast(chain);
  }
  state.sent_home = 0;
  source(c).Insert(chain);
}

// A function of its own, because most chains need not be looked at. The chain may end early.
template <SourceTable Sources>
TCMALLOC_NOINLINE Scatter ThreadCache<Sources>::ScatterOf(uint8_t c, Chain chain) const {
  const ObjectReference end = context_->codec->end;
  const auto next = [this, c, end](const void* object) {
    return object == ObjectAt(end) ? object : ObjectAt(NextOf(const_cast<void*>(object), c));
  };
  return JudgeScatter(SizeOf(c), ObjectAt(chain.head), chain.count, next);
}

// Returns a scattered chain to its spans. The last one of a long run takes with it what the class
// kept in any order, which are its oldest chains, so that the next objects come from the spans, in
// address order.
template <SourceTable Sources>
TCMALLOC_COLD void ThreadCache<Sources>::SendHome(uint8_t c, Chain chain) {
  ClassState& state = states_[c];
  source(c).InsertPast(chain);
  if (state.frees_at_random()) return;
  const uint32_t bytes = chain.count * SizeOf(c);
  state.sent_home += bytes;
  if (!state.frees_at_random()) return;
  ReturnOldest(c, (kScatterKeptBytes + bytes - 1) / bytes * chain.count, Past::kCaches);
  ShortenList(c);
}

// Lets the current list of a class that frees at random hold few objects, if it is empty. They come
// back in any order, and may be all that their spans lack.
template <SourceTable Sources>
void ThreadCache<Sources>::ShortenList(uint8_t c) {
  const ClassState& state = states_[c];
  const auto most = static_cast<int>(LongestList(c));
  if (!HasEmptyList(c) || state.capacity <= most || state.drain.active()) return;
  ResizeEmptyList(c, most);
}

// Returns true if near objects in this order are worth more in their spans than in the cache.
template <SourceTable Sources>
bool ThreadCache<Sources>::GoesHome(const ClassState& state, Scatter scatter) const {
  if (scatter == Scatter::kInRows) return false;
  return state.outgrowth.active() ||
         (scatter == Scatter::kNear && share_.full_bytes >= kNearKeptBytes);
}

// Returns true if `count` more objects may be kept. Those of the list beyond a batch count as well.
template <SourceTable Sources>
TCMALLOC_ALWAYS_INLINE bool ThreadCache<Sources>::MayKeep(uint8_t c, uint32_t count) const {
  const ClassState& state = states_[c];
  const auto batch = static_cast<int64_t>(Batch(c));
  const int64_t in_list = std::max(state.capacity - batch, int64_t{0}) + state.beside.count;
  return int64_t{state.kept} - state.binned + in_list + count <= state.max_chains * batch;
}

// Returns the bytes that a class may keep in any order.
template <SourceTable Sources>
TCMALLOC_ALWAYS_INLINE int64_t ThreadCache<Sources>::MostInAnyOrder() const {
  return TCMALLOC_LIKELY(share_.full_bytes < kNearKeptBytes) ? kScatterKeptBytes
                                                             : kScatterKeptBesideMuch;
}

// Stores a chain or returns it. Beyond the bytes that a class keeps in any order, scattered chains
// and those that are worth more as pages go past all caches. So do near ones out of order where the
// thread keeps more than a core's own caches hold, or where the class outgrew the cache. Each was
// freed just now, and will not be in those caches when it is used again.
template <SourceTable Sources>
void ThreadCache<Sources>::KeepOrReturn(uint8_t c, Chain chain) {
  ClassState& state = states_[c];
  const int64_t bytes = int64_t{chain.count} * SizeOf(c);
  const int64_t kept = FullBytes(c);
  Scatter scatter = Scatter::kInRows;
  if (kept >= MostInAnyOrder() || state.frees_at_random()) {
    if (kept >= kScatterKeptBytes && IsWorthMoreAsPages(c, kept)) {
      return source(c).InsertPast(chain);
    }
    scatter = ScatterOf(c, chain);
    if (scatter == Scatter::kFarApart) {
      if (!PutInBins(c, chain)) SendHome(c, chain);
      return;
    }
    if (GoesHome(state, scatter)) {
      if (state.outgrowth.active()) state.outgrowth.NoteSentHome(static_cast<uint32_t>(bytes));
      return source(c).InsertPast(chain);
    }
  }
  const bool may_keep = MayKeep(c, chain.count);
  const bool fits = may_keep && FitsBudget(bytes) && PushFull(c, chain);
  if (may_keep) state.outgrowth.NoteKept(scatter, kept, fits);
  if (fits) return;
  InsertInBatches(c, chain);
  if (!may_keep) NoteOverage(state);
}

// Keeps a chain. Returns false if there was no memory to record it.
template <SourceTable Sources>
TCMALLOC_ALWAYS_INLINE bool ThreadCache<Sources>::PushFull(uint8_t c, Chain chain) {
  BiasedLockHolder holder(chains_lock_);
  if (!states_[c].full.Push(chain, *context_->arrays)) return false;
  NoteKept(c, chain.count);
  chains_moved_ += 1;
  return true;
}

template <SourceTable Sources>
void ThreadCache<Sources>::NoteOverage(ClassState& state) {
  if (++state.overages <= kMaxOverages) return;
  state.overages = 0;
  if (state.max_chains > 1) --state.max_chains;
}

// Makes room for `bytes` more, for which there is none, by a collection or with a larger share.
// Returns true if they fit then. A cache that holds more than its reduced share gives up some.
template <SourceTable Sources>
TCMALLOC_NOINLINE bool ThreadCache<Sources>::MakeRoomFor(int64_t bytes) {
  if (AllocatedSinceCollection() >= CollectionInterval()) Collect();
  if (HasRoomFor(bytes) || GrowShare(bytes)) return true;
  if (!HasRoomFor(0)) GiveUpOthers(0, 0);
  return false;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_ROOM_INL_H_
