// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The slow paths of HugePageHeap. Included by its header alone.

#ifndef TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_HEAP_INL_H_
#define TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_HEAP_INL_H_

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cerrno>

#include "system/auxv.h"

namespace tcmalloc {

template <typename System>
Span* HugePageHeap<System>::Take(PageRange pages) {
  Span* span = spans_.Take(pages);
  PublishCommitted();
  decay_.NoteFree(spans_.free());
  demand_.Note(spans_.in_use());
  return span;
}

template <typename System>
Span* HugePageHeap<System>::AllocateSlow(Length n, Length alignment) {
  if (n > kMaxRequest || alignment > kMaxRequest) return nullptr;
  Span* span = nullptr;
  int retries = 0;
  do {
    if (TryPlaces(n, alignment, &span) == Search::kTried) return span;
    if (!MakeRoom(n)) continue;
    // That may have let go of the lock: look again.
    if (TryPlaces(n, alignment, &span) == Search::kTried) return span;
    if (Grow(n, alignment) && TryPlaces(n, alignment, &span) == Search::kTried) return span;
    const PageRange anywhere{spans_.FindAnywhere(n, alignment), n};
    if (anywhere.first != PageId(0)) return Take(anywhere);
  } while (retries++ < kMaxRetries && WaitForReleases());
  return nullptr;
}

template <typename System>
auto HugePageHeap<System>::TryPlaces(Length n, Length alignment, Span** span) -> Search {
  return IsShort(n, alignment) ? TryShort(n, alignment, span) : TryLong(n, alignment, span);
}

template <typename System>
auto HugePageHeap<System>::TryShort(Length n, Length alignment, Span** span) -> Search {
  PageRange pages{spans_.FindShared(n, alignment), n};
  if (pages.first != PageId(0) && IsAllowed(pages)) {
    *span = Take(pages);
    return Search::kTried;
  }
  pages.first = spans_.FindWhole(kPagesPerHugePage, Length(1), HeadroomBeside(n));
  if (pages.first == PageId(0) || !IsAllowed(pages)) return Search::kNowhere;
  HugePageTracker* tracker = spans_.Share(pages.first);
  if (tracker != nullptr) {
    PrepareShared(tracker);
    *span = Take(pages);
  }
  return Search::kTried;
}

template <typename System>
PageId HugePageHeap<System>::FindInRegion(Length n, Length alignment) {
  if (!HugeRegions::Wants(n)) return PageId(0);
  const PageId found = spans_.FindInRegion(n, alignment);
  if (found != PageId(0) || !spans_.NeedsRegion()) return found;
  const PageId first = spans_.FindWhole(HugeRegions::kLength, kPagesPerHugePage, HeadroomBeside(n));
  if (first == PageId(0) || !spans_.AddRegion(first)) return PageId(0);
  return spans_.FindInRegion(n, alignment);
}

template <typename System>
auto HugePageHeap<System>::TryLong(Length n, Length alignment, Span** span) -> Search {
  PageRange pages{FindInRegion(n, alignment), n};
  if (pages.first == PageId(0)) pages.first = spans_.FindWhole(n, alignment, HeadroomBeside(n));
  if (pages.first == PageId(0) || !IsAllowed(pages)) return Search::kNowhere;
  *span = Take(pages);
  if (*span != nullptr) PrepareTail(*span);
  return Search::kTried;
}

template <typename System>
bool HugePageHeap<System>::MakeRoom(Length n) {
  if (AllowedByLimit(n)) return true;
  ++events_.limit_hits;
  ReleaseLocked(spans_.committed() + n - limit_, Cut::kWholeRuns, Breaking::kAllowed);
  return AllowedByLimit(n);
}

// First in turns of the scheduler and then, where the machine is busy, in milliseconds. Bounded,
// for the other thread may be stopped.
template <typename System>
bool HugePageHeap<System>::WaitForReleases() {
  constexpr int kYields = 1000;
  constexpr int kNaps = 1000;
  constexpr timespec kNap{.tv_sec = 0, .tv_nsec = 1'000'000};
  const uint64_t begun = spans_.releases_begun();
  if (spans_.releases_ended() >= begun) return false;
  const int saved_errno = errno;
  for (int turn = 0; spans_.releases_ended() < begun && turn < kYields + kNaps; ++turn) {
    lock_.Unlock();
    if (turn < kYields) {
      ::sched_yield();
    } else {
      ::nanosleep(&kNap, nullptr);
    }
    lock_.Lock();
  }
  errno = saved_errno;
  return spans_.releases_ended() >= begun;
}

template <typename System>
bool HugePageHeap<System>::Grow(Length n, Length alignment) {
  const int saved_errno = errno;
  const size_t aligned = std::max(alignment, kPagesPerHugePage).bytes();
  const Length needed = RoundUpToHugePages(n);
  const Length eighth = RoundDownToHugePages(Length(spans_.total().pages() / 8));
  Length wanted = std::max({needed, least_growth_, std::min(eighth, most_growth_)});
  if (HugeRegions::Wants(n) && spans_.NeedsRegion())
    wanted = std::max(wanted, HugeRegions::kLength);
  MemoryBlock block = system_.Allocate(wanted.bytes(), aligned);
  if (block.start == nullptr && wanted > needed) block = system_.Allocate(needed.bytes(), aligned);
  if (block.start == nullptr || !Adopt(block)) {
    ++events_.growth_failures;
    return false;
  }
  ++events_.growths;
  errno = saved_errno;
  return true;
}

template <typename System>
bool HugePageHeap<System>::Adopt(const MemoryBlock& block) {
  const PageId first = PageId::Containing(block.start);
  const Length length(block.bytes >> kPageShift);
  if (map_.Ensure(first, length) && spans_.AddFresh(first, length, block.zeroed)) return true;
  // A refusal costs address space, and nothing can be done about it.
  static_cast<void>(system_.Unmap(block.start, block.bytes));
  return false;
}

template <typename System>
bool HugePageHeap<System>::TryExtend(Span* span, Length n) {
  SpinLockHolder holder(lock_);
  TCMALLOC_DCHECK(span->state == Span::State::kLarge);
  if (n <= span->length) return true;
  if (n > kMaxRequest) return false;
  if (!spans_.Extend(span, n, Headroom())) return false;
  decay_.NoteFree(spans_.free());
  demand_.Note(spans_.in_use());
  PublishCommitted();
  return true;
}

template <typename System>
void HugePageHeap<System>::Truncate(Span* span, Length n) {
  SpinLockHolder holder(lock_);
  TCMALLOC_DCHECK(span->state == Span::State::kLarge && n > Length(0));
  if (n >= span->length) return;
  if (Span* tail = spans_.SplitTail(span, n)) DeleteLocked(tail);
}

template <typename System>
void HugePageHeap<System>::DeleteLocked(Span* span) {
  CheckOften();
  TCMALLOC_CHECK(span->in_use());
  const Length n = span->length;
  if (TCMALLOC_UNLIKELY(aggressive_decommit_)) {
    spans_.BeginRelease(span);
    ReleaseSpan(span);
    return;
  }
  spans_.Free(span);
  if (TCMALLOC_UNLIKELY(pacer_.NoteFreed(n))) {
    pacer_.NoteReleased(ReleaseLocked(kPagesPerHugePage, Cut::kExactly, Breaking::kForbidden));
  }
}

template <typename System>
Length HugePageHeap<System>::ReleaseLocked(Length n, Cut cut, Breaking breaking) {
  // Other threads may free memory as fast as this one releases it.
  n = std::min(n, spans_.free());
  Length released;
  while (released < n) {
    const Length most = cut == Cut::kExactly ? std::min(n - released, kMaxRelease) : kMaxRelease;
    const PageRange pages = spans_.NextRelease(most, breaking == Breaking::kAllowed);
    Span* span = pages.length > Length(0) ? spans_.BeginRelease(pages) : nullptr;
    if (span == nullptr || !ReleaseSpan(span)) break;
    released += pages.length;
  }
  return released;
}

template <typename System>
bool HugePageHeap<System>::ReleaseSpan(Span* span) {
  const Length length = span->length;
  HugePageTracker* tracker = spans_.SharedAt(span->first);
  const bool tell = tracker != nullptr && tracker->used() > length &&
                    advice_.RefillsBroken(tracker->advice) &&
                    huge_events_.small_paged < kMaxSmallPaged;
  lock_.Unlock();
  const int saved_errno = errno;
  const bool released = system_.Release(span->start(), span->bytes());
  errno = saved_errno;
  const bool told = released && tell && Advise(tracker, HugeAdvice::kNoHugepage);
  // The system takes whole pages of the kernel, which may be larger than ours: what it left at the
  // ends still has its contents.
  const size_t unit = KernelPageSize();
  const bool zeroed =
      IsAligned(span->first.address(), unit) && IsAligned(span->end().address(), unit);
  lock_.Lock();
  if (told) NoteTold(tracker, HugePageTracker::Advice::kSmall);
  spans_.EndRelease(span, released, zeroed);
  PublishCommitted();
  if (released) {
    ++events_.releases;
    events_.released += length;
    decay_.NoteReleased(length);
  } else {
    ++events_.release_failures;
  }
  return released;
}

template <typename System>
Length HugePageHeap<System>::ReleaseUnused(uint64_t now, Length most) {
  SpinLockHolder holder(lock_);
  if (half_life_ns_ > 0) demand_.Advance(now, half_life_ns_, spans_.in_use());
  const Length due = std::min(decay_.Due(now, spans_.free()), most);
  Length released = ReleaseLocked(due, Cut::kExactly, Breaking::kForbidden);
  // Breaking a hugepage pays only if what it gives back is not needed soon: demand that was there
  // of late may come again.
  const Length reserve = demand_.peak() - std::min(demand_.peak(), spans_.in_use());
  const Length surplus = spans_.free() - std::min(spans_.free(), reserve);
  released += ReleaseLocked(std::min(due - std::min(due, released), surplus), Cut::kExactly,
                            Breaking::kAllowed);
  CollapseSome();
  return released;
}

template <typename System>
void HugePageHeap<System>::CollapseSome() {
  if (!advice_.MayCollapse() || aggressive_decommit_) return;
  for (int i = 0; i < kMaxCollapses && AllowedByLimit(kPagesPerHugePage); ++i) {
    HugePageTracker* tracker = spans_.ProposeCollapse();
    if (tracker == nullptr) return;
    ++(Collapse(tracker) ? huge_events_.collapses : huge_events_.collapse_failures);
  }
}

template <typename System>
bool HugePageHeap<System>::Collapse(HugePageTracker* tracker) {
  using Advice = HugePageTracker::Advice;
  const bool tell = tracker->advice != Advice::kHuge;
  lock_.Unlock();
  const bool told = tell && Advise(tracker, HugeAdvice::kHugepage);
  const bool collapsed = (told || !tell) && Advise(tracker, HugeAdvice::kCollapse);
  lock_.Lock();
  if (told) NoteTold(tracker, Advice::kHuge);
  // Meanwhile its spans may be gone.
  const bool shared = tracker->place != HugePageTracker::Place::kNone;
  if (collapsed && shared && AllowedByLimit(tracker->returned())) spans_.AssumeBacked(tracker);
  return collapsed;
}

template <typename System>
bool HugePageHeap<System>::Advise(const HugePageTracker* tracker, HugeAdvice advice) {
  const int saved_errno = errno;
  const bool taken =
      system_.AdviseHuge(tracker->hugepage.first_page().start(), kHugePageSize, advice);
  errno = saved_errno;
  return taken;
}

template <typename System>
void HugePageHeap<System>::NoteTold(HugePageTracker* tracker, HugePageTracker::Advice advice) {
  using Advice = HugePageTracker::Advice;
  if (tracker->advice == advice) return;
  if (tracker->advice == Advice::kSmall) --huge_events_.small_paged;
  if (advice == Advice::kSmall) ++huge_events_.small_paged;
  if (advice == Advice::kHuge) ++huge_events_.asked_for;
  tracker->advice = advice;
}

template <typename System>
void HugePageHeap<System>::Tell(HugePageTracker* tracker, HugePageTracker::Advice advice) {
  using Advice = HugePageTracker::Advice;
  if (advice == Advice::kNone) return;
  if (advice == Advice::kSmall && huge_events_.small_paged >= kMaxSmallPaged) return;
  const bool huge = advice == Advice::kHuge;
  if (Advise(tracker, huge ? HugeAdvice::kHugepage : HugeAdvice::kNoHugepage)) {
    NoteTold(tracker, advice);
  } else {
    ++huge_events_.advice_failures;
  }
}

template <typename System>
void HugePageHeap<System>::PrepareShared(HugePageTracker* tracker) {
  // What is resident is backed already, one way or the other.
  if (tracker->returned() < kPagesPerHugePage) return;
  const bool scarce = aggressive_decommit_ || !AllowedByLimit(kPagesPerHugePage);
  Tell(tracker, advice_.ForShared(tracker->advice, spans_.filler().hugepages(), scarce));
  if (!scarce && advice_.BacksWhole(tracker->advice)) spans_.AssumeBacked(tracker);
}

// Only a tail that leaves much of its hugepage over is worth a mapping of its own.
template <typename System>
void HugePageHeap<System>::PrepareTail(const Span* span) {
  HugePageTracker* tracker = spans_.SharedAt(span->end() - Length(1));
  if (tracker == nullptr || tracker->place != HugePageTracker::Place::kFiller) return;
  if (tracker->used() + tracker->returned() < kPagesPerHugePage) return;
  if (!advice_.BacksWhole(tracker->advice)) return;
  const bool scarce = aggressive_decommit_ || !AllowedByLimit(tracker->returned());
  if (scarce || HugeRegions::Wants(span->length)) Tell(tracker, HugePageTracker::Advice::kSmall);
  if (!scarce && advice_.BacksWhole(tracker->advice)) spans_.AssumeBacked(tracker);
}

template <typename System>
PageHeapStats HugePageHeap<System>::stats() {
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

template <typename System>
HugePageStats HugePageHeap<System>::huge_stats() {
  SpinLockHolder holder(lock_);
  HugePageStats stats = huge_events_;
  const HugePageFiller::Stats filler = spans_.filler().stats();
  stats.setting = advice_.setting();
  stats.shared = spans_.filler().hugepages();
  stats.regions = spans_.regions();
  stats.backed_used = filler.backed_used;
  stats.backed_unused = filler.backed_unused;
  stats.broken = spans_.broken();
  return stats;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_HEAP_INL_H_
