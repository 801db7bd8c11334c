// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The common parts of both page heaps: growth, limit and release.

#ifndef TCMALLOC_PAGE_HEAP_PAGE_HEAP_BASE_H_
#define TCMALLOC_PAGE_HEAP_PAGE_HEAP_BASE_H_

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/bits.h"
#include "base/check.h"
#include "base/spin_lock.h"
#include "base/thread_annotations.h"
#include "page_heap/free_runs.h"
#include "page_heap/page_heap.h"
#include "page_heap/stats.h"
#include "pages/metadata_arena.h"
#include "pages/page_map.h"
#include "pages/page_types.h"
#include "pages/span.h"
#include "system/auxv.h"
#include "system/futex.h"
#include "system/memory.h"

namespace tcmalloc {

// Growth, limit and release of a page heap over `System`, which offers Allocate, Release and Unmap
// as SystemMemory does. `Spans`, which is HeapSpans or HugeSpans, places the spans.
template <typename System, typename Spans>
class PageHeapBase : public PageHeap {
 public:
  using PageHeap::ReleaseAtLeast, PageHeap::ReleaseUnused;

  void NoteIdleSince(uint64_t since) final TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    decay_.NoteIdleSince(since, spans_.free());
  }

  PageHeapStats stats() final TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    PageHeapStats stats = spans_.stats();
    static_cast<PageHeapEvents&>(stats) = events_;
    return stats;
  }

  TCMALLOC_COLD void CountFreeRuns(FreeRunCounts* counts) final TCMALLOC_EXCLUDES(lock_) {
    PageId next;
    for (bool more = true; more;) {
      SpinLockHolder holder(lock_);
      more = spans_.CountFreeRuns(&next, counts);
    }
  }

  // Crashes if the heap's structures contradict each other. Visits every span. Not virtual, so that
  // it takes no room in a library in which nobody calls it.
  void CheckInvariants() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    spans_.CheckInvariants();
  }

 protected:
  // Larger than any address space, but small enough that no sum here overflows.
  static constexpr Length kMaxRequest = Length(uintptr_t{1} << (kAddressBits - kPageShift));

  // kExactly cuts spans so that not a page more is released than was asked for.
  enum class Cut : bool { kNever, kExactly };

  constexpr PageHeapBase(System& system, PageMap& map, MetadataArena& arena, Length unit,
                         Length least_growth)
      : PageHeap(unit, least_growth), system_(system), spans_(map, arena), map_(map) {}
  ~PageHeapBase() = default;

  // Called at the beginning of every request.
  void NoteRequest() TCMALLOC_REQUIRES(lock_) {
    CheckOften();
    spans_served_.store(spans_served() + 1, std::memory_order_relaxed);
  }
  void PublishCommitted() TCMALLOC_REQUIRES(lock_) {
    if (spans_.committed() > committed()) ++events_.commits;
    committed_.store(spans_.committed().pages(), std::memory_order_relaxed);
    free_now_.store(spans_.free().pages(), std::memory_order_relaxed);
  }

  // Called after free pages were taken.
  void NoteFreeTaken() TCMALLOC_REQUIRES(lock_) {
    decay_.NoteFree(spans_.free());
    free_now_.store(spans_.free().pages(), std::memory_order_relaxed);
  }
  // Called at the end of every Delete.
  void NoteFreed(Length n) TCMALLOC_REQUIRES(lock_) {
    free_now_.store(spans_.free().pages(), std::memory_order_relaxed);
    freed_.store(freed().pages() + n.pages(), std::memory_order_relaxed);
  }

  bool HasReleased() const TCMALLOC_REQUIRES(lock_) { return events_.releases > 0; }
  bool HasLimit() const TCMALLOC_REQUIRES(lock_) { return limit_ != Length(0); }
  bool AllowedByLimit(Length n) const TCMALLOC_REQUIRES(lock_) {
    return !HasLimit() || spans_.committed() + n <= limit_;
  }
  // Returns how many more pages the limit allows to be committed.
  Length Headroom() const TCMALLOC_REQUIRES(lock_) {
    return HasLimit() ? limit_ - std::min(spans_.committed(), limit_) : kMaxRequest;
  }
  // Releases enough that n more committed pages stay within the limit, or nothing if all free
  // memory would not suffice. May let go of the lock. If it returns true, the limit holds now.
  template <typename... Which>
  bool MakeRoom(Length n, Which... which) TCMALLOC_REQUIRES(lock_) {
    if (AllowedByLimit(n)) return true;
    ++events_.limit_hits;
    const Length excess = spans_.committed() + n - limit_;
    if (excess > spans_.free()) return false;
    ReleaseLocked(excess, Cut::kNever, ReleaseCause::kHardLimit, which...);
    if (!AllowedByLimit(n)) return false;
    ++events_.limit_shrinks;
    return true;
  }

  // Adds at least `least` pages, or only as many as the request needs. Returns the span that
  // `Spans` made of them, or null.
  Span* Grow(Length n, Length alignment, Length least) TCMALLOC_REQUIRES(lock_);
  Length least_growth() const TCMALLOC_REQUIRES(lock_) { return least_growth_; }

  // Adds at least n pages behind the end of the heap. Returns the span that `Spans` made of them,
  // or null if the system refused, or put them elsewhere: then it is not asked there again.
  Span* GrowBehind(PageId end, Length n) TCMALLOC_REQUIRES(lock_) {
    if (end == closed_end_) return nullptr;
    Span* fresh = Grow(n, Length(1), least_growth_);
    if (fresh == nullptr || fresh->Contains(end)) return fresh;
    closed_end_ = end;
    return nullptr;
  }
  // Returns the number of pages that the system would have to add behind the heap for a span in use
  // to have n pages; 0 if that is not all that keeps it from them.
  Length MissingAtEnd(const Span* span, Length n) const TCMALLOC_REQUIRES(lock_) {
    const Length missing = spans_.MissingAtEnd(span, n, Headroom());
    return span->first + n - missing != closed_end_ ? missing : Length(0);
  }
  // Makes a span in use n pages long without moving it, with pages of the system where the heap
  // ends behind it. Returns false if that cannot be, if the limit forbids it, or if the block had
  // better move to resident memory.
  bool ExtendLocked(Span* span, Length n) TCMALLOC_REQUIRES(lock_) {
    if (spans_.Extend(span, n, Headroom())) return true;
    const Length missing = MissingAtEnd(span, n);
    if (missing == Length(0)) return false;
    if (IsLongStep(span->length.pages(), n.pages()) && spans_.HasFree(n)) return false;
    return GrowBehind(span->first + n - missing, missing) != nullptr &&
           spans_.Extend(span, n, Headroom());
  }

  // Returns true if a failed request is worth another attempt, because another thread was releasing
  // memory and there were few `retries` so far. May let go of the lock.
  bool MayRetry(int* retries) TCMALLOC_REQUIRES(lock_) {
    return (*retries)++ < kMaxRetries && WaitForReleases();
  }

  // Gives back at least n pages, as far as they exist and the system takes them. `which` tells
  // `Spans` which pages may go. Lets go of the lock for system calls.
  template <typename... Which>
  Length ReleaseLocked(Length n, Cut cut, ReleaseCause cause, Which... which)
      TCMALLOC_REQUIRES(lock_);
  // Gives back, on the allocator's own initiative, a span whose release has begun.
  Length ReleaseAlone(Span* span) TCMALLOC_REQUIRES(lock_);

  // Checks invariants in paranoid builds, so often that a call visits kSpansPerCall spans on
  // average. That bounds the cost of the checks in a large heap.
  void CheckOften() TCMALLOC_REQUIRES(lock_) {
    if constexpr (kParanoidChecks) {
      check_credit_ += kSpansPerCall;
      if (check_credit_ < spans_.count()) return;
      check_credit_ = 0;
      spans_.CheckInvariants();
    }
  }

  System& system_;
  Spans spans_ TCMALLOC_GUARDED_BY(lock_);

 private:
  // Memory on its way to the system is not available to requests during one call. This much takes
  // about half a millisecond; more would hardly save time.
  static constexpr Length kMaxRelease = Length::FromBytesCeil(size_t{16} << 20);
  // The number of times that a failed request is repeated because another thread was releasing
  // memory.
  static constexpr int kMaxRetries = 8;
  // The number of times that a thread waits for such a release, and the longest time for each.
  // Bounded, because the other thread may be stopped.
  static constexpr int kMaxWaits = 1000;
  static constexpr uint64_t kLongestWaitNs = 2'000'000;
  static constexpr size_t kSpansPerCall = 64;

  // Spans on their way to the system.
  struct Departure {
    Span* spans[System::kMostRequests];
    ReleaseCause cause = ReleaseCause::kAllocator;
    size_t count = 0;
    Length length;
  };

  TCMALLOC_COLD void VisitSpans(SpanVisit visit, void* visitor) final TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    spans_.ForEach([&](const Span& span) { visit(visitor, span); });
  }

  bool VisitFreshSpans(size_t most, SpanVisit visit, void* visitor) final TCMALLOC_EXCLUDES(lock_) {
    if (!lock_.TryLock()) return false;
    const bool all_fresh = events_.releases == 0;
    if (all_fresh && most > 0) {
      spans_.ForEachWhile([&](const Span& span) {
        if (span.state == Span::State::kReturned && span.zeroed) visit(visitor, span);
        return --most > 0;
      });
    }
    lock_.Unlock();
    return all_fresh;
  }

  // Reserves memory for the records of a heap that grows by n pages: a program that fills its last
  // address with few blocks, and frees them, may want many.
  TCMALLOC_COLD void ReserveRecords(Length n) TCMALLOC_REQUIRES(lock_) {
    spans_.ReserveRecords(spans_.total() + n);
  }
  Span* Adopt(const MemoryBlock& block) TCMALLOC_REQUIRES(lock_);
  // Waits until the present releases of other threads have ended. Returns false if there were none,
  // or if they do not end.
  bool WaitForReleases() TCMALLOC_REQUIRES(lock_);
  // Wakes the threads that wait for releases, after some have ended.
  void WakeWaiting() TCMALLOC_REQUIRES(lock_) {
    arrivals_.fetch_add(1, std::memory_order_relaxed);
    if (waiting_ > 0) WakeSleepers(arrivals_);
  }
  template <typename... Which>
  void BeginDeparture(Length n, Cut cut, Departure* departure, Which... which)
      TCMALLOC_REQUIRES(lock_);
  // Releases the span. Returns how many pages the system took. Lets go of the lock for a system
  // call.
  Length Depart(const Departure& departure) TCMALLOC_REQUIRES(lock_);
  void EndDeparture(Span* span, bool released, ReleaseCause cause) TCMALLOC_REQUIRES(lock_);

  PageMap& map_;
  PageHeapEvents events_ TCMALLOC_GUARDED_BY(lock_);
  size_t check_credit_ TCMALLOC_GUARDED_BY(lock_) = 0;
  // The end of the heap behind which the system put nothing when it was asked last. A block there
  // does not ask again: each time the heap would grow elsewhere, for nothing.
  PageId closed_end_ TCMALLOC_GUARDED_BY(lock_);
  int waiting_ TCMALLOC_GUARDED_BY(lock_) = 0;  // threads, for releases

  std::atomic<uint32_t> arrivals_{0};  // counts ends of releases; waited on
};

