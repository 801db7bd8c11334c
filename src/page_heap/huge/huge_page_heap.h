// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The page heap that packs spans into hugepages.

#ifndef TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_HEAP_H_
#define TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_HEAP_H_

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "base/attributes.h"
#include "base/bits.h"
#include "base/check.h"
#include "base/spin_lock.h"
#include "base/thread_annotations.h"
#include "page_heap/classic/release_pacer.h"
#include "page_heap/huge/advice.h"
#include "page_heap/huge/demand_window.h"
#include "page_heap/huge/huge_page.h"
#include "page_heap/huge/huge_page_stats.h"
#include "page_heap/huge/huge_spans.h"
#include "page_heap/release_decay.h"
#include "page_heap/stats.h"
#include "pages/metadata_arena.h"
#include "pages/page_map.h"
#include "pages/page_types.h"
#include "pages/span.h"
#include "system/memory.h"
#include "system/transparent_hugepages.h"

namespace tcmalloc {

// A SpanSource over `System`, which offers Allocate, Release, AdviseHuge and Unmap as SystemMemory
// does. Promises what ClassicPageHeap does.
//
// Spans below a hugepage share hugepages: see HugePageFiller. Others have hugepages of their own,
// and share the last one where they do not fill it, or lie side by side in a region: see
// HugeRegions. Both come from hugepages that nobody uses, resident ones first, and these from the
// system. Where it gives no more, any run of pages will do.
//
// Every public member is thread safe and takes the lock itself. The lock is held while the system
// is asked for memory or told how to back it, and let go while memory is given back or moved.
template <typename System>
class HugePageHeap {
 public:
  static constexpr Length kMinGrowth = kPagesPerHugePage;
  static constexpr Length kMaxGrowth = Length::FromBytesCeil(size_t{64} << 20);

  constexpr HugePageHeap(System& system, PageMap& map, MetadataArena& arena)
      : system_(system), map_(map), spans_(map, arena) {}
  HugePageHeap(const HugePageHeap&) = delete;
  HugePageHeap& operator=(const HugePageHeap&) = delete;

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
  // it are in use, the limit forbids it, or no memory for a record can be had.
  bool TryExtend(Span* span, Length n) TCMALLOC_EXCLUDES(lock_);

  // Takes back what lies behind the first n > 0 pages of a kLarge span. The span may stay as it is
  // if no memory for a record can be had.
  void Truncate(Span* span, Length n) TCMALLOC_EXCLUDES(lock_);

  // Gives at least n pages of free memory back to the system, whole hugepages first, or all if
  // there are fewer, and stops where the system refuses. Returns how many. Keeps errno.
  Length ReleaseAtLeast(Length n) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    return ReleaseLocked(n, Cut::kWholeRuns, Breaking::kAllowed);
  }

