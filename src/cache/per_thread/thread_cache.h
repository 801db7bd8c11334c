// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The free objects that one thread has at hand.

#ifndef TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_H_
#define TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_H_

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/intrusive_list.h"
#include "base/relaxed.h"
#include "cache/per_thread/cache_budget.h"
#include "cache/reuse_watch.h"
#include "cache/thread_header.h"
#include "central/corruption.h"
#include "pages/free_link.h"
#include "pages/page_map.h"
#include "size_class/size_classes.h"
#include "system/biased_lock.h"
#include "transfer/batch_source.h"
#include "transfer/chain_stack.h"

namespace tcmalloc {

// What all thread caches of a process share.
template <SourceTable Sources>
struct ThreadCacheContext {
  Sources* sources = nullptr;
  const LinkCodec* codec = nullptr;
  const PageMap* page_map = nullptr;
  ChainArrays* arrays = nullptr;
  CacheBudget* budget = nullptr;
  SlowPaths slow = {};
};

// Per size class a cache has one current list, from which malloc takes and to which free adds, and
// a stack of full chains of one batch each. Invariants, for each class c with state s:
//
//     length of the current list == s.capacity - room[c]
//     cached_bytes_ == sum over c of (objects in s.full) * size of c
//
// Slow start: a class begins with capacity 0, which doubles with each miss up to one batch; from
// then on every allocation miss permits one more full chain. When free fills the current list it
// becomes a full chain; one chain too many goes back to the source, whole, and repeated overflow
// withdraws the permission down to one. Where none was ever given, free makes the list at most half
// a batch long, and no chain is kept.
//
// A collection returns half of what each class did not need since the last one, or all of it if the
// class needed nothing. What lies unused says nothing about a thread that only freed meanwhile, so
// a collection waits until the thread has allocated more than it holds. It then comes with the next
// miss, before other memory is asked for, or when the full chains outgrow the cache's share of the
// budget, which also tries to grow. What still does not fit goes back at once, while it is hot.
//
// Class 0 stands for "no small object": its room is always 0, so that free's test for room also
// finds foreign pointers. A closed cache (also every default-constructed one) refuses the fast
// path: its limits admit no size and no address. The slow path closes the cache while it changes
// it, so that malloc in a signal handler that interrupts it notices.
//
// A signal handler may interrupt a fast path and use the same cache. Both fast paths change the
// room before they read the head, so that between their two writes the length above is off by
// one. The slow path of a handler leaves such a list alone: it does not return it in a collection,
// and replaces it in no refill. docs/locking.md says what remains. Where rooms have gone wrong by
// more than that, the end of the list counts, and the next refill sets them right.
//
// Other threads may take full chains, for which there is a lock; the current list is the owner's
// alone, so that its fast paths need none.
//
// Owned by one thread; others may call only what says so.
template <SourceTable Sources>
class ThreadCache : private FastLists, public ListNode {
 public:
  using Source = typename Sources::Source;
  using Context = ThreadCacheContext<Sources>;

  constexpr ThreadCache() = default;
  // Closed for good, but malloc and free find their way.
  constexpr explicit ThreadCache(const SlowPaths& slow) { header.slow = slow; }
  ThreadCache(const ThreadCache&) = delete;
  ThreadCache& operator=(const ThreadCache&) = delete;

  // Joins the budget and opens the cache.
  void Initialize(const Context& context) {
    context_ = &context;
    header.codec_inverse = context.codec->inverse;
    header.codec_key = context.codec->key;
    header.link_limit = context.codec->limit;
    header.classes = context.page_map->classes_by_reference();
    header.slow = context.slow;
    std::fill_n(heads, kSizeClassCount, context.codec->end);
    context.budget->Join(share_);
    header.clock.Initialize(reinterpret_cast<uintptr_t>(this));
    Open();
  }

