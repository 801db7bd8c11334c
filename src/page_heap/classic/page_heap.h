// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The page heap of the original TCMalloc: free lists by length and an ordered set, best fit.

#ifndef TCMALLOC_PAGE_HEAP_CLASSIC_PAGE_HEAP_H_
#define TCMALLOC_PAGE_HEAP_CLASSIC_PAGE_HEAP_H_

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>

#include "base/attributes.h"
#include "base/bits.h"
#include "base/check.h"
#include "base/spin_lock.h"
#include "base/thread_annotations.h"
#include "page_heap/classic/heap_spans.h"
#include "page_heap/classic/release_pacer.h"
#include "page_heap/release_decay.h"
#include "page_heap/stats.h"
#include "pages/metadata_arena.h"
#include "pages/page_map.h"
#include "pages/page_types.h"
#include "pages/span.h"
#include "system/auxv.h"
#include "system/memory.h"

namespace tcmalloc {

// A SpanSource over `System`, which offers Allocate, Release and Unmap as SystemMemory does.
//
// A request is served, in this order, by the shortest free span that is long enough, the shortest
// returned one, new memory from the system, and a run of neighbouring free and returned spans.
// Free before returned, whatever the lengths: what is resident costs neither page faults nor more
// resident memory. Fresh memory counts as returned, for it is not resident either; growing in
// large steps therefore costs address space only.
//
// Every public member is thread safe and takes the lock itself. The lock is held while the system
// is asked for memory, so that threads in need do not all grow the heap at once, and let go while
// memory is given back, which takes long.
template <typename System>
class ClassicPageHeap {
 public:
  static constexpr Length kMinGrowth = Length::FromBytesCeil(size_t{1} << 20);
  static constexpr Length kMaxGrowth = Length::FromBytesCeil(size_t{64} << 20);

  constexpr ClassicPageHeap(System& system, PageMap& map, MetadataArena& arena)
      : system_(system), map_(map), spans_(map, arena) {}
  ClassicPageHeap(const ClassicPageHeap&) = delete;
  ClassicPageHeap& operator=(const ClassicPageHeap&) = delete;

  // n > 0 pages in use as kLarge, or null if no memory can be had. May change errno only then.
  Span* New(Length n) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    return Allocate(n, Length(1));
  }

