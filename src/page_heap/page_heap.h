// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The interface of both page heaps to the layers above.

#ifndef TCMALLOC_PAGE_HEAP_PAGE_HEAP_H_
#define TCMALLOC_PAGE_HEAP_PAGE_HEAP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/bits.h"
#include "base/spin_lock.h"
#include "base/thread_annotations.h"
#include "page_heap/free_runs.h"
#include "page_heap/huge/huge_page_stats.h"
#include "page_heap/release/release_decay.h"
#include "page_heap/release/release_pacer.h"
#include "page_heap/stats.h"
#include "pages/page_types.h"
#include "pages/span.h"
#include "system/transparent_hugepages.h"

namespace tcmalloc {

enum class PageHeapKind : uint8_t { kClassic, kHuge };

// A SpanSource with the settings and figures that both heaps share. ClassicPageHeap and
// HugePageHeap place the spans.
//
// Every public member is thread safe and takes the lock itself. The lock is held while the system
// is asked for memory, so that threads in need do not all grow the heap at once. It is released
// while memory is given back, which takes long.
class PageHeap {
 public:
  static constexpr Length kMaxGrowth = Length::FromBytesCeil(size_t{64} << 20);

  // Returns true if a block that grows `from` one length `to` another, in any unit, does so by more
  // than a quarter of itself. It is then copied only a few times, so that page faults, and memory
  // of others that is left alone, cost more than its copies.
  static constexpr bool IsLongStep(size_t from, size_t to) { return to - from > from / 4; }

  PageHeap(const PageHeap&) = delete;
  PageHeap& operator=(const PageHeap&) = delete;

  virtual PageHeapKind kind() const = 0;

  // Returns n > 0 pages in use as kLarge, or null if no memory can be had. Changes errno only in
  // that case.
  virtual Span* New(Length n) = 0;

  // Works as New, for one of several threads whose spans shall lie apart: at `near`, where its last
  // one ended, if as good pages begin there as elsewhere.
  virtual Span* NewNear(Length n, PageId near) = 0;

  // Works as New, at an address that is a multiple of `alignment`, a power of two.
  virtual Span* NewAligned(Length n, Length alignment) = 0;

  // Works as New, for a block that has grown before: preferably at a place where it can grow by its
  // own length.
  virtual Span* NewRoomy(Length n) = 0;

  // Takes back a span in use, in state kLarge or kSmall. Keeps errno.
  virtual void Delete(Span* span) = 0;

  // Makes a kLarge span n pages long without moving it. Asks the system for the missing pages if
  // the heap ends behind the span. Returns false, with the span unchanged, if the pages behind it
  // are in use, the limit forbids it, no memory can be had, or the block had better move.
  virtual bool TryExtend(Span* span, Length n) = 0;

  // Takes back the pages behind the first n > 0 pages of a kLarge span. The span may keep its
  // length if no memory for a record can be had.
  virtual void Truncate(Span* span, Length n) = 0;

  // Gives at least n pages of free memory back to the system, or all if there are fewer. Stops when
  // the system refuses. Returns the number of pages. Keeps errno.
  Length ReleaseAtLeast(Length n) { return ReleaseAtLeast(n, ReleaseCause::kProgram); }
  virtual Length ReleaseAtLeast(Length n, ReleaseCause cause) = 0;

  // Gives back the memory that is due according to ReleaseDecay, but at most `most` pages. Returns
  // the number of pages; unless it is 0, more may be due. `now` is in nanoseconds. Keeps errno.
  Length ReleaseUnused(uint64_t now, Length most) {
    return ReleaseUnused(now, most, ReleaseCause::kAllocator);
  }
  virtual Length ReleaseUnused(uint64_t now, Length most, ReleaseCause cause) = 0;

  // Notes that hardly a span was taken since `since`, in nanoseconds: see ReleaseDecay.
  virtual void NoteIdleSince(uint64_t since) = 0;

  // Sets the half-life of unneeded memory, in nanoseconds; 0 keeps it for ever.
  void set_release_half_life(uint64_t ns) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    decay_.set_half_life(ns);
  }

