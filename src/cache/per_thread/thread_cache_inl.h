// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The slow paths of ThreadCache. Included by its header alone.

#ifndef TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_INL_H_
#define TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_INL_H_

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

namespace tcmalloc {

template <SourceTable Sources>
template <typename F>
void ThreadCache<Sources>::ForEachUsedClass(F f) const {
  for (size_t word = 0; word < std::size(used_classes_); ++word) {
    for (uint64_t bits = used_classes_[word]; bits != 0; bits &= bits - 1) {
      f(static_cast<uint8_t>(word * 64 + static_cast<size_t>(std::countr_zero(bits))));
    }
  }
}

// The scope of a change of a list's capacity, or of whether its class drains.
template <SourceTable Sources>
class ThreadCache<Sources>::ListChange {
 public:
  ListChange(ThreadCache& cache, uint8_t c) : cache_(cache), c_(c) {
    cache_.list_bytes_ -= cache_.ListBytes(c_);
  }
  ~ListChange() { cache_.list_bytes_ += cache_.ListBytes(c_); }
  ListChange(const ListChange&) = delete;
  ListChange& operator=(const ListChange&) = delete;

 private:
  ThreadCache& cache_;
  uint8_t c_;
};

// Lets the current list become longer, but not longer than `most`; requires that it is shorter.
// False if the budget does not allow it.
template <SourceTable Sources>
bool ThreadCache<Sources>::GrowCapacity(uint8_t c, uint32_t most) {
  ClassState& state = states_[c];
  const int wanted =
      static_cast<int>(std::clamp<uint32_t>(static_cast<uint32_t>(state.capacity) * 2, 1, most));
  const int more = AffordedObjects(c, wanted - state.capacity);
  if (TCMALLOC_UNLIKELY(more == 0)) return false;
  const ListChange change(*this, c);
  room[c] = static_cast<int16_t>(std::max<int>(room[c], 0) + more);
  state.capacity = static_cast<int16_t>(state.capacity + more);
  return true;
}

// How many of `wanted` more objects the current list may have room for.
template <SourceTable Sources>
int ThreadCache<Sources>::AffordedObjects(uint8_t c, int wanted) {
  const int64_t bytes = int64_t{wanted} * SizeOf(c);
  if (TCMALLOC_LIKELY(HasRoomFor(bytes)) || GrowShare(bytes)) return wanted;
  GiveUpOthers(c, bytes);
  const int64_t room_left = share_.limit() - cached_bytes_ - list_bytes_;
  return static_cast<int>(std::clamp<int64_t>(room_left / SizeOf(c), 0, wanted));
}

// Whether the budget makes room for `bytes` more.
template <SourceTable Sources>
bool ThreadCache<Sources>::GrowShare(int64_t bytes) {
  while (context_->budget->Grow(share_)) {
    if (HasRoomFor(bytes)) return true;
  }
  return false;
}

// Takes from the other classes in turn until `bytes` more fit: full chains, and of each list half
// of its capacity with all its objects.
template <SourceTable Sources>
void ThreadCache<Sources>::GiveUpOthers(uint8_t kept, int64_t bytes) {
  constexpr size_t kHalvings = 8;
  for (size_t i = 0; i < kHalvings * kSizeClassCount && !HasRoomFor(bytes); ++i) {
    const uint8_t c = next_given_up_;
    next_given_up_ = static_cast<uint8_t>((c + 1) % kSizeClassCount);
    if (c == kept || (used_classes_[c / 64] >> (c % 64) & 1) == 0) continue;
    ReturnOldest(c, states_[c].full.size());
    if (!HasRoomFor(bytes)) HalveList(c);
  }
}

template <SourceTable Sources>
void ThreadCache<Sources>::HalveList(uint8_t c) {
  ClassState& state = states_[c];
  if (!IsConsistent(c)) return;
  if (state.drain.active()) return FlushCurrent(c);
  const Chain chain = TakeCurrent(c);
  if (!chain.empty()) source(c).Insert(chain);
  const ListChange change(*this, c);
  state.capacity = static_cast<int16_t>(state.capacity / 2);
  room[c] = state.capacity;
}

// How many objects to ask the source for; grows with every miss.
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

template <SourceTable Sources>
Chain ThreadCache<Sources>::PopFull(uint8_t c) {
  ClassState& state = states_[c];
  BiasedLockHolder holder(chains_lock_);
  Chain chain;
  if (!state.full.empty()) {
    chain = state.full.Pop();
    NoteCached(-int64_t{chain.count} * SizeOf(c));
    chains_moved_ = true;
    state.popped = true;
  }
  state.LowerWater();
  return chain;
}

// What the current list is to be filled with. Empty if no memory can be had.
template <SourceTable Sources>
Chain ThreadCache<Sources>::NextChain(uint8_t c) {
  const Chain chain = PopFull(c);
  if (!chain.empty()) return chain;
  Source& source = context_->sources->Ensure(c);
  NoteUsed(c);
  states_[c].drain.NoteGrowth();
  if (AllocatedSinceCollection() >= CollectionInterval()) Collect();
  return source.Fetch(FetchCount(c));
}

// Fills the current list, which is empty.
template <SourceTable Sources>
void ThreadCache<Sources>::SetCurrent(uint8_t c, Chain chain) {
  ClassState& state = states_[c];
  const ListChange change(*this, c);
  state.capacity = std::max(state.capacity, static_cast<int16_t>(chain.count));
  state.strays = 0;
  room[c] = static_cast<int16_t>(state.capacity - chain.count);
  heads[c] = chain.head;
}

// Fills the current list, which is empty. False if no memory can be had.
template <SourceTable Sources>
bool ThreadCache<Sources>::Refill(uint8_t c) {
  if (TCMALLOC_UNLIKELY(states_[c].drain.active()) && RefillDraining(c)) return true;
  states_[c].drain.NoteRefill();
  const Chain chain = NextChain(c);
  if (!chain.empty()) SetCurrent(c, chain);
  return !chain.empty();
}

// Has the central list, which knows where objects begin, end the process if no object of class `c`
// can begin at `object`.
template <SourceTable Sources>
void ThreadCache<Sources>::CheckPlace(void* object, uint8_t c) const {
  if (TCMALLOC_LIKELY((reinterpret_cast<uintptr_t>(object) & MisplacedBits(c)) == 0)) return;
  context_->codec->Link(object, context_->codec->end);
  source(c).InsertPast({ReferenceTo(object), 1});
}

// What follows `object` in a list of class `c`: nothing, or what may well be an object.
template <SourceTable Sources>
ObjectReference ThreadCache<Sources>::CheckedNext(void* object, uint8_t c) const {
  const LinkCodec& codec = *context_->codec;
  const ObjectReference next = codec.Next(object);
  if (!codec.InWindow(next) && next != codec.end) {
    const Span* span = context_->page_map->FindInUse(ObjectAt(next));
    if (next != ReferenceTo(ObjectAt(next)) || span == nullptr || span->size_class != c) {
      CrashOnBadLink(*context_->page_map, object, c);
    }
  }
  return next;
}

// Takes the first object of a list whose link the fast path did not accept: the last one where
// the end lies outside the address window, one whose successor does, or one that was overwritten.
template <SourceTable Sources>
void* ThreadCache<Sources>::PopUnchecked(uint8_t c) {
  void* object = ObjectAt(heads[c]);
  heads[c] = CheckedNext(object, c);
  ++room[c];
  LinkWord(object) = 0;
  return object;
}

// An object for a signal handler that interrupted a fast path at the list of class `c`, which is
// empty. It is of a larger class, so that the handler's free leaves that list as the fast path has
// read it. A room that goes on to disagree was left wrong by a handler, and is set right.
template <SourceTable Sources>
TCMALLOC_COLD void* ThreadCache<Sources>::AllocateBeside(uint8_t c) {
  ClassState& state = states_[c];
  if (++state.strays == kMostStrays) {
    state.strays = 0;
    room[c] = static_cast<int16_t>(state.capacity);
  }
  const uint32_t alignment = SizeOf(c) & -SizeOf(c);
  size_t larger = c + size_t{1};
  while (larger < kSizeClassCount && kSizeClasses[larger].size % alignment != 0) ++larger;
  const auto served = larger < kSizeClassCount ? static_cast<uint8_t>(larger) : c;
  return FetchOne(context_->sources->Ensure(served), *context_->codec);
}

template <SourceTable Sources>
void* ThreadCache<Sources>::AllocateSlow(uint8_t c, size_t size) {
  if (heads[c] == context_->codec->end) {
    if (TCMALLOC_UNLIKELY(room[c] != states_[c].capacity)) return AllocateBeside(c);
    if (!Refill(c)) return nullptr;
  }
  if (TCMALLOC_UNLIKELY(header.clock.AdvanceSlow(size))) LeaveSharedLine(c);
  void* object = PopUnchecked(c);
  if (TCMALLOC_UNLIKELY(!HasRoomFor(0))) ReturnExcess(c);
  return object;
}

// After an allocation of class `c`. An empty list is given up first, so that an object larger than
// the share is not kept when it is freed.
template <SourceTable Sources>
void ThreadCache<Sources>::ReturnExcess(uint8_t c) {
  GiveUpEmptyList(c);
  GiveUpOthers(c, 0);
}

template <SourceTable Sources>
void ThreadCache<Sources>::GiveUpEmptyList(uint8_t c) {
  ClassState& state = states_[c];
  if (heads[c] != context_->codec->end || room[c] != state.capacity || state.drain.active()) return;
  const ListChange change(*this, c);
  state.capacity = 0;
  room[c] = 0;
}

// Replaces a list of small objects by one in a line of the thread's own if the thread uses its
// first object over and over. Other threads may use others of that line.
template <SourceTable Sources>
void ThreadCache<Sources>::LeaveSharedLine(uint8_t c) {
  if (SizeOf(c) >= ReuseWatch::kLineBytes || !watch_.IsStuckAt(ObjectAt(heads[c]))) return;
  if (!IsConsistent(c) || states_[c].drain.active()) return;
  const Chain line = source(c).FetchLine();
  if (line.empty()) return;
  watch_.MoveTo(ObjectAt(line.head));
  source(c).Insert(TakeCurrent(c));
  SetCurrent(c, line);
}

// Whether the current list is as long as its room says.
template <SourceTable Sources>
bool ThreadCache<Sources>::IsConsistent(uint8_t c) const {
  const ObjectReference end = context_->codec->end;
  ObjectReference reference = heads[c];
  int missing = states_[c].capacity - room[c];
  for (; missing > 0 && reference != end; --missing) {
    CheckPlace(ObjectAt(reference), c);
    reference = CheckedNext(ObjectAt(reference), c);
  }
  return missing == 0 && reference == end;
}

// The current list as a chain; the list is empty afterwards. Its length follows from the room,
// unless signal handlers got in between: then its end counts.
template <SourceTable Sources>
Chain ThreadCache<Sources>::TakeCurrent(uint8_t c) {
  const ObjectReference end = context_->codec->end;
  Chain chain{heads[c], static_cast<uint32_t>(std::max(states_[c].capacity - room[c], 1))};
  if (chain.head == end) chain.count = 0;
  if (!chain.empty()) CheckPlace(ObjectAt(chain.head), c);
  heads[c] = end;
  room[c] = static_cast<int16_t>(states_[c].capacity);
  return chain;
}

// How long frees alone may make the current list. A class that never missed a full batch may well
// be one that others allocate and this thread only frees: nothing is gained by keeping many.
template <SourceTable Sources>
uint32_t ThreadCache<Sources>::LongestList(uint8_t c) const {
  const uint32_t batch = Batch(c);
  return states_[c].max_chains > 0 ? batch : std::max(batch / 2, 1U);
}

// Requires that the current list has no room. Afterwards it has none only where the budget admits
// no object of the class.
template <SourceTable Sources>
void ThreadCache<Sources>::MakeRoom(uint8_t c) {
  const uint32_t most = LongestList(c);
  if (states_[c].capacity < static_cast<int>(most)) {
    NoteUsed(c);
    if (GrowCapacity(c, most)) return;
    const Chain chain = TakeCurrent(c);
    if (!chain.empty()) source(c).Insert(chain);
    return;
  }
  const Chain chain = TakeCurrent(c);
  if (!chain.empty()) KeepOrReturn(c, chain);
  if (states_[c].drain.NoteOverflow() && FitsBudget(DrainingBytes(c) - ListBytes(c))) {
    StartDraining(c);
  }
}

// Requires that the current list is empty.
template <SourceTable Sources>
void ThreadCache<Sources>::StartDraining(uint8_t c) {
  ClassState& state = states_[c];
  const ListChange change(*this, c);
  state.drain.Begin();
  state.leaving = {context_->codec->end, 0};
  state.capacity = -kDraining;
  room[c] = -kDraining;
}

// Returns what was leaving.
template <SourceTable Sources>
Chain ThreadCache<Sources>::StopDraining(uint8_t c) {
  ClassState& state = states_[c];
  const ListChange change(*this, c);
  const int length = state.capacity - room[c];
  state.drain.End();
  state.capacity = static_cast<int16_t>(std::max(static_cast<int>(LongestList(c)), length));
  room[c] = static_cast<int16_t>(state.capacity - length);
  return std::exchange(state.leaving, {});
}

// What was leaving is the first to be used again, unless a fast path is at the list or it has other
// objects.
template <SourceTable Sources>
void ThreadCache<Sources>::ResumeKeeping(uint8_t c) {
  const Chain chain = StopDraining(c);
  if (chain.empty()) return;
  const bool empty = heads[c] == context_->codec->end && room[c] == states_[c].capacity;
  if (empty) return SetCurrent(c, chain);
  if (chain.count == Batch(c)) return KeepOrReturn(c, chain);
  source(c).Insert(chain);
}

// How many objects were allocated since the last call, while the class drains.
template <SourceTable Sources>
uint32_t ThreadCache<Sources>::TakeAllocations(uint8_t c) {
  const int allocated = std::max(room[c] + kDraining, 0);
  room[c] = static_cast<int16_t>(room[c] - allocated);
  states_[c].capacity = static_cast<int16_t>(states_[c].capacity - allocated);
  return static_cast<uint32_t>(allocated);
}

// Whether a class that drained, and no longer does, should be treated as before.
template <SourceTable Sources>
bool ThreadCache<Sources>::Settles(uint8_t c) {
  return states_[c].drain.MaySettle() && source(c).IsSparse();
}

// What the thread keeps in full chains would only be in the way of a class that drains.
template <SourceTable Sources>
void ThreadCache<Sources>::FreeDraining(void* object, uint8_t c) {
  ClassState& state = states_[c];
  const uint32_t batch = Batch(c);
  context_->codec->Link(object, state.leaving.head);
  state.leaving.head = ReferenceTo(object);
  ++state.leaving.count;
  state.drain.NoteFree();
  if (state.leaving.count < state.drain.NextLook(batch)) return;
  state.drain.NoteAllocations(TakeAllocations(c));
  if (!state.drain.Drains() && !Settles(c)) return ResumeKeeping(c);
  if (state.leaving.count < batch) return;
  FlushFull(c);
  source(c).InsertPast(std::exchange(state.leaving, {context_->codec->end, 0}));
  state.drain.NoteBatch();
}

// Fills the current list, which is empty, of a class that drains. False if it drains no longer, for
// that reason or for want of memory, and nothing was leaving.
template <SourceTable Sources>
bool ThreadCache<Sources>::RefillDraining(uint8_t c) {
  ClassState& state = states_[c];
  state.drain.NoteAllocations(TakeAllocations(c));
  Chain chain;
  if (state.drain.MayDrain() || Settles(c)) {
    chain = source(c).FetchPast(DrainingFetch(c));
  }
  if (chain.empty()) {
    ResumeKeeping(c);
    return heads[c] != context_->codec->end;
  }
  heads[c] = chain.head;
  state.capacity = static_cast<int16_t>(room[c] + static_cast<int>(chain.count));
  return true;
}

// A chain beyond what the class keeps in any order goes past all caches if it is scattered.
template <SourceTable Sources>
void ThreadCache<Sources>::KeepOrReturn(uint8_t c, Chain chain) {
  ClassState& state = states_[c];
  const int64_t bytes = int64_t{chain.count} * SizeOf(c);
  const auto next = [this, c](void* object) { return CheckedNext(object, c); };
  if (state.full.size() * bytes >= kScatterKeptBytes && IsScattered(SizeOf(c), chain, next)) {
    return source(c).InsertPast(chain);
  }
  if (state.full.size() >= state.max_chains) {
    source(c).Insert(chain);
    NoteOverage(state);
  } else if (!FitsBudget(bytes) || !PushFull(c, chain)) {
    source(c).Insert(chain);
  }
}

// False if there was no memory to note it.
template <SourceTable Sources>
bool ThreadCache<Sources>::PushFull(uint8_t c, Chain chain) {
  BiasedLockHolder holder(chains_lock_);
  if (!states_[c].full.Push(chain, *context_->arrays)) return false;
  NoteCached(int64_t{chain.count} * SizeOf(c));
  chains_moved_ = true;
  return true;
}

template <SourceTable Sources>
void ThreadCache<Sources>::NoteOverage(ClassState& state) {
  if (++state.overages <= kMaxOverages) return;
  state.overages = 0;
  if (state.max_chains > 1) --state.max_chains;
}

// Whether the cache may grow by `bytes`, if need be after a collection or with a larger share. A
// cache whose share became less than it holds gives up some.
template <SourceTable Sources>
bool ThreadCache<Sources>::FitsBudget(int64_t bytes) {
  if (HasRoomFor(bytes)) return true;
  if (AllocatedSinceCollection() >= CollectionInterval()) Collect();
  if (HasRoomFor(bytes) || GrowShare(bytes)) return true;
  if (!HasRoomFor(0)) GiveUpOthers(0, 0);
  return false;
}

template <SourceTable Sources>
void ThreadCache<Sources>::FreeSlow(void* object, uint8_t c) {
  if (room[c] <= 0 && !states_[c].drain.active()) MakeRoom(c);
  if (TCMALLOC_UNLIKELY(states_[c].drain.active())) return FreeDraining(object, c);
  if (TCMALLOC_UNLIKELY(room[c] <= 0)) {
    context_->codec->Link(object, context_->codec->end);
    return source(c).Insert({ReferenceTo(object), 1});
  }
  --room[c];
  context_->codec->Link(object, heads[c]);
  heads[c] = ReferenceTo(object);
}

template <SourceTable Sources>
bool ThreadCache<Sources>::Holds(const void* object, uint8_t c, bool by_owner) {
  if (CurrentHolds(object, c)) return true;
  if (by_owner) {
    BiasedLockHolder holder(chains_lock_);
    return FullHolds(object, c);
  }
  // Without the lock the owner might take the array of chains away under the reader.
  if (!chains_lock_.TryLockByOther()) return false;
  const bool found = FullHolds(object, c);
  chains_lock_.UnlockByOther();
  return found;
}

// Of the lists that only their owner changes, by plain writes.
template <SourceTable Sources>
__attribute__((no_sanitize("thread"))) bool ThreadCache<Sources>::CurrentHolds(const void* object,
                                                                               uint8_t c) const {
  const ClassState& state = states_[c];
  const int length = state.capacity - room[c];
  const Chain current{heads[c], static_cast<uint32_t>(std::max(length, 0))};
  return ChainHolds(current, object, c) || ChainHolds(state.leaving, object, c);
}

template <SourceTable Sources>
bool ThreadCache<Sources>::FullHolds(const void* object, uint8_t c) const {
  const ChainStack& full = states_[c].full;
  for (uint32_t i = 0; i < full.size(); ++i) {
    if (ChainHolds(full.at(i), object, c)) return true;
  }
  return false;
}

// Follows no link that does not lead to an object of class `c`, for the owner may change the list
// meanwhile.
template <SourceTable Sources>
__attribute__((no_sanitize("thread"))) bool ThreadCache<Sources>::ChainHolds(Chain chain,
                                                                             const void* object,
                                                                             uint8_t c) const {
  for (; chain.count > 0; --chain.count) {
    void* element = ObjectAt(chain.head);
    if (element == object) return true;
    const Span* span = context_->page_map->FindInUse(element);
    if (span == nullptr || span->size_class != c) return false;
    chain.head = context_->codec->Decode(const_cast<const volatile uint64_t&>(LinkWord(element)));
  }
  return false;
}

// Takes up to `most` of the oldest full chains of a class.
template <SourceTable Sources>
uint32_t ThreadCache<Sources>::TakeOldest(uint8_t c, uint32_t most, Chain* out) {
  ChainStack& full = states_[c].full;
  const uint32_t count = std::min<uint32_t>(most, full.size());
  for (uint32_t i = 0; i < count; ++i) {
    out[i] = full.at(i);
    NoteCached(-int64_t{out[i].count} * SizeOf(c));
  }
  full.DropOldest(count);
  states_[c].LowerWater();
  return count;
}

// Returns `count` of the oldest full chains of a class to the source, or all if there are fewer, a
// few at a time: whatever takes them then may take long.
template <SourceTable Sources>
void ThreadCache<Sources>::ReturnOldest(uint8_t c, uint32_t count) {
  Chain chains[kChainsAtOnce];
  for (uint32_t taken = kChainsAtOnce; count > 0 && taken > 0; count -= taken) {
    {
      BiasedLockHolder holder(chains_lock_);
      taken = TakeOldest(c, std::min(count, kChainsAtOnce), chains);
    }
    for (uint32_t i = 0; i < taken; ++i) source(c).Insert(chains[i]);
  }
}

// The same by another thread, which leaves them where the owner is at them.
template <SourceTable Sources>
void ThreadCache<Sources>::ReturnOldestByOther(uint8_t c, uint32_t count) {
  Chain chains[kChainsAtOnce];
  for (uint32_t taken = kChainsAtOnce; count > 0 && taken > 0; count -= taken) {
    if (!chains_lock_.TryLockByOther()) return;
    taken = TakeOldest(c, std::min(count, kChainsAtOnce), chains);
    chains_lock_.UnlockByOther();
    for (uint32_t i = 0; i < taken; ++i) source(c).Insert(chains[i]);
  }
}

template <SourceTable Sources>
void ThreadCache<Sources>::ReleaseIdle(bool by_owner) {
  if (chains_moved_) {
    chains_moved_ = false;
    return;
  }
  ForEachUsedClass([this, by_owner](uint8_t c) {
    const uint32_t half = (states_[c].full.size() + 1) / 2;
    by_owner ? ReturnOldest(c, half) : ReturnOldestByOther(c, half);
  });
}

template <SourceTable Sources>
void ThreadCache<Sources>::ReleaseFull() {
  ForEachUsedClass([this](uint8_t c) { ReturnOldestByOther(c, states_[c].full.size()); });
}

template <SourceTable Sources>
uint32_t ThreadCache<Sources>::LowWater(uint8_t c) {
  BiasedLockHolder holder(chains_lock_);
  return states_[c].low_water;
}

template <SourceTable Sources>
void ThreadCache<Sources>::NoteCollected(uint8_t c) {
  BiasedLockHolder holder(chains_lock_);
  states_[c].low_water = static_cast<uint16_t>(states_[c].full.size());
}

template <SourceTable Sources>
void ThreadCache<Sources>::CollectClass(uint8_t c) {
  ClassState& state = states_[c];
  const uint32_t unused = LowWater(c);
  ReturnOldest(c, state.popped ? (unused + 1) / 2 : unused);
  state.popped = false;
  if (unused != 0 && state.max_chains > 1) --state.max_chains;
  NoteCollected(c);
  CollectCurrent(c);
  state.head_at_collection = heads[c];
}

// A list whose head did not change since the last collection was most likely not used, and its
// class starts slowly again. One that was used goes back if each of its objects may be the last
// that keeps a span from draining.
template <SourceTable Sources>
void ThreadCache<Sources>::CollectCurrent(uint8_t c) {
  ClassState& state = states_[c];
  const bool unused = heads[c] == state.head_at_collection;
  if (!unused && (state.drain.active() || !source(c).IsSparse())) return;
  if (!IsConsistent(c)) return;
  if (state.drain.active()) ResumeKeeping(c);
  if (heads[c] == context_->codec->end) return;
  source(c).Insert(TakeCurrent(c));
  if (!unused) return;
  const ListChange change(*this, c);
  state.capacity = 0;
  room[c] = 0;
}

template <SourceTable Sources>
void ThreadCache<Sources>::Collect() {
  ForEachUsedClass([this](uint8_t c) {
    CollectClass(c);
    source(c).ReturnUnused();
  });
  allocated_at_collection_ = header.clock.allocated_bytes();
}

template <SourceTable Sources>
void ThreadCache<Sources>::FlushFull(uint8_t c) {
  for (Chain chain = PopFull(c); !chain.empty(); chain = PopFull(c)) source(c).Insert(chain);
  BiasedLockHolder holder(chains_lock_);
  states_[c].full.Clear(*context_->arrays);
  states_[c].low_water = 0;
}

template <SourceTable Sources>
void ThreadCache<Sources>::FlushCurrent(uint8_t c) {
  if (states_[c].drain.active()) {
    const Chain leaving = StopDraining(c);
    if (!leaving.empty()) source(c).Insert(leaving);
  }
  const Chain chain = TakeCurrent(c);
  if (!chain.empty()) source(c).Insert(chain);
  const ListChange change(*this, c);
  BiasedLockHolder holder(chains_lock_);
  states_[c] = {};
  room[c] = 0;
}

template <SourceTable Sources>
void ThreadCache<Sources>::FlushFrom(uint8_t first) {
  ForEachUsedClass([this, first](uint8_t c) {
    if (c < first) return;
    FlushFull(c);
    if (IsConsistent(c)) FlushCurrent(c);
  });
}

template <SourceTable Sources>
void ThreadCache<Sources>::Park() {
  Close();
  Flush();
  context_->budget->Leave(share_);
}

template <SourceTable Sources>
void ThreadCache<Sources>::Retire() {
  Close();
  ForEachUsedClass([this](uint8_t c) {
    FlushFull(c);
    FlushCurrent(c);
  });
  context_->budget->Leave(share_);
}

template <SourceTable Sources>
void ThreadCache<Sources>::CheckLeaving(uint8_t c) const {
  Chain chain = states_[c].leaving;
  if (!states_[c].drain.active()) {
    TCMALLOC_CHECK_EQ(chain.count, 0u);
    return;
  }
  TCMALLOC_CHECK_LE(chain.count + 1, Batch(c));
  for (; chain.count > 0; --chain.count) chain.head = context_->codec->Next(ObjectAt(chain.head));
  TCMALLOC_CHECK_EQ(chain.head, context_->codec->end);
}

template <SourceTable Sources>
void ThreadCache<Sources>::CheckInvariants() const {
  TCMALLOC_CHECK_EQ(room[0], 0);
  int64_t bytes = 0;
  int64_t list_bytes = 0;
  for (size_t i = 1; i < kSizeClassCount; ++i) {
    const auto c = static_cast<uint8_t>(i);
    const ClassState& state = states_[c];
    list_bytes += ListBytes(c);
    TCMALLOC_CHECK_LE(LeastRoom(c), room[c]);
    TCMALLOC_CHECK_LE(room[c], state.capacity);
    TCMALLOC_CHECK_LE(state.capacity, LeastRoom(c) + static_cast<int>(BatchIfMade(c)));
    TCMALLOC_CHECK_LE(state.low_water, state.full.size());
    ObjectReference reference = heads[c];
    for (int length = state.capacity - room[c]; length > 0; --length) {
      reference = context_->codec->Next(ObjectAt(reference));
    }
    TCMALLOC_CHECK_EQ(reference, context_->codec->end);
    CheckLeaving(c);
    for (uint32_t j = 0; j < state.full.size(); ++j) {
      TCMALLOC_CHECK_EQ(state.full.at(j).count, Batch(c));
      bytes += int64_t{state.full.at(j).count} * SizeOf(c);
    }
  }
  TCMALLOC_CHECK_EQ(cached_bytes_, bytes);
  TCMALLOC_CHECK_EQ(list_bytes_, list_bytes);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_INL_H_
