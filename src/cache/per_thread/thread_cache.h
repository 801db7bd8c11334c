// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A thread's own free objects.

#ifndef TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_H_
#define TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/intrusive_list.h"
#include "base/relaxed.h"
#include "cache/idle_bytes.h"
#include "cache/outgrowth.h"
#include "cache/per_thread/cache_budget.h"
#include "cache/per_thread/drain_watch.h"
#include "cache/per_thread/page_bins.h"
#include "cache/reuse_watch.h"
#include "cache/scatter.h"
#include "cache/thread_header.h"
#include "central/corruption.h"
#include "central/free_objects.h"
#include "pages/free_link.h"
#include "pages/page_map.h"
#include "size_class/size_classes.h"
#include "system/biased_lock.h"
#include "transfer/batch_source.h"
#include "transfer/chain_stack.h"

namespace tcmalloc {

// Objects of more than kScatterMostSize bytes are worth more as pages where full chains of other
// classes hold this many bytes. A program that swings in one class alone gains nothing from pages.
inline constexpr int64_t kOtherClassesBytes = 512 << 10;

// A look at all caches for what they hold beyond their shares.
struct OverdraftLook {
  // A thread that moved no chain for that long is idle. One that waits for a processor is not, and
  // would miss at once what was taken from it.
  static constexpr uint64_t kIdleNs = 100'000'000;

  uint64_t now = 0;  // nanoseconds of a monotonic clock
  int64_t most = 0;  // bytes that may still go
  bool is_any_overdrawn = false;
};

// True once a cache has handed out an object of a larger class than was asked for. Relaxed: who has
// such an object has got it from the thread that wrote this before.
inline constinit std::atomic<bool> larger_class_was_served{false};

// Shared by all thread caches of a process.
template <SourceTable Sources>
struct ThreadCacheContext {
  Sources* sources = nullptr;
  const LinkCodec* codec = nullptr;
  const PageMap* page_map = nullptr;
  ChainArrays* arrays = nullptr;
  CacheBudget* budget = nullptr;
  SlowPaths slow = {};
  const SamplePeriod* sample_period = &kNoSamples;
};

// A cache has one current list of each size class, from which malloc takes and to which free adds,
// and a stack of full chains of a batch or more each. Invariants, for each class c with state s:
//
//     length of the current list == s.capacity - room[c]
//     s.kept        == objects in s.full and s.bins
//     share_.full_bytes == sum over c of s.kept * size of c
//     list_bytes_   == sum over c of (s.capacity + objects in s.beside) * size of c, and other
//                      bytes where the class drains
//
// Together these stay within the cache's share of the budget, except from a cut of the share until
// the next slow path that asks for room. Where a list may not grow, other classes give up some of
// theirs; if that does not help, objects come and go one by one.
//
// Slow start: the capacity of a class begins with FirstCapacity and doubles with each miss up to
// one batch. From then on every allocation miss permits to keep one more batch. Such batches need
// not be full chains. A list of short batches becomes twice as long, up to kListObjects and
// kListBytes, or two batches; what longer lists hold is bounded for all threads together. When it
// is full, the half that was freed first becomes a full chain: as many allocations as frees pass
// before the next slow path. Such a chain goes back to the source in batches, which takes a step
// for each object. A long batch is set aside, because it takes as many steps to find the middle of
// a list. When allocations have used up the list it comes back, and the list may be two batches
// long until the next miss. What may not be kept goes back to the source, and repeated overflow
// withdraws permissions down to one. If none was ever given, free makes the list at most half a
// batch long, and no chain is kept.
//
// Scattered chains of a class of which there is not much are sorted into bins, one for each page;
// they count as full chains do, and serve misses once there are none of those. See PageBins.
//
// Where full chains of other classes hold kOtherClassesBytes, a class of large objects keeps no
// more than kScatterKeptBytes. Others go to their spans as they are freed, and become pages that
// are still in the processor's caches when another class takes them. A collection would not bring
// that about, because a thread that keeps all that it ever used misses nothing.
// docs/decisions/0083-large-objects-become-pages.md.
//
// A collection returns an eighth of the chains that each class did not need since the last one, or
// all of them if the class needed none. Unused objects say nothing about a thread that only freed
// meanwhile, so a collection waits until the thread has allocated more than it holds. It then
// happens at the next miss, before other memory is asked for, or when the full chains outgrow the
// cache's share of the budget, which also tries to grow. Objects that still do not fit go back at
// once, while they are in the processor's caches. Where the heap grows meanwhile, a class that was
// not needed does not wait, if it holds much: see MakeWay. Of what a collection returns, scattered
// chains go to their spans. docs/decisions/0147-what-is-scattered-and-not-needed.md.
//
// While a class drains (see DrainWatch), free takes the slow path. Objects go to the spans a batch
// at a time, past all caches, and malloc gets a short list from the fullest spans. Room and
// capacity are then kDraining less than they were, so that free never finds room and the first
// equation above still holds.
//
// Class 0 stands for "no small object": its room is 0 between two calls, so that free's test for
// room also finds foreign pointers. A closed cache (also every default-constructed one) refuses the
// fast path: its limits admit no size and no address. The slow path closes the cache while it
// changes it, so that malloc in a signal handler that interrupts it notices.
//
// A signal handler may interrupt a fast path and use the same cache. Both fast paths change the
// room before they read the head, so between their two writes the length above is off by one. The
// slow path of a handler leaves such a list alone: a collection does not return it and a refill
// does not replace it. docs/locking.md lists the remaining cases. If a room has gone wrong by more
// than one, the list's end counts, and the next refill corrects the room.
//
// Other threads may take full chains, which a lock guards. The current list belongs to the owner
// alone, so that its fast paths need no lock.
//
// Owned by one thread; others may call only the methods whose comments say so.
template <SourceTable Sources>
class ThreadCache : private FastLists, public ListNode {
 public:
  using Source = typename Sources::Source;
  using Context = ThreadCacheContext<Sources>;