  // Returns everything and leaves the budget, for good. The cache stays closed.
  void Retire();
  // Does what Flush does and leaves the budget. The cache stays closed until Rejoin and Open.
  void Park();
  void Rejoin() {
    abandoned_ = false;
    context_->budget->Join(share_);
  }

  bool closed() const { return header.size_limit == 0; }
  void Close() {
    header.size_limit = 0;
    header.address_limit = INT64_MIN;
    // The compiler must not move changes of the lists before this, as seen by a signal handler.
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  void Open() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    header.address_limit = context_->codec->limit;
    header.size_limit = kClassBySize.size();
  }

  // Sizes below this may be looked up in kClassBySize and allocated by TryAllocate.
  size_t size_limit() const { return header.size_limit; }

  FastLists* lists() { return this; }
  // A thread without lists, as malloc and free refer to it.
  static ThreadCache* WithoutLists(FastLists* thread) { return static_cast<ThreadCache*>(thread); }
  bool served_elsewhere() const { return header.allocate != AllocateClosed; }

  // For sizes that size_limit does not admit.
  TCMALLOC_ALWAYS_INLINE void* AllocateElsewhere(size_t size, AllocateSlowPath slow) {
    return LoadedLast(slow, header.allocate)(size, this, slow);
  }
  TCMALLOC_ALWAYS_INLINE void* MallocElsewhere(size_t size) {
    return LoadedLast(size, header.malloc)(size, this);
  }

  // The fast path of malloc: an object of class `c` for `size` bytes, or null; then the caller
  // calls UndoTryAllocate. An empty list and a list whose next object was overwritten both look
  // like a link that is not valid.
  TCMALLOC_ALWAYS_INLINE void* TryAllocate(uint8_t c, size_t size) {
    ++room[c];
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // The link is read by its reference, not by the address, which takes an instruction more to
    // compute: one list's allocations wait for each other through these reads.
    const ObjectReference reference = heads[c];
    const ObjectReference next_object = LinkWord(ObjectAt(reference)) * header.codec_inverse;
    void* object = OpaqueToOptimizer(ObjectAt(OpaqueToOptimizer(reference)));
    if (TCMALLOC_UNLIKELY(!IsBelow(next_object, header.link_limit))) return nullptr;
    if (TCMALLOC_UNLIKELY(header.clock.Advance(size))) return nullptr;
    heads[c] = next_object;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // An object in use must not look like a free one.
    LinkWord(object) = 0;
    return object;
  }

  // Takes back what a TryAllocate that returned null did.
  void UndoTryAllocate(uint8_t c) {
    if (room[c] > 0) --room[c];
  }

  // The whole of free, but for what the slow path in the header does, or `after_try` where a
  // TryFree returned false: only it has something to undo. They cannot tell by the limits, for
  // other threads may close the cache at any moment.
  TCMALLOC_ALWAYS_INLINE void Deallocate(void* object, DeallocateSlowPath after_try) {
    const ObjectReference reference = ReferenceTo(object);
    if (TCMALLOC_UNLIKELY(!IsBelow(reference, header.address_limit))) {
      return LoadedLast(object, header.deallocate)(object, this, reference);
    }
    if (TCMALLOC_UNLIKELY(!TryFree(object))) after_try(object);
  }

  // The fast path of free. False leaves the object in use; the caller calls UndoTryFree.
  TCMALLOC_ALWAYS_INLINE bool TryFree(void* object) {
    const ObjectReference reference = ReferenceTo(object);
    if (TCMALLOC_UNLIKELY(!IsBelow(reference, header.address_limit))) return false;
    const uint8_t c = ClassInWindow(reference);
    if (TCMALLOC_UNLIKELY(--room[c] < 0)) return false;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (TCMALLOC_UNLIKELY(IsBelow(LinkWord(object) * header.codec_inverse, header.link_limit))) {
      return false;
    }
    LinkWord(object) = heads[c] * header.codec_key;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    heads[c] = reference;
    return true;
  }

