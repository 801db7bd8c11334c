// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A central free list of one size class: spans and the free objects in them.

#ifndef TCMALLOC_CENTRAL_CENTRAL_FREE_LIST_H_
#define TCMALLOC_CENTRAL_CENTRAL_FREE_LIST_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "base/bits.h"
#include "base/intrusive_list.h"
#include "base/spin_lock.h"
#include "central/corruption.h"
#include "central/free_bits.h"
#include "central/free_objects.h"
#include "central/object_run.h"
#include "central/object_starts.h"
#include "central/takers.h"
#include "page_heap/span_source.h"
#include "pages/free_link.h"
#include "pages/metadata_arena.h"
#include "pages/page_map.h"
#include "pages/span.h"
#include "size_class/size_classes.h"

namespace tcmalloc {

struct CentralStats {
  size_t spans = 0;
  size_t span_bytes = 0;
  size_t allocated_objects = 0;  // given out, to caches or to the application
  size_t free_objects = 0;       // carved, on the spans' lists
  size_t uncarved_objects = 0;
  size_t untouched_objects = 0;  // of those, the ones in memory that nobody touched yet
};

// Spans with a free object are in one of kRanks lists according to how full they are. Objects are
// taken from the fullest spans, so that the others can drain and go back to the page heap. Full
// spans are in no list. Thread safe.
//
// Objects leave a span in one of two ways. Objects that were freed leave first, those of the lowest
// addresses before others: see FreeBits. Objects that were never used leave next, in address order
// and one page of the system at a time, so that memory is not touched before it is needed.
template <SpanSource PageHeap>
class CentralFreeList {
 public:
  // The most objects that a cache line holds.
  static constexpr uint32_t kLineBytes = 64;
  static constexpr uint32_t kLineObjects = kLineBytes / sizeof(void*);
  // The number of groups that are looked up before the lock is taken to put them back.
  static constexpr uint32_t kInsertBlock = 32;
  // The most lists of one class.
  static constexpr uint16_t kMostOfClass = 16;

  // Objects of a span that one word of its FreeBits stands for.
  struct Group {
    Span* span;
    uint32_t word;
    uint32_t count;
    uint64_t bits;
  };
  // Objects that were looked up, to be put back. Those of a group came one after the other.
  struct Block {
    Group groups[kInsertBlock];
    uint32_t count;
  };
  using Drained = IntrusiveList<Span>;

  constexpr CentralFreeList() = default;

  // `free_bits` is of the class. `number`, less than kMostOfClass, tells the lists of one class
  // apart.
  void Initialize(uint8_t size_class, PageHeap& page_heap, PageMap& page_map,
                  const LinkCodec& codec, FreeBitsPool& free_bits, uint8_t number = 0) {
    size_class_ = size_class;
    name_ = static_cast<uint16_t>(size_class * kMostOfClass + number);
    // A span in a list has fewer objects given out than it holds, so this makes ranks below kRanks.
    rank_shift_ = static_cast<uint8_t>(std::max(Log2Ceil(info().objects) - Log2Ceil(kRanks), 0));
    page_heap_ = &page_heap;
    page_map_ = &page_map;
    codec_ = &codec;
    free_bits_ = &free_bits;
  }

  // Returns between 1 and max(wanted, kLineObjects) objects; an empty chain if no memory can be
  // had. Requires wanted > 0.
  Chain Fetch(uint32_t wanted) TCMALLOC_EXCLUDES(lock_) { return FetchTo(nullptr, wanted); }

  // Works as Fetch, but copies the addresses to `out`, the first object last, and returns their
  // number. The first words of the objects are not defined.
  uint32_t FetchArray(void** out, uint32_t wanted) TCMALLOC_EXCLUDES(lock_) {
    return FetchTo(out, wanted).count;
  }

  // Works as FetchArray, or as Fetch if `out` is null. The chain that stands for an array has its
  // number of objects alone.
  Chain FetchTo(void** out, uint32_t wanted) TCMALLOC_EXCLUDES(lock_);
  // Works as FetchTo, but asks for no memory, and may leave alone what other threads take from.
  Chain FetchAtHand(void** out, uint32_t wanted) TCMALLOC_EXCLUDES(lock_) {
    bool needless = false;
    return FetchListed(out, wanted, SharingFor(wanted), nullptr, &needless);
  }
  // Works as FetchTo where no memory can be had: takes whatever there is.
  Chain FetchLeft(void** out, uint32_t wanted) TCMALLOC_EXCLUDES(lock_) {
    bool needless = false;
    return FetchListed(out, wanted, Sharing::kAllowed, nullptr, &needless);
  }

  // Returns objects that were never handed out, up to the end of a group, without asking for
  // memory. Returns an empty chain if there are none at hand.
  Chain FetchLine() TCMALLOC_EXCLUDES(lock_);