  constexpr ThreadCache() = default;
  ThreadCache(const ThreadCache&) = delete;
  ThreadCache& operator=(const ThreadCache&) = delete;

  // Joins the budget and opens the cache.
  void Initialize(const Context& context) {
    context_ = &context;
    header.codec_inverse = context.codec->inverse;
    header.codec_key = context.codec->key;
    header.classes = context.page_map->classes_by_reference();
    header.slow = context.slow;
    header.allocate = AllocateMedium;
    header.malloc = MallocMedium;
    std::fill_n(heads, kSizeClassCount, context.codec->end);
    context.budget->Join(share_);
    header.InitializeClocks(*context.sample_period);
    Open();
  }

  // Returns everything and leaves the budget, for good. The cache stays closed.
  void Retire();
  // Returns false if a fast path, interrupted by this signal handler, may be at a list, or if a
  // handler left a list's room wrong.
  bool IsAtRest() const {
    bool consistent = true;
    ForEachUsedClass([&](uint8_t c) { consistent = consistent && IsConsistent(c); });
    return consistent;
  }
  // Does what Flush does and leaves the budget. The cache stays closed until Rejoin and Open.
  void Park();
  void Rejoin() { context_->budget->Join(share_); }
  // Keeps the cache, which is closed and whose thread has ended, with what it holds for another
  // thread, but for full chains where that is too much. False if the rest is, or it is parked.
  TCMALLOC_COLD bool SetAside();
  // Undoes SetAside, for another thread. The cache stays closed until Open.
  void TakeUp();