  // Takes back what a TryFree that returned false did.
  void UndoTryFree(const void* object) {
    if (IsBelow(ReferenceTo(object), header.address_limit)) UndoTryFreeInWindow(object);
  }
  // The same for a TryFree that found the address below the limit then.
  void UndoTryFreeInWindow(const void* object) {
    const uint8_t c = ClassInWindow(ReferenceTo(object));
    if (room[c] < states_[c].capacity) ++room[c];
  }

  // Any case of allocation, on a closed cache. Null if no memory can be had.
  void* AllocateSlow(uint8_t c, size_t size);
  // Takes the object in, whether there is room or not, on a closed cache.
  void FreeSlow(void* object, uint8_t c);

  // Whether a list of this cache holds `object`, which looks like a free one. May be called by
  // other threads; then it may miss an object that moves meanwhile, but finds none that is in use.
  bool Holds(const void* object, uint8_t c) const;

  // Returns half of what was not used since the last call.
  void Collect();
  // Returns everything, on a closed cache, but for lists in use by a fast path that was
  // interrupted.
  void Flush() { FlushFrom(1); }
  // The same for the objects of class `first` and larger ones.
  void FlushFrom(uint8_t first);

  // The owner is gone, whatever it was doing: nobody takes chains any longer.
  void Abandon() { abandoned_ = true; }
  // Returns half of the full chains of each class, if no chain came or went since the last call.
  // Called by the owner or, one at a time, by other threads.
  void ReleaseIdle(bool by_owner) TCMALLOC_EXCLUDES(chains_lock_);
  // Returns all full chains. May be called by other threads.
  void ReleaseFull() TCMALLOC_EXCLUDES(chains_lock_);

  // Objects of class `c`. May be called by other threads; then it is an estimate, of words that the
  // owner changes by plain writes.
  __attribute__((no_sanitize("thread"))) size_t CountObjects(uint8_t c) const {
    const ClassState& state = states_[c];
    // The fast path changes the room before it takes what is not there.
    return static_cast<size_t>(std::max(state.capacity - room[c], 0)) + FullObjects(c);
  }
  // Calls f(c, objects) for every class of which there ever were objects here. Likewise.
  template <typename F>
  void ForEachCount(F f) const {
    ForEachUsedClass([&](uint8_t c) { f(c, CountObjects(c)); });
  }
  // Bytes of the objects of all classes. Likewise.
  size_t CountBytes() const {
    size_t bytes = 0;
    ForEachCount([&bytes](uint8_t c, size_t objects) { bytes += objects * kSizeClasses[c].size; });
    return bytes;
  }
  // Of the full chains. May be called by other threads.
  size_t full_bytes() const { return static_cast<size_t>(int64_t{cached_bytes_}); }
  const EventClock& clock() const { return header.clock; }
  BudgetShare& share() { return share_; }

  void CheckInvariants() const;

 private:
  static constexpr uint16_t kMaxChains = UINT16_MAX;  // the budget's bound is lower
  static constexpr uint8_t kMaxOverages = 3;
  static constexpr uint32_t kChainsAtOnce = 16;
  static constexpr int64_t kMinCollectionInterval = 8 << 20;  // bytes allocated

  struct ClassState {
    ChainStack full;
    ObjectReference head_at_collection = 0;
    uint16_t capacity = 0;    // of the current list; at most one batch
    uint16_t max_chains = 0;  // that may be kept in full
    uint16_t low_water = 0;   // fewest chains in full since the last collection
    uint8_t overages = 0;
    bool popped = false;  // whether any of them was needed since then

    void LowerWater() { low_water = std::min(low_water, static_cast<uint16_t>(full.size())); }
  };