  // Takes back every object of `chain` up to its end, ignoring its count. Crashes, naming the
  // object, if one of them is not a free object of this size class.
  void Insert(Chain chain) TCMALLOC_EXCLUDES(lock_);

  // The steps of Insert, where the objects of a chain belong to several lists. Looks up the next
  // objects of a chain of any of the lists: `next` is the first one, *before the object before it
  // and afterwards the last one of the block. Returns the next object of the chain.
  ObjectReference LookUp(ObjectReference next, const void** before, Block* block) const;
  // Puts back those objects of a block that are of this list, and takes them out of the block.
  void PutBackOwn(Block* block, Drained* drained) TCMALLOC_EXCLUDES(lock_);
  // Gives up the spans that have drained.
  void Release(Drained* drained) TCMALLOC_EXCLUDES(lock_) {
    while (Span* span = drained->PopFront()) page_heap_->Delete(span);
  }
  // Returns the number of the list of this class that has the span in its care; kMostOfClass or
  // more if none has.
  uint32_t NumberOfOwner(const Span* span) const {
    return uint32_t{span->central} - uint32_t{size_class_} * kMostOfClass;
  }
  // Crashes because the object with this index is free already, or was never handed out.
  [[noreturn]] void CrashOnUnfreed(const Span* span, size_t index) const;
  // Does so for an object of a group.
  [[noreturn]] void CrashOnUnfreed(const Group& group) const {
    CrashOnUnfreed(group.span, FreeBits::IndexOf(group.word, group.bits));
  }

  // Returns true if threads often wait for each other here. An estimate; needs no lock.
  bool is_crowded() const { return is_crowded_; }
  // Makes is_crowded false until as many threads have come again.
  void ForgetCrowd() { is_crowded_ = false; }
  // The bytes of the spans. An estimate; needs no lock.
  size_t span_bytes() const { return span_bytes_; }
  // The bytes of the freed objects in the spans. An estimate; needs no lock.
  size_t free_bytes() const { return size_t{free_objects_} * info().size; }

  // Returns true if at least a third of the objects in the spans are free, and those are enough to
  // be worth draining.
  bool IsSparse() TCMALLOC_EXCLUDES(lock_);

  // Returns true if `object` is a free object in one of the spans. Used to report a double free.
  TCMALLOC_COLD bool IsFree(const void* object) TCMALLOC_EXCLUDES(lock_);

  // Checks free objects in spans, at most as many as *most, which it counts down. Checks
  // that memory behind the objects is zero if all memory that reads as zero is `fresh`, never used.
  // Does nothing if the lock is held.
  TCMALLOC_COLD void CheckFreeObjects(bool fresh, size_t* most) TCMALLOC_EXCLUDES(lock_);

  CentralStats stats() TCMALLOC_EXCLUDES(lock_);
  void CheckInvariants() TCMALLOC_EXCLUDES(lock_);

 private:
  static constexpr uint8_t kRanks = 8;
  // Fresh memory is carved up to the next multiple of this, the smallest page of any kernel.
  static constexpr uintptr_t kTouchBytes = 4096;
  // Threads that ask for less share spans, so that a thread which needs little does not spread.
  static constexpr uint32_t kUnsharedBytes = 256;
  // Threads share spans of objects of more than kSpreadBytes unless there are kSpansPerTaker of
  // them for each thread. Several threads would otherwise leave a large part of such a class
  // unused.
  static constexpr uint32_t kSpreadBytes = 256;
  static constexpr uint32_t kSpansPerTaker = 4;
  // A class with fewer bytes of free objects is not sparse.
  static constexpr size_t kLeastSparseBytes = size_t{128} << 10;
  // The rank of spans in no list.
  static constexpr uint8_t kNoRank = UINT8_MAX;
  // A list is crowded if this many of so many threads that came one after the other had to wait.
  static constexpr uint32_t kCrowd = 256;
  static constexpr uint32_t kWaitsInCrowd = 8;

  // Says if a thread may take from a span from which another one takes at the same time.
  enum class Sharing : uint8_t { kAllowed, kAvoided };

  // How many spans are visited for freed objects, and how many of these are taken, before the lock
  // is released.
  static constexpr uint32_t kFetchSpans = 32;
  static constexpr uint32_t kFetchObjects = 256;

  // Freed objects, or a run of fresh ones.
  struct Taken {
    // Objects of one span, in address order.
    struct Run {
      Span* span;
      uint32_t end;  // the number of objects in this run and those before
    };

    Run freed[kFetchSpans];
    uint32_t spans = 0;
    uint32_t freed_count = 0;  // objects in all of them
    ObjectRun fresh;
    uint16_t indices[kFetchObjects];
  };

  const SizeClassInfo& info() const { return kSizeClasses[size_class_]; }
  uint8_t RankFor(uint32_t allocated) const {
    return static_cast<uint8_t>(allocated >> rank_shift_);
  }
  uint8_t RankOf(const Span* span) const { return RankFor(span->allocated); }