  // The same at an address that is a multiple of `alignment`, a power of two.
  Span* NewAligned(Length n, Length alignment) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    return Allocate(n, alignment);
  }

  // Takes back a span in use, in state kLarge or kSmall. Keeps errno.
  void Delete(Span* span) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    DeleteLocked(span);
  }

  // Makes a kLarge span n pages long where it is. False, with nothing changed, if the pages behind
  // it are in use or the limit forbids it.
  bool TryExtend(Span* span, Length n) TCMALLOC_EXCLUDES(lock_);

  // Takes back what lies behind the first n > 0 pages of a kLarge span. The span may stay as it is
  // if no memory for a record can be had.
  void Truncate(Span* span, Length n) TCMALLOC_EXCLUDES(lock_);

  // Gives at least n pages of free memory back to the system, the longest spans first, or all if
  // there are fewer, and stops where the system refuses. Returns how many. Keeps errno.
  Length ReleaseAtLeast(Length n) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    return ReleaseLocked(n, kWholeSpans);
  }

  // Gives back what ReleaseDecay says is due, but at most `most` pages. Returns how many; where
  // that is `most`, more may be due. Keeps errno.
  Length ReleaseUnused(uint64_t now, Length most) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    const Length due = decay_.Due(now, spans_.free());
    return ReleaseLocked(std::min(due, most), kExactly);
  }
  // In nanoseconds; 0 for never.
  void set_release_half_life(uint64_t ns) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    decay_.set_half_life(ns);
  }

  // See ReleasePacer. A release that is due happens in Delete.
  void set_release_rate(double rate) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    pacer_.set_rate(rate);
  }
  double release_rate() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    return pacer_.rate();
  }

  // Bounds the pages that may be resident, PageHeapStats::committed; 0 for no bound. Where a
  // request would exceed it, free memory is released, and if that does not suffice it fails.
  void set_limit(Length limit) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    limit_ = limit;
  }
  Length limit() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    return limit_;
  }

  // PageHeapStats::committed, and spans ever given out, as of a moment ago. Take no lock.
  Length committed() const { return Length(committed_.load(std::memory_order_relaxed)); }
  uint64_t spans_served() const { return spans_served_.load(std::memory_order_relaxed); }

  // Whether Delete gives every free span back to the system at once.
  void set_aggressive_decommit(bool on) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    aggressive_decommit_ = on;
  }
  bool aggressive_decommit() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    return aggressive_decommit_;
  }

  // The heap grows by an eighth of its size at once, but at least and at most by so much (and by
  // what a request needs in any case), to save system calls.
  void set_growth(Length least, Length most = kMaxGrowth) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    least_growth_ = least;
    most_growth_ = most;
  }

  PageHeapStats stats() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    PageHeapStats stats = spans_.stats();
    stats.commits = events_.commits;
    stats.growths = events_.growths;
    stats.growth_failures = events_.growth_failures;
    stats.releases = events_.releases;
    stats.release_failures = events_.release_failures;
    stats.released = events_.released;
    stats.limit_hits = events_.limit_hits;
    return stats;
  }

  // Calls visit(const Span&) for every span, whatever its state, under the lock.
  template <typename Visitor>
  void ForEachSpan(Visitor&& visit) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    spans_.ForEach(visit);
  }

  // Crashes if the heap's structures contradict each other. Visits every span.
  void CheckInvariants() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    spans_.CheckInvariants();
  }

  // For fork, which holds it from before the fork until after it.
  SpinLock& lock() TCMALLOC_RETURN_CAPABILITY(lock_) { return lock_; }
  // In the child, which alone survives of the threads that were releasing memory.
  void RecoverAfterFork() TCMALLOC_REQUIRES(lock_) { spans_.AbandonReleases(); }

 private:
  // Memory on its way to the system is lost to requests for the time of one call; this much
  // takes about half a millisecond, and more would hardly save time.
  static constexpr Length kMaxRelease = Length::FromBytesCeil(size_t{16} << 20);
  // What a thread that frees something may have to wait for: a tenth of a millisecond.
  static constexpr Length kMaxPacedRelease = Length::FromBytesCeil(size_t{1} << 20);
  // Beyond any address space, and small enough that no sum here overflows.
  static constexpr Length kMaxRequest = Length(uintptr_t{1} << (kAddressBits - kPageShift));
  // How often a request that fails is tried again because another thread was releasing memory.
  static constexpr int kMaxRetries = 8;
  // How long such a release may take, first in turns of the scheduler and then, where the machine
  // is busy, in milliseconds. Bounded, for the other thread may be stopped.
  static constexpr int kMaxYields = 1000;
  static constexpr int kMaxNaps = 1000;
  static constexpr size_t kSpansPerCall = 256;

  TCMALLOC_ALWAYS_INLINE Span* Allocate(Length n, Length alignment) TCMALLOC_REQUIRES(lock_) {
    TCMALLOC_DCHECK(n > Length(0) && IsPowerOfTwo(alignment.pages()));
    CheckOften();
    spans_served_.store(spans_served() + 1, std::memory_order_relaxed);
    Span* span = spans_.Find(Span::State::kFree, n, alignment);
    if (TCMALLOC_LIKELY(span != nullptr)) {
      span = spans_.Take(span, n, alignment);
      decay_.NoteFree(spans_.free());
    } else {
      span = AllocateSlow(n, alignment);
      PublishCommitted();
    }
    return span;
  }

  TCMALLOC_NOINLINE Span* AllocateSlow(Length n, Length alignment) TCMALLOC_REQUIRES(lock_);
  Span* FindAnywhere(Length n, Length alignment) TCMALLOC_REQUIRES(lock_);
  // Releases so much that n more committed pages stay within the limit. May let go of the lock;
  // if true is returned, the limit holds now.
  bool MakeRoom(Length n) TCMALLOC_REQUIRES(lock_);
  bool AllowedByLimit(Length n) const TCMALLOC_REQUIRES(lock_) {
    return limit_ == Length(0) || spans_.committed() + n <= limit_;
  }
  // How many more pages the limit allows to be committed.
  Length Headroom() const TCMALLOC_REQUIRES(lock_) {
    if (limit_ == Length(0)) return kMaxRequest;
    return spans_.committed() < limit_ ? limit_ - spans_.committed() : Length(0);
  }
  // Waits until the releases of other threads have ended that are under way now. False if there
  // were none, or if they do not end.
  bool WaitForReleases() TCMALLOC_REQUIRES(lock_);

  Span* Grow(Length n, Length alignment) TCMALLOC_REQUIRES(lock_);
  Span* Adopt(void* start, size_t bytes, bool zeroed) TCMALLOC_REQUIRES(lock_);

  void DeleteLocked(Span* span) TCMALLOC_REQUIRES(lock_);
  // Whether spans are cut so that not a page more is released than was asked for.
  enum Cut : bool { kWholeSpans, kExactly };
  // Spans on their way to the system.
  struct Departure {
    Span* spans[System::kMostRequests];
    size_t count = 0;
    Length length;
  };
  // At least n pages, as far as there are so many and the system takes them. Lets go of the lock
  // for system calls.
  Length ReleaseLocked(Length n, Cut cut) TCMALLOC_REQUIRES(lock_);
  // A longest span, or a part of it that takes no long time.
  Length ReleasePaced() TCMALLOC_REQUIRES(lock_);
  void BeginDeparture(Length n, Cut cut, Departure* departure) TCMALLOC_REQUIRES(lock_);
  // Returns how many pages the system took. Lets go of the lock for a system call.
  Length Depart(const Departure& departure) TCMALLOC_REQUIRES(lock_);
  Length DepartAlone(Span* span) TCMALLOC_REQUIRES(lock_);
  void Arrive(Span* span, bool released) TCMALLOC_REQUIRES(lock_);

  void PublishCommitted() TCMALLOC_REQUIRES(lock_) {
    if (spans_.committed() > committed()) ++events_.commits;
    committed_.store(spans_.committed().pages(), std::memory_order_relaxed);
  }

  // In paranoid builds: checks invariants so often that a call visits kSpansPerCall spans on
  // average, which bounds what the checks cost in a large heap.
  void CheckOften() TCMALLOC_REQUIRES(lock_) {
    if constexpr (kParanoidChecks) {
      check_credit_ += kSpansPerCall;
      if (check_credit_ < spans_.count()) return;
      check_credit_ = 0;
      spans_.CheckInvariants();
    }
  }

  struct Events {
    uint64_t commits = 0;
    uint64_t growths = 0;
    uint64_t growth_failures = 0;
    uint64_t releases = 0;
    uint64_t release_failures = 0;
    Length released;
    uint64_t limit_hits = 0;
  };

  System& system_;
  PageMap& map_;
  SpinLock lock_{LockRank::kPageHeap};
  HeapSpans spans_ TCMALLOC_GUARDED_BY(lock_);
  ReleasePacer pacer_ TCMALLOC_GUARDED_BY(lock_);
  ReleaseDecay decay_ TCMALLOC_GUARDED_BY(lock_);
  Length limit_ TCMALLOC_GUARDED_BY(lock_);
  Length least_growth_ TCMALLOC_GUARDED_BY(lock_) = kMinGrowth;
  Length most_growth_ TCMALLOC_GUARDED_BY(lock_) = kMaxGrowth;
  bool aggressive_decommit_ TCMALLOC_GUARDED_BY(lock_) = false;
  Events events_ TCMALLOC_GUARDED_BY(lock_);
  size_t check_credit_ TCMALLOC_GUARDED_BY(lock_) = 0;

  // Written under the lock, read without.
  std::atomic<uintptr_t> committed_{0};
  std::atomic<uint64_t> spans_served_{0};
};