  static uint32_t SizeOf(uint8_t c) { return kSizeClasses[c].size; }
  // Of a class of which there are objects, or were.
  Source& source(uint8_t c) const { return (*context_->sources)[c]; }
  uint32_t Batch(uint8_t c) const { return source(c).batch(); }
  // Of any class: 0 if there never was an object.
  uint32_t BatchIfMade(uint8_t c) const {
    const Source* source = context_->sources->Find(c);
    return source != nullptr ? source->batch() : 0;
  }
  size_t FullObjects(uint8_t c) const { return size_t{states_[c].full.size()} * BatchIfMade(c); }

  TCMALLOC_ALWAYS_INLINE uint8_t ClassInWindow(ObjectReference reference) const {
    return *reinterpret_cast<const uint8_t*>(header.classes + (reference >> (kPageShift - 3)));
  }

  // Whether full chains of this many bytes more fit.
  bool HasRoomFor(int64_t bytes) const { return cached_bytes_ + bytes <= share_.limit(); }
  int64_t AllocatedSinceCollection() const {
    return static_cast<int64_t>(header.clock.allocated_bytes() - allocated_at_collection_);
  }
  int64_t CollectionInterval() const { return std::max(cached_bytes_ / 2, kMinCollectionInterval); }
  void NoteUsed(uint8_t c) {
    used_classes_[c / 64] = used_classes_[c / 64] | uint64_t{1} << (c % 64);
  }
  void SetCurrent(uint8_t c, Chain chain);
  bool Refill(uint8_t c);
  TCMALLOC_NOINLINE void LeaveSharedLine(uint8_t c);
  Chain NextChain(uint8_t c);
  void GrowCapacity(uint8_t c, uint32_t most);
  uint32_t FetchCount(uint8_t c);
  bool IsConsistent(uint8_t c) const;
  ObjectReference CheckedNext(void* object, uint8_t c) const;
  void* PopUnchecked(uint8_t c);
  uint32_t LongestList(uint8_t c) const;
  void MakeRoom(uint8_t c);
  void KeepOrReturn(uint8_t c, Chain chain);
  bool PushFull(uint8_t c, Chain chain) TCMALLOC_EXCLUDES(chains_lock_);
  Chain PopFull(uint8_t c) TCMALLOC_EXCLUDES(chains_lock_);
  uint32_t TakeOldest(uint8_t c, uint32_t most, Chain* out) TCMALLOC_REQUIRES(chains_lock_);
  void ReturnOldest(uint8_t c, uint32_t count) TCMALLOC_EXCLUDES(chains_lock_);
  void ReturnOldestByOther(uint8_t c, uint32_t count) TCMALLOC_EXCLUDES(chains_lock_);
  void NoteCached(int64_t bytes) TCMALLOC_REQUIRES(chains_lock_) {
    cached_bytes_ = cached_bytes_ + bytes;
  }
  uint32_t LowWater(uint8_t c) TCMALLOC_EXCLUDES(chains_lock_);
  void NoteCollected(uint8_t c) TCMALLOC_EXCLUDES(chains_lock_);
  static void NoteOverage(ClassState& state);
  bool FitsBudget(int64_t bytes);
  Chain TakeCurrent(uint8_t c);
  bool ChainHolds(Chain chain, const void* object, uint8_t c) const;
  void CollectClass(uint8_t c);
  void FlushFull(uint8_t c);
  void FlushCurrent(uint8_t c);
  template <typename F>
  void ForEachUsedClass(F f) const;