  // Gives back what ReleaseDecay says is due, but at most `most` pages: hugepages that nobody uses,
  // and of others no more than demand of late leaves over. Where hugepages are nearly full, asks
  // the kernel to back them by one page. Returns how many pages went back; where that is `most`,
  // more may be due. `now` is in nanoseconds. Keeps errno.
  Length ReleaseUnused(uint64_t now, Length most) TCMALLOC_EXCLUDES(lock_);
  // In nanoseconds; 0 for never.
  void set_release_half_life(uint64_t ns) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    half_life_ns_ = ns;
    decay_.set_half_life(ns);
  }

  // See ReleasePacer. A release that is due happens in Delete; it breaks no hugepage.
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
  // what a request needs in any case), in whole hugepages.
  void set_growth(Length least, Length most = kMaxGrowth) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    least_growth_ = RoundUpToHugePages(least);
    most_growth_ = RoundUpToHugePages(most);
  }

  // What the kernel does about hugepages. Without it, nothing is told to the kernel.
  void set_hugepages(const TransparentHugepages& setting) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    advice_.Configure(setting);
  }

  PageHeapStats stats() TCMALLOC_EXCLUDES(lock_);
  HugePageStats huge_stats() TCMALLOC_EXCLUDES(lock_);

  // Calls visit(const Span&) for every span, whatever its state, under the lock. Runs of pages that
  // nobody uses appear as spans.
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
  // Memory on its way to the system is lost to requests for the time of one call.
  static constexpr Length kMaxRelease = Length::FromBytesCeil(size_t{16} << 20);
  // Beyond any address space, and small enough that no sum here overflows.
  static constexpr Length kMaxRequest = Length(uintptr_t{1} << (kAddressBits - kPageShift));
  // How often a request that fails is tried again because another thread was releasing memory.
  static constexpr int kMaxRetries = 8;
  // In one call of ReleaseUnused; each takes up to a millisecond.
  static constexpr int kMaxCollapses = 8;
  // Each hugepage that the kernel is told to leave alone may cost two of the mappings that a
  // process may have, 65530 by default.
  static constexpr size_t kMaxSmallPaged = 8192;
  static constexpr size_t kSpansPerCall = 256;

  enum class Cut : bool { kWholeRuns, kExactly };
  enum class Breaking : bool { kForbidden, kAllowed };
  // kNowhere: no place was found. kTried: one was, though no memory for records may be left.
  enum class Search : bool { kNowhere, kTried };

  TCMALLOC_ALWAYS_INLINE Span* Allocate(Length n, Length alignment) TCMALLOC_REQUIRES(lock_) {
    TCMALLOC_DCHECK(n > Length(0) && IsPowerOfTwo(alignment.pages()));
    CheckOften();
    spans_served_.store(spans_served() + 1, std::memory_order_relaxed);
    if (TCMALLOC_LIKELY(IsShort(n, alignment))) {
      const PageRange pages{spans_.FindShared(n, alignment), n};
      if (TCMALLOC_LIKELY(pages.first != PageId(0)) && IsAllowed(pages)) return Take(pages);
    }
    return AllocateSlow(n, alignment);
  }

  static bool IsShort(Length n, Length alignment) {
    return n < kPagesPerHugePage && alignment < kPagesPerHugePage;
  }

  TCMALLOC_NOINLINE Span* AllocateSlow(Length n, Length alignment) TCMALLOC_REQUIRES(lock_);
  Span* Take(PageRange pages) TCMALLOC_REQUIRES(lock_);
  void PublishCommitted() TCMALLOC_REQUIRES(lock_) {
    if (spans_.committed() > committed()) ++events_.commits;
    committed_.store(spans_.committed().pages(), std::memory_order_relaxed);
  }
  // Look for a place that the limit allows, without growing.
  Search TryPlaces(Length n, Length alignment, Span** span) TCMALLOC_REQUIRES(lock_);
  Search TryShort(Length n, Length alignment, Span** span) TCMALLOC_REQUIRES(lock_);
  Search TryLong(Length n, Length alignment, Span** span) TCMALLOC_REQUIRES(lock_);
  PageId FindInRegion(Length n, Length alignment) TCMALLOC_REQUIRES(lock_);

  // Releases so much that n more committed pages stay within the limit. May let go of the lock;
  // if true is returned, the limit holds now.
  bool MakeRoom(Length n) TCMALLOC_REQUIRES(lock_);
  bool AllowedByLimit(Length n) const TCMALLOC_REQUIRES(lock_) {
    return limit_ == Length(0) || spans_.committed() + n <= limit_;
  }
  // How many more pages the limit allows to be committed.
  Length Headroom() const TCMALLOC_REQUIRES(lock_) {
    return limit_ == Length(0) ? kMaxRequest : limit_ - std::min(spans_.committed(), limit_);
  }
  // The same, without n pages that are needed.
  Length HeadroomBeside(Length n) const TCMALLOC_REQUIRES(lock_) {
    return Headroom() - std::min(Headroom(), n);
  }
  bool IsAllowed(PageRange pages) const TCMALLOC_REQUIRES(lock_) {
    return limit_ == Length(0) || AllowedByLimit(spans_.Returned(pages));
  }
  // Waits until the releases of other threads have ended that are under way now. False if there
  // were none, or if they do not end.
  bool WaitForReleases() TCMALLOC_REQUIRES(lock_);

  bool Grow(Length n, Length alignment) TCMALLOC_REQUIRES(lock_);
  bool Adopt(const MemoryBlock& block) TCMALLOC_REQUIRES(lock_);

  void DeleteLocked(Span* span) TCMALLOC_REQUIRES(lock_);
  // All of these let go of the lock for system calls.
  Length ReleaseLocked(Length n, Cut cut, Breaking breaking) TCMALLOC_REQUIRES(lock_);
  bool ReleaseSpan(Span* span) TCMALLOC_REQUIRES(lock_);
  void CollapseSome() TCMALLOC_REQUIRES(lock_);
  bool Collapse(HugePageTracker* tracker) TCMALLOC_REQUIRES(lock_);

  // Decides how the kernel is to back a hugepage that spans begin to share, and tells it.
  void PrepareShared(HugePageTracker* tracker) TCMALLOC_REQUIRES(lock_);
  // The same for the last hugepage of a long span.
  void PrepareTail(const Span* span) TCMALLOC_REQUIRES(lock_);
  void Tell(HugePageTracker* tracker, HugePageTracker::Advice advice) TCMALLOC_REQUIRES(lock_);
  void NoteTold(HugePageTracker* tracker, HugePageTracker::Advice advice) TCMALLOC_REQUIRES(lock_);
  // Makes the call alone. Keeps errno.
  bool Advise(const HugePageTracker* tracker, HugeAdvice advice);

  // In paranoid builds: checks invariants so often that a call visits kSpansPerCall spans on
  // average, which bounds what the checks cost in a large heap.
  void CheckOften() TCMALLOC_REQUIRES(lock_) {
    if constexpr (kParanoidChecks) {
      check_credit_ += kSpansPerCall;
      if (check_credit_ < spans_.count() + spans_.filler().hugepages()) return;
      check_credit_ = 0;
      spans_.CheckInvariants();
    }
  }

  System& system_;
  PageMap& map_;
  SpinLock lock_{LockRank::kPageHeap};
  HugeSpans spans_ TCMALLOC_GUARDED_BY(lock_);
  ReleasePacer pacer_ TCMALLOC_GUARDED_BY(lock_);
  ReleaseDecay decay_ TCMALLOC_GUARDED_BY(lock_);
  DemandWindow demand_ TCMALLOC_GUARDED_BY(lock_);
  HugePageAdvice advice_ TCMALLOC_GUARDED_BY(lock_);
  uint64_t half_life_ns_ TCMALLOC_GUARDED_BY(lock_) = 0;
  Length limit_ TCMALLOC_GUARDED_BY(lock_);
  Length least_growth_ TCMALLOC_GUARDED_BY(lock_) = kMinGrowth;
  Length most_growth_ TCMALLOC_GUARDED_BY(lock_) = kMaxGrowth;
  bool aggressive_decommit_ TCMALLOC_GUARDED_BY(lock_) = false;
  PageHeapStats events_ TCMALLOC_GUARDED_BY(lock_);       // the counts of events alone
  HugePageStats huge_events_ TCMALLOC_GUARDED_BY(lock_);  // likewise
  size_t check_credit_ TCMALLOC_GUARDED_BY(lock_) = 0;

  // Written under the lock, read without.
  std::atomic<uintptr_t> committed_{0};
  std::atomic<uint64_t> spans_served_{0};
};

}  // namespace tcmalloc

#include "page_heap/huge/huge_page_heap_inl.h"

#endif  // TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_HEAP_H_