template <typename System>
Span* ClassicPageHeap<System>::AllocateSlow(Length n, Length alignment) {
  if (n > kMaxRequest || alignment > kMaxRequest) return nullptr;
  int retries = 0;
  do {
    if (!MakeRoom(n)) continue;
    if (Span* span = FindAnywhere(n, alignment)) return spans_.Take(span, n, alignment);
  } while (retries++ < kMaxRetries && WaitForReleases());
  return nullptr;
}

template <typename System>
Span* ClassicPageHeap<System>::FindAnywhere(Length n, Length alignment) {
  // MakeRoom may have let go of the lock: look again.
  Span* span = spans_.Find(Span::State::kFree, n, alignment);
  if (span == nullptr) span = spans_.Find(Span::State::kReturned, n, alignment);
  if (span == nullptr) span = Grow(n, alignment);
  if (span == nullptr) span = spans_.MergeRun(n, alignment, Headroom());
  return span;
}

template <typename System>
bool ClassicPageHeap<System>::MakeRoom(Length n) {
  if (AllowedByLimit(n)) return true;
  ++events_.limit_hits;
  ReleaseLocked(spans_.committed() + n - limit_, kWholeSpans);
  return AllowedByLimit(n);
}

template <typename System>
bool ClassicPageHeap<System>::WaitForReleases() {
  const uint64_t begun = spans_.releases_begun();
  if (spans_.releases_ended() >= begun) return false;
  const int saved_errno = errno;
  for (int turn = 0; spans_.releases_ended() < begun && turn < kMaxYields + kMaxNaps; ++turn) {
    lock_.Unlock();
    if (turn < kMaxYields) {
      ::sched_yield();
    } else {
      constexpr timespec kNap{.tv_sec = 0, .tv_nsec = 1'000'000};
      ::nanosleep(&kNap, nullptr);
    }
    lock_.Lock();
  }
  errno = saved_errno;
  return spans_.releases_ended() >= begun;
}

