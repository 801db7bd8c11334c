// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The slow paths of malloc and free in ThreadCache. Included by thread_cache.h alone.

#ifndef TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_INL_H_
#define TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_INL_H_

#include <algorithm>
#include <bit>
#include <iterator>

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

// Guards, for its scope, a change of whether a class drains, and with it of the bytes of its list.
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

// Takes the newest full chain or, if there is none, some objects of the bins.
template <SourceTable Sources>
Chain ThreadCache<Sources>::PopKept(uint8_t c) {
  ClassState& state = states_[c];
  BiasedLockHolder holder(chains_lock_);
  Chain chain;
  if (!state.full.empty()) {
    chain = state.full.Pop();
  } else if (TCMALLOC_UNLIKELY(state.binned > 0)) {
    chain = TakeOfBins(c);
  }
  if (!chain.empty()) {
    NoteKept(c, -int64_t{chain.count});
    chains_moved_ += 1;
    state.popped = true;
    state.popped_since_growth = true;
  }
  UpdateLowWater(c);
  return chain;
}

template <SourceTable Sources>
void ThreadCache<Sources>::NoteFirstUse(uint8_t c) {
  used_classes_[c / 64] = used_classes_[c / 64] | uint64_t{1} << (c % 64);
  turns_of_classes_ += kTurnBytes;
}

// Returns the objects to fill the current list with. Empty if no memory can be had.
template <SourceTable Sources>
TCMALLOC_ALWAYS_INLINE Chain ThreadCache<Sources>::NextChain(uint8_t c) {
  states_[c].NoteMiss();
  const Chain chain = PopKept(c);
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
  const int length = static_cast<int>(chain.count);
  if (TCMALLOC_UNLIKELY(length > state.capacity)) SetCapacity(c, length);
  state.strays = 0;
  state.is_doubtful = false;
  room[c] = static_cast<int16_t>(state.capacity - length);
  heads[c] = chain.head;
}

// Fills the current list, which is empty. False if no memory can be had.
template <SourceTable Sources>
TCMALLOC_ALWAYS_INLINE bool ThreadCache<Sources>::Refill(uint8_t c) {
  ClassState& state = states_[c];
  if (TCMALLOC_UNLIKELY(state.drain.active()) && RefillDraining(c)) return true;
  if (!state.beside.empty()) {
    TakeBack(c);
    return true;
  }
  state.drain.NoteRefill();
  const Chain chain = NextChain(c);
  if (chain.empty()) return false;
  HoldOneBatch(c);
  SetCurrent(c, chain);
  return true;
}

// Lets the central list, which knows where objects begin, end the process if no object of class `c`
// can begin at `object`.
template <SourceTable Sources>
TCMALLOC_ALWAYS_INLINE void ThreadCache<Sources>::CheckPlace(void* object, uint8_t c) const {
  if (TCMALLOC_LIKELY((reinterpret_cast<uintptr_t>(object) & MisplacedBits(c)) == 0)) return;
  CrashAtPlace(object, c);
}

// Gives the central list an object at whose address none can begin.
template <SourceTable Sources>
TCMALLOC_COLD void ThreadCache<Sources>::CrashAtPlace(void* object, uint8_t c) const {
  context_->codec->Link(object, context_->codec->end);
  source(c).InsertPast({ReferenceTo(object), 1});
}

// Works as CheckedNext for a successor `next` that is outside of the window and not the end. A
// function of its own, so that its caller need not save registers.
template <SourceTable Sources>
TCMALLOC_NOINLINE ObjectReference ThreadCache<Sources>::CheckedOutside(ObjectReference next,
                                                                       void* object,
                                                                       uint8_t c) const {
  const Span* span = context_->page_map->FindInUse(ObjectAt(next));
  if (next != ReferenceTo(ObjectAt(next)) || span == nullptr || span->size_class != c) {
    CrashOnBadLink(*context_->page_map, object, c);
  }
  return next;
}

// Returns the successor of `object` in a list of class `c`: the end, or an address at which an
// object can begin.
template <SourceTable Sources>
ObjectReference ThreadCache<Sources>::CheckedNext(void* object, uint8_t c) const {
  const LinkCodec& codec = *context_->codec;
  const ObjectReference next = codec.Next(object);
  if (TCMALLOC_LIKELY(codec.InWindow(next) || next == codec.end)) return next;
  return CheckedOutside(next, object, c);
}

// Takes the first object of a list whose link the fast path refused. The object may be the last
// one, if the end lies outside the address window; its successor may lie outside; or it was
// overwritten.
template <SourceTable Sources>
void* ThreadCache<Sources>::PopUnchecked(uint8_t c) {
  void* object = ObjectAt(heads[c]);
  heads[c] = CheckedNext(object, c);
  ++room[c];
  LinkWord(object) = 0;
  return object;
}

// Returns an object for a signal handler that interrupted a fast path at the empty list of class
// `c`. The object is of a larger class, so that the handler's free leaves that list as the fast
// path has read it. If the room still disagrees with the list at later calls, a handler left it
// wrong, and it is corrected.
template <SourceTable Sources>
TCMALLOC_COLD void* ThreadCache<Sources>::AllocateFromLargerClass(uint8_t c) {
  ClassState& state = states_[c];
  if (++state.strays == kMostStrays) {
    state.strays = 0;
    room[c] = static_cast<int16_t>(state.capacity);
  }
  larger_class_was_served.store(true, std::memory_order_relaxed);
  return FetchOne(context_->sources->Ensure(LargerSizeClass(c)), *context_->codec);
}