  // The number of neighbours looked at for the first of a row of spans.
  static constexpr int kMostStepsBack = 32;
  // The number of spans looked at in each list for objects that were never handed out.
  static constexpr int kMostVisits = 8;

  // Returns the number of neighbours that begin and end with a cache line together. Each run of
  // fresh objects ends a group, so that two threads that fetch in turn write to different lines.
  static constexpr uint32_t GroupObjects(uint32_t size) {
    return kLineBytes / std::gcd(size, kLineBytes);
  }

  Span* NewSpan() TCMALLOC_EXCLUDES(lock_);
  Span* ListedAt(PageId page, uint8_t rank) TCMALLOC_REQUIRES(lock_);
  Span* FullestSpan(const Takers::Taker& taker) TCMALLOC_REQUIRES(lock_);
  bool MaySpread() const TCMALLOC_REQUIRES(lock_);
  Span* FullestUnshared(const Takers::Taker& taker) TCMALLOC_REQUIRES(lock_);
  static void ContinueAfter(const Span* span, Takers::Taker* taker);
  void Link(Span* span) TCMALLOC_REQUIRES(lock_);
  void Unlink(Span* span) TCMALLOC_REQUIRES(lock_);
  void Relink(Span* span) TCMALLOC_REQUIRES(lock_);
  void TakeFreed(Span* span, uint32_t wanted, Taken* taken) TCMALLOC_REQUIRES(lock_);
  Span* SpanWithFresh() TCMALLOC_REQUIRES(lock_);
  ObjectRun TakeFresh(Span* span, uint32_t wanted) TCMALLOC_REQUIRES(lock_);
  void Take(uint32_t wanted, Sharing sharing, Taken* taken) TCMALLOC_REQUIRES(lock_);
  void* ObjectIn(const Span* span, size_t index) const {
    return span->start() + index * info().size;
  }
  void CrashOnFresh(const void* first, uint64_t word) const;
  void CheckFresh(const ObjectRun& run) const;
  void* CheckedObjectIn(const Span* span, size_t index) const;
  Chain LinkTaken(const Taken& taken) const;
  void CopyTaken(const Taken& taken, void** end) const;
  Sharing SharingFor(uint32_t wanted) const;
  Chain FetchListed(void** out, uint32_t wanted, Sharing sharing, Span* added, bool* needless)
      TCMALLOC_EXCLUDES(lock_);
  void LockCounted() TCMALLOC_ACQUIRE(lock_);
  void UnlockCounted() TCMALLOC_RELEASE(lock_);
  [[noreturn]] void CrashAt(ObjectReference reference, const void* before) const;
  bool HasBits(const Span* span) const;
  void Enlist(Span* span) TCMALLOC_REQUIRES(lock_);
  void Delist(Span* span) TCMALLOC_REQUIRES(lock_);
  void CheckCarved(const Group& group, uint32_t carved) const;
  const Group* PutBackRun(const Group* group, const Group* end, size_t words, Drained* drained)
      TCMALLOC_REQUIRES(lock_);
  ObjectReference InsertBlock(ObjectReference next, const void** before, Drained* drained)
      TCMALLOC_EXCLUDES(lock_);