template <typename System>
Span* ClassicPageHeap<System>::Grow(Length n, Length alignment) {
  const int saved_errno = errno;
  const Length eighth(spans_.total().pages() / 8);
  const Length wanted = std::max({n, least_growth_, std::min(eighth, most_growth_)});
  auto block = system_.Allocate(wanted.bytes(), alignment.bytes());
  if (block.start == nullptr && wanted > n) {
    block = system_.Allocate(n.bytes(), alignment.bytes());
  }
  Span* span = nullptr;
  if (block.start != nullptr) span = Adopt(block.start, block.bytes, block.zeroed);
  if (span == nullptr) {
    ++events_.growth_failures;
    return nullptr;
  }
  ++events_.growths;
  errno = saved_errno;
  return span;
}

template <typename System>
Span* ClassicPageHeap<System>::Adopt(void* start, size_t bytes, bool zeroed) {
  const PageId first = PageId::Containing(start);
  const Length length(bytes >> kPageShift);
  if (map_.Ensure(first, length)) {
    if (Span* span = spans_.AddFresh(first, length, zeroed)) return span;
  }
  // A refusal costs address space, and nothing can be done about it.
  static_cast<void>(system_.Unmap(start, bytes));
  return nullptr;
}

template <typename System>
void ClassicPageHeap<System>::DeleteLocked(Span* span) {
  CheckOften();
  TCMALLOC_CHECK(span->in_use());
  const Length n = span->length;
  span = spans_.Free(span);
  if (TCMALLOC_UNLIKELY(aggressive_decommit_)) {
    spans_.BeginRelease(span);
    DepartAlone(span);
  } else if (TCMALLOC_UNLIKELY(pacer_.NoteFreed(n))) {
    pacer_.NoteReleased(ReleasePaced());
  }
}