template <typename System, typename Spans>
Span* PageHeapBase<System, Spans>::Grow(Length n, Length alignment, Length least) {
  const int saved_errno = errno;
  const size_t aligned = std::max(alignment, unit_).bytes();
  const Length needed = RoundUpToUnit(n);
  const Length eighth(AlignDown(spans_.total().pages() / 8, unit_.pages()));
  const Length wanted = std::max({needed, least, std::min(eighth, most_growth_)});
  if (TCMALLOC_UNLIKELY(system_.IsLimited())) ReserveRecords(wanted);
  MemoryBlock block = system_.Allocate(wanted.bytes(), aligned);
  if (block.start == nullptr && wanted > needed) block = system_.Allocate(needed.bytes(), aligned);
  Span* span = block.start != nullptr ? Adopt(block) : nullptr;
  if (span == nullptr) {
    ++events_.growth_failures;
    return nullptr;
  }
  ++events_.growths;
  total_.store(spans_.total().pages(), std::memory_order_relaxed);
  errno = saved_errno;
  return span;
}

template <typename System, typename Spans>
Span* PageHeapBase<System, Spans>::Adopt(const MemoryBlock& block) {
  const PageId first = PageId::Containing(block.start);
  const Length length(block.bytes >> kPageShift);
  if (map_.Ensure(first, length)) {
    if (Span* span = spans_.AddFresh(first, length, block.zeroed)) return span;
  }
  // A refusal costs only address space, and nothing can be done about it.
  static_cast<void>(system_.Unmap(block.start, block.bytes));
  return nullptr;
}