  // Guards every `full`, its `low_water`, and what says how much they hold. Only the owner adds to
  // them.
  BiasedLock chains_lock_{LockRank::kFullChains};
  ClassState states_[kSizeClassCount] = {};
  Relaxed<uint64_t> used_classes_[(kSizeClassCount + 63) / 64];  // that ever had an object
  const Context* context_ = nullptr;
  Relaxed<int64_t> cached_bytes_ = 0;
  Relaxed<bool> chains_moved_ = false;  // by the owner, since ReleaseIdle
  bool abandoned_ = false;
  uint64_t allocated_at_collection_ = 0;  // bytes, by header.clock
  BudgetShare share_;
  ReuseWatch watch_;
};

template <SourceTable Sources>
template <typename F>
void ThreadCache<Sources>::ForEachUsedClass(F f) const {
  for (size_t word = 0; word < std::size(used_classes_); ++word) {
    for (uint64_t bits = used_classes_[word]; bits != 0; bits &= bits - 1) {
      f(static_cast<uint8_t>(word * 64 + static_cast<size_t>(std::countr_zero(bits))));
    }
  }
}

// Lets the current list become longer, but not longer than `most`; requires that it is shorter.
template <SourceTable Sources>
void ThreadCache<Sources>::GrowCapacity(uint8_t c, uint32_t most) {
  ClassState& state = states_[c];
  const auto grown = static_cast<uint16_t>(std::clamp<uint32_t>(state.capacity * 2U, 1, most));
  room[c] = static_cast<int16_t>(std::max<int>(room[c], 0) + grown - state.capacity);
  state.capacity = grown;
}

// How many objects to ask the source for; grows with every miss.
template <SourceTable Sources>
uint32_t ThreadCache<Sources>::FetchCount(uint8_t c) {
  ClassState& state = states_[c];
  const uint32_t batch = Batch(c);
  if (state.capacity < batch) {
    GrowCapacity(c, batch);
    return state.capacity;
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
  if (AllocatedSinceCollection() >= CollectionInterval()) Collect();
  return source.Fetch(FetchCount(c));
}

// Fills the current list, which is empty.
template <SourceTable Sources>
void ThreadCache<Sources>::SetCurrent(uint8_t c, Chain chain) {
  ClassState& state = states_[c];
  state.capacity = std::max(state.capacity, static_cast<uint16_t>(chain.count));
  room[c] = static_cast<int16_t>(state.capacity - chain.count);
  heads[c] = chain.head;
}

// Fills the current list, which is empty. False if no memory can be had.
template <SourceTable Sources>
bool ThreadCache<Sources>::Refill(uint8_t c) {
  const Chain chain = NextChain(c);
  if (!chain.empty()) SetCurrent(c, chain);
  return !chain.empty();
}

// What follows `object` in a list of class `c`: nothing, or what may well be an object.
template <SourceTable Sources>
ObjectReference ThreadCache<Sources>::CheckedNext(void* object, uint8_t c) const {
  const LinkCodec& codec = *context_->codec;
  const ObjectReference next = codec.Next(object);
  if (!codec.InWindow(next) && next != codec.end) {
    const Span* span = context_->page_map->FindInUse(ObjectAt(next));
    if (next != ReferenceTo(ObjectAt(next)) || span == nullptr || span->size_class != c) {
      CrashOnCorruptedList(object, c);
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

template <SourceTable Sources>
void* ThreadCache<Sources>::AllocateSlow(uint8_t c, size_t size) {
  if (heads[c] == context_->codec->end) {
    if (TCMALLOC_UNLIKELY(room[c] != states_[c].capacity)) {
      room[c] = static_cast<int16_t>(states_[c].capacity);
      return FetchOne(context_->sources->Ensure(c), *context_->codec);
    }
    if (!Refill(c)) return nullptr;
  }
  if (TCMALLOC_UNLIKELY(header.clock.AdvanceSlow(size))) LeaveSharedLine(c);
  return PopUnchecked(c);
}

// Replaces a list of small objects by one in a line of the thread's own if the thread uses its
// first object over and over. Other threads may use others of that line.
template <SourceTable Sources>
void ThreadCache<Sources>::LeaveSharedLine(uint8_t c) {
  if (SizeOf(c) >= ReuseWatch::kLineBytes || !watch_.IsStuckAt(ObjectAt(heads[c]))) return;
  if (!IsConsistent(c)) return;
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

// Requires that the current list has no room.
template <SourceTable Sources>
void ThreadCache<Sources>::MakeRoom(uint8_t c) {
  const uint32_t most = LongestList(c);
  if (states_[c].capacity < most) {
    NoteUsed(c);
    GrowCapacity(c, most);
    return;
  }
  const Chain chain = TakeCurrent(c);
  if (!chain.empty()) KeepOrReturn(c, chain);
}

template <SourceTable Sources>
void ThreadCache<Sources>::KeepOrReturn(uint8_t c, Chain chain) {
  ClassState& state = states_[c];
  const int64_t bytes = int64_t{chain.count} * SizeOf(c);
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

// Whether the full chains may grow by `bytes`, if need be after a collection or with a larger
// share.
template <SourceTable Sources>
bool ThreadCache<Sources>::FitsBudget(int64_t bytes) {
  if (HasRoomFor(bytes)) return true;
  if (AllocatedSinceCollection() >= CollectionInterval()) Collect();
  return HasRoomFor(bytes) || (context_->budget->Grow(share_) && HasRoomFor(bytes));
}

template <SourceTable Sources>
void ThreadCache<Sources>::FreeSlow(void* object, uint8_t c) {
  if (room[c] <= 0) MakeRoom(c);
  --room[c];
  context_->codec->Link(object, heads[c]);
  heads[c] = ReferenceTo(object);
}

template <SourceTable Sources>
bool ThreadCache<Sources>::Holds(const void* object, uint8_t c) const {
  const ClassState& state = states_[c];
  const Chain current{heads[c], static_cast<uint32_t>(state.capacity - room[c])};
  if (ChainHolds(current, object, c)) return true;
  for (uint32_t i = 0; i < state.full.size(); ++i) {
    if (ChainHolds(state.full.at(i), object, c)) return true;
  }
  return false;
}

// Follows no link that does not lead to an object of class `c`, for the owner may change the list
// meanwhile.
template <SourceTable Sources>
bool ThreadCache<Sources>::ChainHolds(Chain chain, const void* object, uint8_t c) const {
  for (; chain.count > 0; --chain.count) {
    void* element = ObjectAt(chain.head);
    if (element == object) return true;
    const Span* span = context_->page_map->FindInUse(element);
    if (span == nullptr || span->size_class != c) return false;
    chain.head = context_->codec->Next(element);
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
  if (abandoned_) return;
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
  if (abandoned_) return;
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
  // A list whose head did not change since the last collection was most likely not used.
  if (heads[c] == state.head_at_collection && heads[c] != context_->codec->end && IsConsistent(c)) {
    source(c).Insert(TakeCurrent(c));
    state.capacity = 0;
    room[c] = 0;
  }
  state.head_at_collection = heads[c];
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
  const Chain chain = TakeCurrent(c);
  if (!chain.empty()) source(c).Insert(chain);
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
void ThreadCache<Sources>::CheckInvariants() const {
  TCMALLOC_CHECK_EQ(room[0], 0);
  int64_t bytes = 0;
  for (size_t i = 1; i < kSizeClassCount; ++i) {
    const auto c = static_cast<uint8_t>(i);
    const ClassState& state = states_[c];
    TCMALLOC_CHECK_LE(0, room[c]);
    TCMALLOC_CHECK_LE(room[c], state.capacity);
    TCMALLOC_CHECK_LE(state.capacity, BatchIfMade(c));
    TCMALLOC_CHECK_LE(state.low_water, state.full.size());
    ObjectReference reference = heads[c];
    for (int length = state.capacity - room[c]; length > 0; --length) {
      reference = context_->codec->Next(ObjectAt(reference));
    }
    TCMALLOC_CHECK_EQ(reference, context_->codec->end);
    for (uint32_t j = 0; j < state.full.size(); ++j) {
      TCMALLOC_CHECK_EQ(state.full.at(j).count, Batch(c));
      bytes += int64_t{state.full.at(j).count} * SizeOf(c);
    }
  }
  TCMALLOC_CHECK_EQ(cached_bytes_, bytes);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_H_