  SpinLock lock_{LockRank::kCentralList};
  uint8_t size_class_ = 0;
  uint8_t rank_shift_ = 0;
  uint16_t name_ = 0;
  uint16_t arrivals_ TCMALLOC_GUARDED_BY(lock_) = 0;  // since the last look at the crowd
  uint16_t waits_ TCMALLOC_GUARDED_BY(lock_) = 0;     // of these, those who had to wait
  Relaxed<bool> is_crowded_ = false;
  Relaxed<size_t> span_bytes_ = 0;      // stats_.span_bytes for those without the lock
  Relaxed<uint32_t> free_objects_ = 0;  // stats_.free_objects for those without the lock
  uint32_t listed_ranks_ TCMALLOC_GUARDED_BY(lock_) = 0;  // bit r: lists_[r] is not empty
  PageHeap* page_heap_ = nullptr;
  PageMap* page_map_ = nullptr;
  const LinkCodec* codec_ = nullptr;
  FreeBitsPool* free_bits_ = nullptr;
  IntrusiveList<Span> lists_[kRanks] TCMALLOC_GUARDED_BY(lock_);
  Takers takers_ TCMALLOC_GUARDED_BY(lock_);
  CentralStats stats_ TCMALLOC_GUARDED_BY(lock_);
};

template <SpanSource PageHeap>
Span* CentralFreeList<PageHeap>::NewSpan() {
  Span* span = page_heap_->New(Length(info().pages));
  if (span == nullptr) return nullptr;
  span->state = Span::State::kSmall;
  span->size_class = size_class_;
  span->allocated = 0;
  span->carved = 0;
  span->capacity = info().objects;
  return span;
}

// Takes the lock, and notes whether that took a wait.
template <SpanSource PageHeap>
TCMALLOC_ALWAYS_INLINE void CentralFreeList<PageHeap>::LockCounted() {
  if constexpr (kDebugChecks) CheckRankOrder(lock_.rank());
  if (lock_.TryLock()) return;
  lock_.Lock();
  ++waits_;
}

template <SpanSource PageHeap>
TCMALLOC_ALWAYS_INLINE void CentralFreeList<PageHeap>::UnlockCounted() {
  free_objects_ = static_cast<uint32_t>(std::min<size_t>(stats_.free_objects, UINT32_MAX));
  if (TCMALLOC_UNLIKELY(++arrivals_ == kCrowd)) {
    is_crowded_ = waits_ >= kWaitsInCrowd;
    arrivals_ = 0;
    waits_ = 0;
  }
  lock_.Unlock();
}

// Returns the span in the list of `rank` that has `page`, or null. Another list of the class may
// have it, and may just give it up, so that one of another class gets it: the name decides.
template <SpanSource PageHeap>
Span* CentralFreeList<PageHeap>::ListedAt(PageId page, uint8_t rank) {
  if (page_map_->ClassAt(page) != size_class_) return nullptr;
  Span* span = page_map_->Get(page);
  return span != nullptr && span->central == name_ && span->rank == rank ? span : nullptr;
}

// Returns one of the fullest spans, or null: the one behind the span from which the thread took
// objects last or, if that is none of them, the first of several that lie side by side.
template <SpanSource PageHeap>
Span* CentralFreeList<PageHeap>::FullestSpan(const Takers::Taker& taker) {
  if (listed_ranks_ == 0) return nullptr;
  const auto rank = static_cast<uint8_t>(Log2Floor(listed_ranks_));
  if (Span* next = ListedAt(taker.continue_at, rank)) return next;
  Span* first = lists_[rank].front();
  for (int i = 0; i < kMostStepsBack; ++i) {
    Span* before = ListedAt(first->first - Length(1), rank);
    if (before == nullptr) break;
    first = before;
  }
  return first;
}

// Returns true if little of the class is unused where each thread has a span of its own.
template <SpanSource PageHeap>
bool CentralFreeList<PageHeap>::MaySpread() const {
  return info().size <= kSpreadBytes || stats_.spans >= kSpansPerTaker * takers_.count();
}

// Returns the fullest span from which no other thread takes, or null.
template <SpanSource PageHeap>
Span* CentralFreeList<PageHeap>::FullestUnshared(const Takers::Taker& taker) {
  Span* fullest = FullestSpan(taker);
  if (fullest == nullptr || !takers_.IsHeldByOther(fullest, taker)) return fullest;
  for (uint8_t rank = kRanks; rank-- > 0;) {
    for (Span* span = lists_[rank].front(); span != nullptr; span = lists_[rank].next(span)) {
      if (!takers_.IsHeldByOther(span, taker)) return span;
    }
  }
  return nullptr;
}

// Notes that objects were taken from `span`: the thread's next ones shall lie behind them.
template <SpanSource PageHeap>
void CentralFreeList<PageHeap>::ContinueAfter(const Span* span, Takers::Taker* taker) {
  taker->holds_span = span->linked();
  taker->continue_at = taker->holds_span ? span->first.value() : span->end();
}

template <SpanSource PageHeap>
void CentralFreeList<PageHeap>::Link(Span* span) {
  span->rank = RankOf(span);
  lists_[span->rank].PushFront(span);
  listed_ranks_ |= uint32_t{1} << span->rank;
}

template <SpanSource PageHeap>
void CentralFreeList<PageHeap>::Unlink(Span* span) {
  lists_[span->rank].Remove(span);
  if (lists_[span->rank].empty()) listed_ranks_ &= ~(uint32_t{1} << span->rank);
  span->rank = kNoRank;
}

// Moves `span`, which is linked unless it was full, to the list for its count of objects.
template <SpanSource PageHeap>
void CentralFreeList<PageHeap>::Relink(Span* span) {
  const bool full = span->allocated == span->capacity;
  if (span->linked()) {
    if (!full && RankOf(span) == span->rank) return;
    Unlink(span);
  }
  if (!full) Link(span);
}

// Takes at most `wanted` freed objects of `span`, which has some.
template <SpanSource PageHeap>
void CentralFreeList<PageHeap>::TakeFreed(Span* span, uint32_t wanted, Taken* taken) {
  const uint32_t count =
      FreeBits(span, free_bits_->words()).Take(wanted, taken->indices + taken->freed_count);
  taken->freed_count += count;
  taken->freed[taken->spans++] = {span, taken->freed_count};
  span->allocated += count;
  stats_.free_objects -= count;
  stats_.allocated_objects += count;
}

template <SpanSource PageHeap>
ObjectRun CentralFreeList<PageHeap>::TakeFresh(Span* span, uint32_t wanted) {
  const uint32_t size = info().size;
  char* start = span->start() + size_t{span->carved} * size;
  if (span->zeroed) {
    const auto from = reinterpret_cast<uintptr_t>(start);
    const uintptr_t room = AlignUp(from + 1, kTouchBytes) - from;
    wanted = std::min(wanted, static_cast<uint32_t>((room + size - 1) / size));
  }
  const uint32_t group = GroupObjects(size);
  const uint32_t carved = span->carved;
  const uint32_t end = std::max((carved + wanted) / group, carved / group + 1) * group;
  // The last group may be shorter, and nobody has the rest of its last line.
  const uint32_t rest = span->capacity - carved;
  const uint32_t count = wanted < rest ? std::min(end - carved, rest) : rest;
  span->carved += count;
  span->allocated += count;
  stats_.uncarved_objects -= count;
  if (span->zeroed) stats_.untouched_objects -= count;
  stats_.allocated_objects += count;
  return {start, count, size, span->zeroed};
}

// Returns a listed span with objects that were never handed out, or null if the first few have
// none.
template <SpanSource PageHeap>
Span* CentralFreeList<PageHeap>::SpanWithFresh() {
  if (stats_.uncarved_objects == 0) return nullptr;
  for (IntrusiveList<Span>& list : lists_) {
    Span* span = list.front();
    for (int visits = 0; span != nullptr && visits < kMostVisits; ++visits) {
      if (span->carved < span->capacity) return span;
      span = list.next(span);
    }
  }
  return nullptr;
}

template <SpanSource PageHeap>
Chain CentralFreeList<PageHeap>::FetchLine() {
  ObjectRun run;
  {
    SpinLockHolder holder(lock_);
    Span* span = SpanWithFresh();
    if (span == nullptr) return {};
    run = TakeFresh(span, 1);
    Relink(span);
  }
  CheckFresh(run);
  return LinkRun(run, *codec_);
}

// Takes objects from listed spans: freed ones, or else a run of fresh ones.
template <SpanSource PageHeap>
void CentralFreeList<PageHeap>::Take(uint32_t wanted, Sharing sharing, Taken* taken) {
  Takers::Taker& taker = takers_.Take(__builtin_thread_pointer());
  const bool shared = sharing == Sharing::kAllowed || !MaySpread();
  wanted = std::min(wanted, kFetchObjects);
  // Fewer are worth a visit to another span.
  const uint32_t enough = (wanted + 1) / 2;
  while (taken->freed_count < enough && taken->spans < kFetchSpans) {
    Span* span = shared ? FullestSpan(taker) : FullestUnshared(taker);
    if (span == nullptr) return;
    if (span->carved > span->allocated) {
      TakeFreed(span, wanted - taken->freed_count, taken);
      Relink(span);
      ContinueAfter(span, &taker);
    } else {
      if (taken->freed_count > 0) return;
      taken->fresh = TakeFresh(span, wanted);
      Relink(span);
      return ContinueAfter(span, &taker);
    }
  }
}

// Reports `first`, the first object of a run of zeros, which held `word`, unless another process
// may have written it.
template <SpanSource PageHeap>
TCMALLOC_COLD void CentralFreeList<PageHeap>::CrashOnFresh(const void* first, uint64_t word) const {
  if constexpr (requires { page_heap_->is_shared(); }) {
    if (page_heap_->is_shared()) return;
  }
  CrashOnTouched(first, codec_->Decode(word));
}

// Crashes if the first object of a run of zeros was written to or freed.
template <SpanSource PageHeap>
TCMALLOC_ALWAYS_INLINE void CentralFreeList<PageHeap>::CheckFresh(const ObjectRun& run) const {
  if (!run.is_zero) return;
  const uint64_t word = TakeZeroWord(run.start);
  if (TCMALLOC_UNLIKELY(word != 0)) CrashOnFresh(run.start, word);
}

// Returns a free object of `span`. Crashes if its link was overwritten.
template <SpanSource PageHeap>
TCMALLOC_ALWAYS_INLINE void* CentralFreeList<PageHeap>::CheckedObjectIn(const Span* span,
                                                                        size_t index) const {
  void* object = ObjectIn(span, index);
  if (TCMALLOC_UNLIKELY(!LinkCodec::IsToAddress(codec_->Next(object)))) {
    CrashOnBadLink(*page_map_, object, size_class_);
  }
  return object;
}

// Links what was taken, without the lock: nobody else has these objects, and they keep their spans.
template <SpanSource PageHeap>
Chain CentralFreeList<PageHeap>::LinkTaken(const Taken& taken) const {
  if (taken.fresh.count > 0) return LinkRun(taken.fresh, *codec_);
  ObjectReference head = codec_->end;
  uint32_t end = taken.freed_count;
  for (uint32_t i = taken.spans; i-- > 0;) {
    const uint32_t begin = i > 0 ? taken.freed[i - 1].end : 0;
    for (const Span* span = taken.freed[i].span; end > begin; --end) {
      void* object = CheckedObjectIn(span, taken.indices[end - 1]);
      codec_->Link(object, head);
      head = ReferenceTo(object);
    }
  }
  return {head, taken.freed_count};
}

// Copies the addresses of what was taken to the places before `end`, the last one first.
template <SpanSource PageHeap>
void CentralFreeList<PageHeap>::CopyTaken(const Taken& taken, void** end) const {
  for (uint32_t i = 0; i < taken.fresh.count; ++i) {
    *--end = taken.fresh.start + size_t{i} * taken.fresh.size;
  }
  uint32_t next = 0;
  for (uint32_t i = 0; i < taken.spans; ++i) {
    const typename Taken::Run& run = taken.freed[i];
    for (; next < run.end; ++next) *--end = CheckedObjectIn(run.span, taken.indices[next]);
  }
}

// Adds a new span.
template <SpanSource PageHeap>
void CentralFreeList<PageHeap>::Enlist(Span* span) {
  span->central = name_;
  free_bits_->Attach(span);
  page_map_->RegisterSmall(span);
  takers_.Release(span);
  Link(span);
  ++stats_.spans;
  stats_.span_bytes += span->bytes();
  span_bytes_ = stats_.span_bytes;
  stats_.uncarved_objects += span->capacity;
  if (span->zeroed) stats_.untouched_objects += span->capacity;
}

// Gives up a span without allocated objects.
template <SpanSource PageHeap>
void CentralFreeList<PageHeap>::Delist(Span* span) {
  page_map_->UnregisterSmall(span);
  span->central = Span::kNoCentral;
  free_bits_->Detach(span);
  if (span->linked()) Unlink(span);
  stats_.free_objects -= span->carved;
  stats_.uncarved_objects -= span->capacity - span->carved;
  if (span->zeroed) stats_.untouched_objects -= span->capacity - span->carved;
  --stats_.spans;
  stats_.span_bytes -= span->bytes();
  span_bytes_ = stats_.span_bytes;
}

// Fetches from the spans at hand and from `added`, a new one, if that is not null; sets *needless
// if that was not needed. Copies the addresses to `out` or, if that is null, links the objects. A
// function of its own so that its stack is free again when a span is
// made.
template <SpanSource PageHeap>
TCMALLOC_NOINLINE Chain CentralFreeList<PageHeap>::FetchListed(void** out, uint32_t wanted,
                                                               Sharing sharing, Span* added,
                                                               bool* needless) {
  Taken taken;
  LockCounted();
  if (added != nullptr) Enlist(added);
  Take(wanted, sharing, &taken);
  // Another thread may have added a span or freed objects in the meantime.
  *needless = added != nullptr && added->allocated == 0;
  if (*needless) Delist(added);
  UnlockCounted();
  CheckFresh(taken.fresh);
  if (out == nullptr) return LinkTaken(taken);
  const uint32_t count = taken.freed_count + taken.fresh.count;
  CopyTaken(taken, out + count);
  return {codec_->end, count};
}

// Returns whether so many objects may come from a span from which another thread takes.
template <SpanSource PageHeap>
typename CentralFreeList<PageHeap>::Sharing CentralFreeList<PageHeap>::SharingFor(
    uint32_t wanted) const {
  const bool few = wanted == 1 || wanted * info().size < kUnsharedBytes;
  return few || info().size > kTouchBytes ? Sharing::kAllowed : Sharing::kAvoided;
}

template <SpanSource PageHeap>
Chain CentralFreeList<PageHeap>::FetchTo(void** out, uint32_t wanted) {
  Chain chain = FetchAtHand(out, wanted);
  while (chain.empty()) {
    Span* added = NewSpan();
    if (added == nullptr) return FetchLeft(out, wanted);
    bool needless = false;
    chain = FetchListed(out, wanted, SharingFor(wanted), added, &needless);
    if (needless) page_heap_->Delete(added);
  }
  return chain;
}

// Crashes because no object of this class that was handed out begins at `reference`, to which
// `before` links unless it is null. A link was overwritten, an address inside a block was freed, or
// an object was freed again after it had drained its span.
template <SpanSource PageHeap>
TCMALLOC_COLD void CentralFreeList<PageHeap>::CrashAt(ObjectReference reference,
                                                      const void* before) const {
  const void* object = ObjectAt(reference);
  const Span* span = page_map_->FindInUse(object);
  const bool of_this_class = span != nullptr && span->state == Span::State::kSmall &&
                             span->size_class == size_class_ && reference == ReferenceTo(object);
  if (of_this_class) {
    const auto offset = static_cast<size_t>(static_cast<const char*>(object) - span->start());
    // The span drained, and is not registered any more.
    if (IsObjectStart(offset, size_class_)) CrashOnDoubleFree(object, info().size);
    CrashOnStray(object, span);
  }
  CrashOnBadLink(*page_map_, before != nullptr ? before : object, size_class_);
}

// Returns false for a span that went back after it was looked up, and that serves something else by
// now, as it may where two threads free one object.
template <SpanSource PageHeap>
TCMALLOC_ALWAYS_INLINE bool CentralFreeList<PageHeap>::HasBits(const Span* span) const {
  return span->central == name_;
}

template <SpanSource PageHeap>
TCMALLOC_COLD void CentralFreeList<PageHeap>::CrashOnUnfreed(const Span* span, size_t index) const {
  const void* object = ObjectIn(span, index);
  const bool fresh = HasBits(span) && span->allocated > 0 && index >= span->carved;
  if (fresh) CrashOnUnknownBlock(object);
  CrashOnDoubleFree(object, info().size);
}

// Crashes if an object of a group is among those of its span that were never handed out.
template <SpanSource PageHeap>
TCMALLOC_NOINLINE void CentralFreeList<PageHeap>::CheckCarved(const Group& group,
                                                              uint32_t carved) const {
  const size_t highest = FreeBits::HighestOf(group.word, group.bits);
  if (TCMALLOC_UNLIKELY(highest >= carved)) CrashOnUnfreed(group.span, highest);
}

// Puts back objects from *group on, up to `end` or to the first ones of another span. The span is
// of this list. Returns the next group.
template <SpanSource PageHeap>
TCMALLOC_ALWAYS_INLINE const typename CentralFreeList<PageHeap>::Group*
CentralFreeList<PageHeap>::PutBackRun(const Group* group, const Group* end, size_t words,
                                      Drained* drained) {
  Span* const span = group->span;
  FreeBits bits(span, words);
  const uint32_t carved = span->carved;
  uint32_t allocated = span->allocated;
  const bool has_fresh = carved < info().objects;
  do {
    if (TCMALLOC_UNLIKELY(has_fresh)) CheckCarved(*group, carved);
    const uint64_t twice = bits.Set(group->word, group->bits);
    if (TCMALLOC_UNLIKELY(twice != 0)) CrashOnUnfreed(span, FreeBits::IndexOf(group->word, twice));
    allocated -= group->count;
  } while (++group != end && group->span == span);
  span->allocated = allocated;
  if (TCMALLOC_UNLIKELY(allocated == 0)) {
    Delist(span);
    drained->PushFront(span);
  } else if (TCMALLOC_UNLIKELY(RankFor(allocated) != span->rank)) {
    Relink(span);
  }
  return group;
}

template <SpanSource PageHeap>
TCMALLOC_ALWAYS_INLINE ObjectReference CentralFreeList<PageHeap>::LookUp(ObjectReference next,
                                                                         const void** before,
                                                                         Block* block) const {
  const ObjectStarts starts(size_class_);
  const LinkCodec codec = *codec_;
  PageMap::Walker walker(*page_map_);
  Group* group = block->groups;
  Span* span = nullptr;
  const void* last = *before;
  uintptr_t start = AddressAt(next) - starts.bytes;  // of the span; the first object is beyond
  for (; group != block->groups + kInsertBlock && next != codec.end; ++group) {
    const uintptr_t address = AddressAt(next);
    size_t index = starts.IndexAt(address - start);
    if (index == ObjectStarts::kNone) {
      const auto* object = reinterpret_cast<const void*>(address);
      const PageMap::Entry entry = walker.EntryOf(PageId::Containing(object));
      start = address - entry.OffsetOf(object);
      index = starts.IndexAt(address - start);
      const bool found = entry.size_class() == starts.size_class && index != ObjectStarts::kNone;
      if (TCMALLOC_UNLIKELY(!found)) CrashAt(next, last);
      span = entry.span();
    }
    const size_t word = index / FreeBits::kWordBits;
    uint64_t bits = 0;
    uint32_t count = 0;
    do {
      const uint64_t before_this = bits;
      bits |= uint64_t{1} << (index % FreeBits::kWordBits);
      if (TCMALLOC_UNLIKELY(bits == before_this)) CrashOnUnfreed(span, index);
      ++count;
      last = ObjectAt(next);
      next = codec.Next(ObjectAt(next));
      index = starts.IndexAt(AddressAt(next) - start);
    } while (index / FreeBits::kWordBits == word);
    *group = {span, static_cast<uint32_t>(word), count, bits};
  }
  block->count = static_cast<uint32_t>(group - block->groups);
  *before = last;
  return next;
}

// Puts back the next objects of a chain. A function of its own, so that its stack is free again
// when spans are deleted.
template <SpanSource PageHeap>
TCMALLOC_NOINLINE ObjectReference CentralFreeList<PageHeap>::InsertBlock(ObjectReference next,
                                                                         const void** before,
                                                                         Drained* drained) {
  Block block;
  next = LookUp(next, before, &block);
  PutBackOwn(&block, drained);
  if (TCMALLOC_UNLIKELY(block.count > 0)) CrashOnUnfreed(block.groups[0]);
  return next;
}

template <SpanSource PageHeap>
void CentralFreeList<PageHeap>::Insert(Chain chain) {
  Drained drained;
  const void* before = nullptr;
  for (ObjectReference next = chain.head; next != codec_->end;) {
    next = InsertBlock(next, &before, &drained);
  }
  Release(&drained);
}

template <SpanSource PageHeap>
void CentralFreeList<PageHeap>::PutBackOwn(Block* block, Drained* drained) {
  size_t objects = 0;
  const size_t words = free_bits_->words();
  const Group* const end = block->groups + block->count;
  Group* others = block->groups;
  LockCounted();
  for (const Group* group = block->groups; group != end;) {
    if (TCMALLOC_LIKELY(HasBits(group->span))) {
      const Group* const next = PutBackRun(group, end, words, drained);
      for (; group != next; ++group) objects += group->count;
    } else {
      // The span drained since it was looked up. Where a chain is a circle, the objects behind this
      // one come again as well, but this one was freed twice.
      if (group->span->central == Span::kNoCentral) CrashOnUnfreed(*group);
      *others++ = *group++;
    }
  }
  stats_.free_objects += objects;
  stats_.allocated_objects -= objects;
  UnlockCounted();
  block->count = static_cast<uint32_t>(others - block->groups);
}

template <SpanSource PageHeap>
bool CentralFreeList<PageHeap>::IsSparse() {
  // Most classes have few free objects, and caches ask often.
  if (free_bytes() < kLeastSparseBytes) return false;
  SpinLockHolder holder(lock_);
  return stats_.free_objects * 2 >= stats_.allocated_objects + stats_.uncarved_objects &&
         stats_.free_objects * info().size >= kLeastSparseBytes;
}

template <SpanSource PageHeap>
bool CentralFreeList<PageHeap>::IsFree(const void* object) {
  SpinLockHolder holder(lock_);
  const PageMap::Entry entry = page_map_->EntryOf(PageId::Containing(object));
  if (entry.size_class() != size_class_ || entry.span()->central != name_) return false;
  const size_t index = ObjectStarts(size_class_).IndexAt(entry.OffsetOf(object));
  return index != ObjectStarts::kNone && FreeBits(entry.span(), free_bits_->words()).IsSet(index);
}

template <SpanSource PageHeap>
void CentralFreeList<PageHeap>::CheckFreeObjects(bool fresh, size_t* most) {
  FreeObjectCheck check(*page_map_, *codec_, size_class_, most);
  if (!lock_.TryLock()) return;
  for (IntrusiveList<Span>& list : lists_) {
    for (Span* span = list.front(); span != nullptr && !check.done(); span = list.next(span)) {
      check.CountOne();
      size_t left = FreeObjectCheck::kMostOfList;
      FreeBits(span, free_bits_->words()).ForEach([&](size_t index) {
        if (left == 0 || check.done()) return false;
        --left;
        check.CheckFree(ObjectIn(span, index));
        return true;
      });
      if (fresh && span->zeroed && span->carved < span->capacity) {
        CheckUntouched(*codec_, span->start() + size_t{span->carved} * info().size);
      }
    }
  }
  lock_.Unlock();
}

template <SpanSource PageHeap>
CentralStats CentralFreeList<PageHeap>::stats() {
  SpinLockHolder holder(lock_);
  return stats_;
}

template <SpanSource PageHeap>
void CentralFreeList<PageHeap>::CheckInvariants() {
  SpinLockHolder holder(lock_);
  for (uint8_t rank = 0; rank < kRanks; ++rank) {
    TCMALLOC_CHECK_EQ(lists_[rank].empty(), (listed_ranks_ >> rank & 1) == 0);
    for (Span* span = lists_[rank].front(); span != nullptr; span = lists_[rank].next(span)) {
      TCMALLOC_CHECK_EQ(span->size_class, size_class_);
      TCMALLOC_CHECK_EQ(RankOf(span), rank);
      TCMALLOC_CHECK_LE(span->allocated, span->carved);
      TCMALLOC_CHECK_LE(span->carved, span->capacity);
      uint32_t free = 0;
      FreeBits(span, free_bits_->words()).ForEach([&](size_t index) {
        TCMALLOC_CHECK_LE(index + 1, size_t{span->carved});
        return ++free > 0;
      });
      TCMALLOC_CHECK_EQ(free, span->carved - span->allocated);
    }
  }
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CENTRAL_CENTRAL_FREE_LIST_H_