template <typename System, typename Spans>
bool PageHeapBase<System, Spans>::WaitForReleases() {
  const uint64_t begun = spans_.releases_begun();
  if (spans_.releases_ended() >= begun) return false;
  const int saved_errno = errno;
  ++waiting_;
  for (int turn = 0; spans_.releases_ended() < begun && turn < kMaxWaits; ++turn) {
    const uint32_t arrivals = arrivals_.load(std::memory_order_relaxed);
    lock_.Unlock();
    SleepWhile(arrivals_, arrivals, kLongestWaitNs);
    lock_.Lock();
  }
  --waiting_;
  errno = saved_errno;
  return spans_.releases_ended() >= begun;
}

template <typename System, typename Spans>
template <typename... Which>
Length PageHeapBase<System, Spans>::ReleaseLocked(Length n, Cut cut, ReleaseCause cause,
                                                  Which... which) {
  // Bounded by the present free memory, because other threads may free as fast as this one
  // releases.
  n = std::min(n, spans_.free());
  Length released;
  while (released < n) {
    Departure departure;
    departure.cause = cause;
    BeginDeparture(n - released, cut, &departure, which...);
    if (departure.count == 0) break;
    const Length taken = Depart(departure);
    released += taken;
    if (taken < departure.length) break;
  }
  return released;
}