  // Sets the rate of ReleasePacer. A release that is due happens in Delete.
  void set_release_rate(double rate) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    pacer_.set_rate(rate);
  }
  double release_rate() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    return pacer_.rate();
  }

  enum class Demand : bool { kMayReturn, kIsOver };
  // Makes `n` free pages due, or all if there are fewer: see ReleaseDecay. If demand is over, the
  // heap forgets what the program needed lately.
  TCMALLOC_COLD void MakeDue(Length n, Demand demand) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    decay_.MakeDue(n);
    demand_is_over_ = demand == Demand::kIsOver;
  }

  // Bounds the pages that may be resident, PageHeapStats::committed; 0 for no bound. A request that
  // would exceed the limit releases free memory first, and fails if that does not suffice.
  void set_limit(Length limit) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    limit_ = limit;
  }
  Length limit() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    return limit_;
  }

  // If `on`, Delete gives every free span back to the system at once.
  void set_aggressive_decommit(bool on) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    aggressive_decommit_ = on;
  }
  bool aggressive_decommit() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    return aggressive_decommit_;
  }

  // Bounds the steps in which the heap grows, which are an eighth of its size, to save system
  // calls. The needs of a request come first in any case.
  void set_growth(Length least, Length most = kMaxGrowth) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    least_growth_ = RoundUpToUnit(least);
    most_growth_ = RoundUpToUnit(most);
  }

  // Tells the heap what the kernel does about hugepages. A heap that is not told, or that knows no
  // hugepages, gives the kernel no advice.
  virtual void set_hugepages(const TransparentHugepages&) {}
  virtual HugePageStats huge_stats() { return {}; }

  // PageHeapStats::committed, and the number of spans given out, as of a moment ago. Take no lock.
  Length committed() const { return Length(committed_.load(std::memory_order_relaxed)); }
  uint64_t spans_served() const { return spans_served_.load(std::memory_order_relaxed); }
  // The pages obtained from the system so far. Takes no lock.
  Length total() const { return Length(total_.load(std::memory_order_relaxed)); }
  // The pages that were free after the last Delete, and all pages that were ever freed. Take no
  // lock.
  Length free_now() const { return Length(free_now_.load(std::memory_order_relaxed)); }
  Length freed() const { return Length(freed_.load(std::memory_order_relaxed)); }

  virtual PageHeapStats stats() = 0;

  // Adds the unused runs. In a huge heap this takes many short holds of the lock, and the result is
  // exact only if nothing changes meanwhile.
  virtual void CountFreeRuns(FreeRunCounts* counts) = 0;

  // Calls visit(const Span&) for every span in any state, under the lock. Runs of pages without a
  // record appear as spans, too.
  template <typename Visitor>
  void ForEachSpan(Visitor&& visit) {
    using Visit = std::remove_reference_t<Visitor>;
    VisitSpans([](void* visitor, const Span& span) { (*static_cast<Visit*>(visitor))(span); },
               const_cast<std::remove_const_t<Visit>*>(&visit));
  }

  // Calls visit(const Span&) for those of the first `most` spans that were never in use and read as
  // zero, under the lock. Does nothing and returns false if the lock is held, or once memory was
  // given back, because then what reads as zero may have been in use before.
  template <typename Visitor>
  bool ForEachFreshSpan(size_t most, Visitor&& visit) {
    using Visit = std::remove_reference_t<Visitor>;
    return VisitFreshSpans(
        most, [](void* visitor, const Span& span) { (*static_cast<Visit*>(visitor))(span); },
        const_cast<std::remove_const_t<Visit>*>(&visit));
  }
  // Returns true if no memory was ever given back, so that returned spans were never in use. False
  // if the lock is held.
  bool IsFresh() { return VisitFreshSpans(0, nullptr, nullptr); }

 protected:
  using SpanVisit = void (*)(void* visitor, const Span& span);

  // Blocks of the system begin and end at multiples of `unit`, a power of two.
  constexpr PageHeap(Length unit, Length least_growth) : unit_(unit), least_growth_(least_growth) {}
  ~PageHeap() = default;

  virtual void VisitSpans(SpanVisit visit, void* visitor) = 0;
  virtual bool VisitFreshSpans(size_t most, SpanVisit visit, void* visitor) = 0;

  Length RoundUpToUnit(Length n) const { return Length(AlignUp(n.pages(), unit_.pages())); }

  SpinLock lock_{LockRank::kPageHeap};
  const Length unit_;
  ReleasePacer pacer_ TCMALLOC_GUARDED_BY(lock_);
  ReleaseDecay decay_ TCMALLOC_GUARDED_BY(lock_);
  bool aggressive_decommit_ TCMALLOC_GUARDED_BY(lock_) = false;
  bool demand_is_over_ TCMALLOC_GUARDED_BY(lock_) = false;
  Length limit_ TCMALLOC_GUARDED_BY(lock_);
  Length least_growth_ TCMALLOC_GUARDED_BY(lock_);
  Length most_growth_ TCMALLOC_GUARDED_BY(lock_) = kMaxGrowth;

  // Written under the lock, read without it.
  std::atomic<uintptr_t> committed_{0};
  std::atomic<uint64_t> spans_served_{0};
  std::atomic<uintptr_t> total_{0};
  std::atomic<uintptr_t> free_now_{0};
  std::atomic<uintptr_t> freed_{0};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_PAGE_HEAP_H_