  bool closed() const { return header.closed(); }
  void Close() {
    header.size_limit = 0;
    header.address_limit = INT64_MIN;
    // Pairs with TryAllocate and TryFree in a signal handler: the lists change once it is closed.
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  void Open() {
    // Pairs with TryAllocate and TryFree in a signal handler: it is open once the lists are whole.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // The address window may have grown.
    header.link_limit = context_->codec->limit();
    header.address_limit = header.link_limit;
    header.size_limit = kClassBySize.size();
  }

  ThreadHeader* thread() { return &header; }
  // Returns the cache to which `lists` belong. Requires a header that is not served by CPUs.
  static ThreadCache* Of(FastLists* lists) { return static_cast<ThreadCache*>(lists); }
  static ThreadCache* Of(ThreadHeader* header) {
    TCMALLOC_DCHECK(!header->is_served_by_cpus());
    return Of(FastThread(header).lists());
  }

  using FastLists::TryAllocate;
  using FastLists::TryFree;

  // Works as TryAllocate, but leaves nothing to undo.
  TCMALLOC_ALWAYS_INLINE void* AllocateListed(uint8_t c, size_t size) {
    void* object = TryAllocate(c, size);
    if (TCMALLOC_UNLIKELY(object == nullptr)) UndoTryAllocate(c);
    return object;
  }

  // The functions for ThreadHeader::allocate and ::malloc of a thread with lists.
  static void* AllocateMedium(size_t size, FastThread thread, AllocateSlowPath slow) {
    return AllocateMediumOr(size, thread, slow);
  }
  static void* MallocMedium(size_t size, FastThread thread) {
    return AllocateMediumOr(size, thread,
                            [thread](size_t bytes) { return thread->slow.malloc(bytes); });
  }

  // Undoes the changes of a TryAllocate that returned null. Harmless on a cache that was flushed or
  // parked since, like UndoTryFree: the room stays between its bounds. While a class drains, it may
  // go below them for as long as a signal handler has interrupted a free that is not undone.
  void UndoTryAllocate(uint8_t c) {
    if (room[c] > 0 || states_[c].drain.active()) AddAtOnce(room[c], -1);
  }

  // Undoes the changes of a TryFree that returned false. Requires an address that was below the
  // limit before the TryFree, as DeallocateBy ensures.
  // Where there was no room, it is 0 at most now, unless a signal handler took the slow path at the
  // same list meanwhile.
  void UndoTryFree(const void* object) {
    const uint8_t c = ClassInWindow(ReferenceTo(object));
    AddAtOnce(room[c], 1);
    if (TCMALLOC_UNLIKELY(room[c] > 0 || states_[c].is_doubtful)) UndoDoubtful(object, c);
  }

  // Does so for null, which looks like an address without a class.
  static void UndoTryFreeOfNull(FastLists* lists) { AddAtOnce(lists->room[0], 1); }

  // Allocates in every case; the cache is closed. Null if no memory can be had.
  void* AllocateSlow(uint8_t c, size_t size);
  // Takes the object in, with or without room; the cache is closed.
  void FreeSlow(void* object, uint8_t c);

  // Returns true if a list of this cache holds `object`, which looks free. Called by the owner, or
  // by other threads with `by_owner` false. Another thread may miss an object that moves meanwhile,
  // or that is in a full chain while the owner changes its full chains, but never finds one that is
  // in use.
  bool Holds(const void* object, uint8_t c, bool by_owner) TCMALLOC_EXCLUDES(chains_lock_);

  // Returns an eighth of what each class did not use since the last call, and all of a class that
  // was not used.
  void Collect();
  // Returns to the spans what each class keeps of which none was needed since the last call, if it
  // has kManyIdleBytes. Called when the heap has grown.
  TCMALLOC_COLD void MakeWay();
  // Returns of what classes keep about `most` bytes to the spans, less if the objects are short.
  TCMALLOC_COLD void ReturnSome(int64_t most);
  // Returns all objects of a closed cache, except lists that an interrupted fast path is using.
  void Flush() { FlushFrom(1); }
  // Flushes class `first` and all larger ones.
  void FlushFrom(uint8_t first);

  // Returns half of the full chains of each class, if no chain came or went since the last call.
  // Called by the owner or, one at a time, by other threads.
  void ReleaseIdle(bool by_owner) TCMALLOC_EXCLUDES(chains_lock_);
  // Returns full chains of a cache that holds more than its share, if its owner has been idle for
  // OverdraftLook::kIdleNs, up to the bytes of the look. Notes in it if the cache still holds more.
  // Called by other threads, one at a time.
  TCMALLOC_COLD void ReturnOverdraft(OverdraftLook* look) TCMALLOC_EXCLUDES(chains_lock_);
  // Returns all full chains. May be called by other threads.
  TCMALLOC_COLD void ReleaseFull() TCMALLOC_EXCLUDES(chains_lock_);

  // Returns the number of objects of class `c`. May be called by other threads and is then an
  // estimate, read from words that the owner changes by plain writes.
  __attribute__((no_sanitize("thread"))) size_t CountObjects(uint8_t c) const {
    const ClassState& state = states_[c];
    // The fast path changes the room before it takes an object, even if there is none.
    return static_cast<size_t>(std::max(state.capacity - room[c], 0)) + state.beside.count +
           state.kept;
  }
  // Calls f(c, objects) for every class that ever had objects here. May be called by other threads.
  template <typename F>
  void ForEachCount(F f) const {
    ForEachUsedClass([&](uint8_t c) { f(c, CountObjects(c)); });
  }
  // Returns the bytes of the objects of all classes. May be called by other threads.
  size_t CountBytes() const {
    size_t bytes = 0;
    ForEachCount([&bytes](uint8_t c, size_t objects) { bytes += objects * kSizeClasses[c].size; });
    return bytes;
  }
  // Returns the bytes of the full chains. May be called by other threads.
  size_t full_bytes() const { return static_cast<size_t>(int64_t{share_.full_bytes}); }
  const EventClock& clock() const { return header.clock; }
  BudgetShare& share() { return share_; }

  // Checks the objects of a closed cache, at most as many as *most, which it counts down. Called by
  // the owner, or after the owner ended.
  void CheckFreeObjects(size_t* most) TCMALLOC_EXCLUDES(chains_lock_);

  void CheckInvariants() const;

 private:
  static constexpr uint16_t kMaxChains = UINT16_MAX;  // the budget's bound is lower
  static constexpr uint8_t kMaxOverages = 3;
  static constexpr uint8_t kMostStrays = 128;
  static constexpr uint32_t kChainsAtOnce = 16;
  // Returning an object to its span takes as long as so many bytes of larger ones.
  static constexpr int64_t kBytesPerObject = 32;
  static constexpr int kMostCounted = 8;
  // For each full chain that a collection returns of a class in use, as many others that were not
  // needed stay.
  static constexpr uint32_t kKeptOfUnused = 7;
  static constexpr uint32_t kGivenUpShare = 8;  // of the full chains of a class, at least
  // Objects over which a walk costs more than the slow path that it saves.
  static constexpr uint32_t kLongBatch = 60;
  // Bound a current list of more than two batches, which are short.
  static constexpr uint32_t kListObjects = 64;
  static constexpr uint32_t kListBytes = 1 << 20;
  static constexpr int64_t kMinCollectionInterval = 8 << 20;  // bytes allocated
  // A turn of a class: so many bytes, and so many objects if it was in use before the last
  // collection.
  static constexpr int64_t kTurnBytes = 256 << 10;
  static constexpr int64_t kTurnObjects = 16;
  static constexpr int16_t kDraining = 16384;
  static constexpr uint32_t kDrainingFetchShare = 4;  // of a batch
  static constexpr uint32_t kFirstBytes = 256;
  static constexpr uint32_t kFirstObjects = 8;

  class ListChange;
  struct OwnerOfBins;

  struct ClassState {
    ChainStack full;
    PageBins* bins = nullptr;      // made when the class first needs them
    Relaxed<uint32_t> kept = 0;    // objects in full chains and bins
    Relaxed<uint32_t> binned = 0;  // of these in the bins
    uint32_t low_water = 0;        // fewest kept since the last collection
    uint32_t list_page = 0;        // while the class drains: the page of the list's first object
    ObjectReference head_at_collection = 0;
    // Beside the current list: the batch that was freed before its objects or, while the class
    // drains, what was freed since less than one batch left.
    Chain beside;
    // At the last free while the class drains; less where the list was filled since.
    int16_t room_at_free = 0;
    int16_t capacity = 0;     // of the current list
    uint16_t max_chains = 0;  // batches that may be kept, those of the list beyond the first too
    // Bytes of scattered chains since the last miss, or since a short chain of neighbours.
    uint32_t sent_home = 0;
    Outgrowth outgrowth;
    uint8_t overages = 0;
    bool popped = false;               // whether any of them was needed since then
    bool popped_since_growth = false;  // the same since the last call of MakeWay
    bool idle = false;         // whether the head at the last collection was that of the one before
    uint8_t strays = 0;        // allocations beside the list since it was last filled
    bool is_doubtful = false;  // whether the room may be wrong; the next slow free counts
    DrainWatch drain;

    bool frees_at_random() const { return sent_home >= kScatterRunBytes; }
    void NoteMiss() {
      sent_home = 0;
      outgrowth.NoteMiss();
    }
  };

  static uint32_t SizeOf(uint8_t c) { return kSizeClasses[c].size; }
  // The source of a class of which there are objects, or were.
  Source& source(uint8_t c) const { return (*context_->sources)[c]; }
  uint32_t Batch(uint8_t c) const { return source(c).batch(); }
  // Returns the bytes in full chains of class `c`.
  int64_t FullBytes(uint8_t c) const {
    return (int64_t{states_[c].kept} - states_[c].binned) * SizeOf(c);
  }

  // Allocates from the lists if they are open. The table holds a class for every size, though not
  // the best one for the sizes of kClassBySize. Those sizes come here only if a signal handler
  // opened the cache after the caller had looked.
  template <typename Slow>
  TCMALLOC_ALWAYS_INLINE static void* AllocateMediumOr(size_t size, FastThread thread, Slow slow) {
    auto* cache = Of(thread.lists());
    if (TCMALLOC_UNLIKELY(size > kMaxSmallSize || cache->closed())) return slow(size);
    const uint8_t c = kClassByMediumIndex[MediumIndex(size)];
    void* object = cache->AllocateListed(c, size);
    return TCMALLOC_LIKELY(object != nullptr) ? object : slow(size);
  }

  // Returns the bytes that count for the share. May be called by other threads and is then an
  // estimate, as CountObjects is.
  __attribute__((no_sanitize("thread"))) int64_t HeldBytes() const {
    return share_.full_bytes + list_bytes_;
  }
  // Returns true if chains and lists have room for this many bytes more.
  bool HasRoomFor(int64_t bytes) const { return HeldBytes() + bytes <= share_.limit(); }
  // Returns the bytes that the current list may hold, and those of the objects beside it.
  TCMALLOC_NOINLINE int64_t ListBytes(uint8_t c) const {
    const ClassState& state = states_[c];
    if (state.drain.active()) return DrainingBytes(c);
    return (int64_t{state.capacity} + state.beside.count) * SizeOf(c);
  }
  int64_t DrainingBytes(uint8_t c) const {
    return (int64_t{Batch(c)} + DrainingFetch(c)) * SizeOf(c);
  }
  // Of several objects no more than a page has: more would come from several spans, and the pages
  // of the first one tell what comes back to the list.
  uint32_t DrainingFetch(uint8_t c) const {
    const uint32_t of_page = std::max(static_cast<uint32_t>(kPageSize) / SizeOf(c), 2U);
    return std::max(std::min(Batch(c) / kDrainingFetchShare, of_page), 1U);
  }
  // Objects that the first miss brings, so that a thread which needs a few small ones misses once.
  static uint32_t FirstCapacity(uint8_t c) {
    return std::clamp(kFirstBytes / SizeOf(c), 1U, kFirstObjects);
  }
  int64_t AllocatedSinceCollection() const {
    return static_cast<int64_t>(header.clock.allocated_bytes() - allocated_at_collection_);
  }
  // Returns how many bytes the thread allocates from one collection to the next: enough that each
  // class which is in use had its turn.
  int64_t CollectionInterval() const {
    return std::max(
        {share_.full_bytes / 2, kMinCollectionInterval, turns_of_classes_, turns_in_use_});
  }
  TCMALLOC_ALWAYS_INLINE void NoteUsed(uint8_t c) {
    if (TCMALLOC_UNLIKELY((used_classes_[c / 64] >> (c % 64) & 1) == 0)) NoteFirstUse(c);
  }
  TCMALLOC_NOINLINE void NoteFirstUse(uint8_t c);

  // Changes a room, on x86-64 by one instruction: while a class drains, a signal handler in between
  // may change it for good.
  TCMALLOC_ALWAYS_INLINE static void AddAtOnce(int16_t& room, int16_t more) {
#if defined(__x86_64__)
    asm volatile("addw %1, %0" : "+m"(room) : "ir"(more) : "cc");
#else
    room = static_cast<int16_t>(room + more);
#endif
  }
  int16_t LeastRoom(uint8_t c) const { return states_[c].drain.active() ? -kDraining : 0; }
  void SetCurrent(uint8_t c, Chain chain);
  bool Refill(uint8_t c);
  void* AllocateFromLargerClass(uint8_t c);
  TCMALLOC_NOINLINE void LeaveSharedLine(uint8_t c);
  Chain NextChain(uint8_t c);
  bool GrowCapacity(uint8_t c, uint32_t most);
  // Returns the objects by which a list is long.
  int ObjectsBeyondTwo(uint8_t c, int capacity) const {
    return std::max(capacity - 2 * static_cast<int>(Batch(c)), 0);
  }
  void SetCapacity(uint8_t c, int capacity);
  // Returns true if the current list is empty and no fast path is using it.
  bool HasEmptyList(uint8_t c) const {
    return heads[c] == context_->codec->end && room[c] == states_[c].capacity;
  }
  void ResizeEmptyList(uint8_t c, int capacity);
  int AffordedObjects(uint8_t c, int wanted);
  bool GrowShare(int64_t bytes);
  uint32_t ObjectsToGiveUp(uint8_t c, int64_t bytes) const;
  TCMALLOC_COLD void GiveUpOthers(uint8_t kept, int64_t bytes);
  void HalveList(uint8_t c);
  TCMALLOC_NOINLINE void ReturnExcess(uint8_t c);
  void GiveUpEmptyList(uint8_t c);
  uint32_t FetchCount(uint8_t c);
  bool IsConsistent(uint8_t c) const;
  void CheckPlace(void* object, uint8_t c) const;
  void CrashAtPlace(void* object, uint8_t c) const;
  ObjectReference CheckedOutside(ObjectReference next, void* object, uint8_t c) const;
  ObjectReference CheckedNext(void* object, uint8_t c) const;
  void* PopUnchecked(uint8_t c);
  uint32_t LongestList(uint8_t c) const;
  bool MayDouble(uint8_t c) const;
  bool Lengthen(uint8_t c);
  void SetBeside(uint8_t c, Chain chain);
  Chain TakeBeside(uint8_t c);
  void TakeBack(uint8_t c);
  Chain TakeOlder(uint8_t c);
  bool HoldOneBatch(uint8_t c);
  Chain CutOff(uint8_t c, uint32_t n, Chain* chain) const;
  Chain TakeOldestOfList(uint8_t c);
  // Returns true if both batches leave when the second one is full. Where the class frees in a row,
  // keeping one gains nothing.
  bool BothLeave(uint8_t c) const {
    return Batch(c) >= kLongBatch && states_[c].drain.overflows() > 0;
  }
  // If it is kCaches, chains go to their spans; if it is kCachesIfScattered, those of objects that
  // lie far apart.
  enum class Past : uint8_t { kNothing, kCachesIfScattered, kCaches };
  void ReturnChain(uint8_t c, Chain chain, Past past) const;
  void ReturnCurrent(uint8_t c, Past past = Past::kNothing);
  void InsertInBatches(uint8_t c, Chain chain) const;
  void KeepIfWhole(uint8_t c, Chain chain);
  bool MayKeep(uint8_t c, uint32_t count) const;
  TCMALLOC_COLD bool MayBeginToDrain(uint8_t c);
  void MakeRoom(uint8_t c);
  // Returns what CheckedNext does, at once where that is an object in the address window.
  ObjectReference NextOf(void* object, uint8_t c) const {
    const ObjectReference next = context_->codec->Next(object);
    return TCMALLOC_LIKELY(context_->codec->InWindow(next)) ? next : CheckedNext(object, c);
  }
  Scatter ScatterOf(uint8_t c, Chain chain) const;
  // Returns true if more free objects of class `c`, of which full chains hold `bytes`, serve better
  // as pages of any class.
  bool IsWorthMoreAsPages(uint8_t c, int64_t bytes) const {
    return SizeOf(c) > kScatterMostSize && share_.full_bytes - bytes >= kOtherClassesBytes;
  }
  void SendHome(uint8_t c, Chain chain);
  void ShortenList(uint8_t c);
  void KeepOrReturn(uint8_t c, Chain chain);
  void StartDraining(uint8_t c);
  Chain StopDraining(uint8_t c);
  void ResumeKeeping(uint8_t c);
  uint32_t TakeAllocations(uint8_t c);
  bool KeepsDraining(uint8_t c);
  bool InterruptsAllocation(uint8_t c) const;
  static uint32_t LowPageNumber(const void* object) {
    return static_cast<uint32_t>(PageId::Containing(object).index());
  }
  bool IsTemporary(const void* object, uint8_t c) const;
  void FreeDraining(void* object, uint8_t c);
  void PutIn(void* object, uint8_t c);
  bool RefillDraining(uint8_t c);
  bool PushFull(uint8_t c, Chain chain) TCMALLOC_EXCLUDES(chains_lock_);
  Chain PopKept(uint8_t c) TCMALLOC_EXCLUDES(chains_lock_);
  bool HasRoomInBins(uint8_t c, uint32_t count);
  void SortIntoBins(uint8_t c, Chain chain) TCMALLOC_EXCLUDES(chains_lock_);
  bool PutInBins(uint8_t c, Chain chain) TCMALLOC_EXCLUDES(chains_lock_);
  bool PutListInBins(uint8_t c) TCMALLOC_EXCLUDES(chains_lock_);
  Chain TakeOfBins(uint8_t c) TCMALLOC_REQUIRES(chains_lock_);
  TCMALLOC_COLD uint32_t TakeOldest(uint8_t c, int64_t* objects, Chain* out)
      TCMALLOC_REQUIRES(chains_lock_);
  void ReturnOldest(uint8_t c, uint32_t count, Past past = Past::kNothing)
      TCMALLOC_EXCLUDES(chains_lock_);
  TCMALLOC_COLD void ReturnOldestByOther(uint8_t c, uint32_t count) TCMALLOC_EXCLUDES(chains_lock_);
  // Counts objects that come to full chains and bins, or leave them.
  void NoteKept(uint8_t c, int64_t objects) TCMALLOC_REQUIRES(chains_lock_) {
    states_[c].kept = static_cast<uint32_t>(states_[c].kept + objects);
    share_.full_bytes = share_.full_bytes + objects * SizeOf(c);
  }
  void UpdateLowWater(uint8_t c) TCMALLOC_REQUIRES(chains_lock_) {
    states_[c].low_water = std::min<uint32_t>(states_[c].low_water, states_[c].kept);
  }
  uint32_t LowWater(uint8_t c) TCMALLOC_EXCLUDES(chains_lock_);
  void NoteCollected(uint8_t c) TCMALLOC_EXCLUDES(chains_lock_);
  static void NoteOverage(ClassState& state);
  // Returns true if `bytes` more fit, if need be after a collection or with a larger share.
  TCMALLOC_ALWAYS_INLINE bool FitsBudget(int64_t bytes) {
    return HasRoomFor(bytes) || MakeRoomFor(bytes);
  }
  TCMALLOC_NOINLINE bool MakeRoomFor(int64_t bytes);
  int64_t MostInAnyOrder() const;
  bool GoesHome(const ClassState& state, Scatter scatter) const;
  Chain Counted(uint8_t c, Chain chain) const;
  uint32_t CountUpTo(uint32_t most, uint8_t c, ObjectReference head) const;
  TCMALLOC_COLD void UndoDoubtful(const void* object, uint8_t c);
  void CorrectList(uint8_t c);
  Chain TakeCurrent(uint8_t c);
  bool ChainHolds(Chain chain, const void* object, uint8_t c) const;
  TCMALLOC_COLD bool CurrentHolds(const void* object, uint8_t c) const;
  TCMALLOC_COLD bool FullHolds(const void* object, uint8_t c) const TCMALLOC_REQUIRES(chains_lock_);
  void CollectClass(uint8_t c);
  void CollectCurrent(uint8_t c);
  TCMALLOC_COLD void FlushFull(uint8_t c);
  TCMALLOC_COLD void FlushCurrent(uint8_t c);
  void CheckBeside(uint8_t c) const;
  int64_t CheckBins(uint8_t c) const;
  template <typename F>
  void ForEachUsedClass(F f) const;

  // Guards `full`, what is in `bins`, and `low_water` of every class, and the counts of the objects
  // and bytes in them. Only the owner adds chains, and makes and deletes bins.
  BiasedLock chains_lock_{LockRank::kFullChains};
  ClassState states_[kSizeClassCount] = {};
  Relaxed<uint64_t> used_classes_[(kSizeClassCount + 63) / 64];  // that ever had an object
  int64_t turns_of_classes_ = 0;  // bytes of one turn of each of them
  int64_t turns_in_use_ = 0;      // bytes of one turn of each that was in use before a collection
  const Context* context_ = nullptr;
  int64_t list_bytes_ = 0;
  uint8_t next_given_up_ = 0;             // whose list is the next to make room for others
  Relaxed<uint32_t> chains_moved_ = 0;    // by the owner
  uint32_t moved_at_release_ = 0;         // chains_moved_ at the last call of ReleaseIdle
  uint32_t moved_at_overdraft_ = 0;       // the same of ReturnOverdraft
  uint64_t active_at_ = 0;                // when ReturnOverdraft saw that chains had moved
  uint64_t allocated_at_collection_ = 0;  // bytes, by header.clock
  BudgetShare share_;
  ReuseWatch watch_;
};

}  // namespace tcmalloc

#include "cache/per_thread/thread_cache_bins_inl.h"
#include "cache/per_thread/thread_cache_check_inl.h"
#include "cache/per_thread/thread_cache_drain_inl.h"
#include "cache/per_thread/thread_cache_inl.h"
#include "cache/per_thread/thread_cache_return_inl.h"
#include "cache/per_thread/thread_cache_room_inl.h"

#endif  // TCMALLOC_CACHE_PER_THREAD_THREAD_CACHE_H_