template <typename System, typename Spans>
Length PageHeapBase<System, Spans>::ReleaseAlone(Span* span) {
  Departure departure;
  departure.spans[departure.count++] = span;
  departure.length = span->length;
  return Depart(departure);
}

template <typename System, typename Spans>
template <typename... Which>
void PageHeapBase<System, Spans>::BeginDeparture(Length n, Cut cut, Departure* departure,
                                                 Which... which) {
  n = std::min(n, kMaxRelease);
  while (departure->length < n && departure->count < System::kMostRequests) {
    const Length most = cut == Cut::kExactly ? n - departure->length : kMaxRelease;
    Span* span = spans_.BeginRelease(most, which...);
    if (span == nullptr) return;
    departure->spans[departure->count++] = span;
    departure->length += span->length;
  }
}

template <typename System, typename Spans>
Length PageHeapBase<System, Spans>::Depart(const Departure& departure) {
  ReleaseRequest requests[System::kMostRequests];
  for (size_t i = 0; i < departure.count; ++i) {
    requests[i] = {departure.spans[i]->start(), departure.spans[i]->bytes()};
  }
  lock_.Unlock();
  const int saved_errno = errno;
  system_.Release(requests, departure.count);
  lock_.Lock();
  Length taken;
  for (size_t i = 0; i < departure.count; ++i) {
    if (requests[i].released) taken += departure.spans[i]->length;
    EndDeparture(departure.spans[i], requests[i].released, departure.cause);
  }
  WakeWaiting();
  errno = saved_errno;
  return taken;
}

// Ends the departure of one span; afterwards it may be part of another.
template <typename System, typename Spans>
void PageHeapBase<System, Spans>::EndDeparture(Span* span, bool released, ReleaseCause cause) {
  if (released) {
    ++events_.releases;
    events_.released_for[static_cast<size_t>(cause)] += span->length;
    decay_.NoteReleased(span->length);
  } else {
    ++events_.release_failures;
  }
  // The system takes whole pages of the kernel, which may be larger than ours. The ends that it
  // left still have their contents.
  const size_t unit = KernelPageSize();
  const bool zeroed =
      IsAligned(span->first.address(), unit) && IsAligned(span->end().address(), unit);
  span->details = released && cause == ReleaseCause::kGrowth ? span->length.pages() : 0;
  spans_.EndRelease(span, released, zeroed);
  PublishCommitted();
}

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_PAGE_HEAP_BASE_H_