template <typename System>
bool ClassicPageHeap<System>::TryExtend(Span* span, Length n) {
  SpinLockHolder holder(lock_);
  TCMALLOC_DCHECK(span->state == Span::State::kLarge);
  if (n <= span->length) return true;
  if (!AllowedByLimit(n - span->length) || !spans_.Extend(span, n)) return false;
  decay_.NoteFree(spans_.free());
  PublishCommitted();
  return true;
}

template <typename System>
void ClassicPageHeap<System>::Truncate(Span* span, Length n) {
  SpinLockHolder holder(lock_);
  TCMALLOC_DCHECK(span->state == Span::State::kLarge && n > Length(0));
  if (n >= span->length) return;
  if (Span* tail = spans_.SplitTail(span, n)) DeleteLocked(tail);
}

template <typename System>
Length ClassicPageHeap<System>::ReleaseLocked(Length n, Cut cut) {
  // Other threads may free memory as fast as this one releases it.
  n = std::min(n, spans_.free());
  Length released;
  while (released < n) {
    Departure departure;
    BeginDeparture(n - released, cut, &departure);
    const Length taken = Depart(departure);
    released += taken;
    if (taken < departure.length || departure.count == 0) break;
  }
  return released;
}

template <typename System>
Length ClassicPageHeap<System>::ReleasePaced() {
  Span* span = spans_.BeginRelease(kMaxPacedRelease);
  return span != nullptr ? DepartAlone(span) : Length(0);
}

template <typename System>
Length ClassicPageHeap<System>::DepartAlone(Span* span) {
  Departure departure;
  departure.spans[departure.count++] = span;
  departure.length = span->length;
  return Depart(departure);
}

template <typename System>
void ClassicPageHeap<System>::BeginDeparture(Length n, Cut cut, Departure* departure) {
  n = std::min(n, kMaxRelease);
  while (departure->length < n && departure->count < System::kMostRequests) {
    Span* span = spans_.BeginRelease(cut == kExactly ? n - departure->length : kMaxRelease);
    if (span == nullptr) return;
    departure->spans[departure->count++] = span;
    departure->length += span->length;
  }
}

template <typename System>
Length ClassicPageHeap<System>::Depart(const Departure& departure) {
  ReleaseRequest requests[System::kMostRequests];
  for (size_t i = 0; i < departure.count; ++i) {
    requests[i] = {departure.spans[i]->start(), departure.spans[i]->bytes()};
  }
  lock_.Unlock();
  const int saved_errno = errno;
  system_.Release(requests, departure.count);
  errno = saved_errno;
  lock_.Lock();
  Length taken;
  for (size_t i = 0; i < departure.count; ++i) {
    if (requests[i].released) taken += departure.spans[i]->length;
    Arrive(departure.spans[i], requests[i].released);
  }
  return taken;
}

// Ends the departure of one span; afterwards it may be part of another.
template <typename System>
void ClassicPageHeap<System>::Arrive(Span* span, bool released) {
  if (released) {
    ++events_.releases;
    events_.released += span->length;
    decay_.NoteReleased(span->length);
  } else {
    ++events_.release_failures;
  }
  // The system takes whole pages of the kernel, which may be larger than ours: what it left at the
  // ends still has its contents.
  const size_t unit = KernelPageSize();
  const bool zeroed =
      IsAligned(span->first.address(), unit) && IsAligned(span->end().address(), unit);
  spans_.EndRelease(span, released, zeroed);
  PublishCommitted();
}

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_CLASSIC_PAGE_HEAP_H_