template <SourceTable Sources>
void* ThreadCache<Sources>::AllocateSlow(uint8_t c, size_t size) {
  if (heads[c] == context_->codec->end) {
    if (TCMALLOC_UNLIKELY(room[c] != states_[c].capacity)) return AllocateFromLargerClass(c);
    if (!Refill(c)) return nullptr;
  }
  if (TCMALLOC_UNLIKELY(header.CountSlow(size, *context_->sample_period))) LeaveSharedLine(c);
  void* object = PopUnchecked(c);
  if (TCMALLOC_UNLIKELY(!HasRoomFor(0)) && !GrowShare(0)) ReturnExcess(c);
  return object;
}

// Replaces a list of small objects by one in a cache line of the thread's own, if the thread uses
// the first object over and over. Other threads may use objects in that object's line.
template <SourceTable Sources>
void ThreadCache<Sources>::LeaveSharedLine(uint8_t c) {
  if (SizeOf(c) >= ReuseWatch::kLineBytes || !watch_.IsStuckAt(ObjectAt(heads[c]))) return;
  if (!IsConsistent(c) || states_[c].drain.active()) return;
  const Chain line = source(c).FetchLine();
  if (line.empty()) return;
  watch_.MoveTo(ObjectAt(line.head));
  ReturnCurrent(c);
  SetCurrent(c, line);
}

// Returns true if the current list has the length that follows from its room.
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

// Returns the objects of a list, or `most` if there are more.
template <SourceTable Sources>
uint32_t ThreadCache<Sources>::CountUpTo(uint32_t most, uint8_t c, ObjectReference head) const {
  uint32_t count = 0;
  for (; head != context_->codec->end && count < most; ++count) {
    head = NextOf(ObjectAt(head), c);
  }
  return count;
}

// Returns `chain`, which was in the current list, with the length that it has, up to a batch, if
// that list is a short one. A longer one is believed, because counting it would take as long as the
// frees that filled it.
template <SourceTable Sources>
Chain ThreadCache<Sources>::Counted(uint8_t c, Chain chain) const {
  if (states_[c].capacity > kMostCounted) return chain;
  return {chain.head, CountUpTo(std::max(chain.count, Batch(c)), c, chain.head)};
}

// Works as UndoTryFree where the room is not that of a full list. That of an object that looks free
// is right.
template <SourceTable Sources>
void ThreadCache<Sources>::UndoDoubtful(const void* object, uint8_t c) {
  const uint64_t link = LinkWord(const_cast<void*>(object)) * header.codec_inverse;
  const bool above = room[c] > states_[c].capacity;
  if (above) AddAtOnce(room[c], -1);
  if (above || room[c] <= 0 || !IsBelow(link, header.link_limit)) states_[c].is_doubtful = true;
}

// Sets the room of the current list right, and the chains that were put away last, after a signal
// handler that took an object and freed it while a free was refused at the full list. To the
// handler the list looked full, though it was short of one: so it left with a wrong count, and the
// room of the free that was refused is that of another list.
template <SourceTable Sources>
TCMALLOC_COLD void ThreadCache<Sources>::CorrectList(uint8_t c) {
  ClassState& state = states_[c];
  state.is_doubtful = false;
  const bool drains = state.drain.active();
  const uint32_t most = drains ? DrainingFetch(c) : static_cast<uint32_t>(state.capacity);
  room[c] = static_cast<int16_t>(state.capacity - static_cast<int>(CountUpTo(most, c, heads[c])));
  if (drains) return;
  const auto pop_full = [&] { return state.full.empty() ? Chain() : PopKept(c); };
  Chain chain = TakeBeside(c);
  if (chain.empty()) chain = pop_full();
  for (; !chain.empty(); chain = pop_full()) {
    const uint32_t count = CountUpTo(chain.count + 1, c, chain.head);
    if (count == chain.count) return KeepIfWhole(c, chain);
    source(c).InsertPast({chain.head, count});
  }
}

// Empties the current list and returns it as a chain. Its length follows from the room unless
// signal handlers intervened. A room below 0 is that of a free which a handler interrupted at a
// full list.
template <SourceTable Sources>
Chain ThreadCache<Sources>::TakeCurrent(uint8_t c) {
  const ObjectReference end = context_->codec->end;
  const int length = states_[c].capacity - std::max<int>(room[c], 0);
  Chain chain{heads[c], static_cast<uint32_t>(std::max(length, 1))};
  if (chain.head == end) chain.count = 0;
  if (!chain.empty()) CheckPlace(ObjectAt(chain.head), c);
  heads[c] = end;
  room[c] = static_cast<int16_t>(states_[c].capacity);
  return Counted(c, chain);
}

template <SourceTable Sources>
void ThreadCache<Sources>::FreeSlow(void* object, uint8_t c) {
  if (TCMALLOC_UNLIKELY(states_[c].is_doubtful)) CorrectList(c);
  if (room[c] <= 0 && !states_[c].drain.active()) MakeRoom(c);
  if (TCMALLOC_UNLIKELY(states_[c].drain.active())) return FreeDraining(object, c);
  if (TCMALLOC_UNLIKELY(room[c] <= 0)) {
    context_->codec->Link(object, context_->codec->end);
    return source(c).Insert({ReferenceTo(object), 1});
  }
  PutIn(object, c);
}

// Puts an object into the current list.
template <SourceTable Sources>
void ThreadCache<Sources>::PutIn(void* object, uint8_t c) {
  --room[c];
  context_->codec->Link(object, heads[c]);
  heads[c] = ReferenceTo(object);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_INL_H_
