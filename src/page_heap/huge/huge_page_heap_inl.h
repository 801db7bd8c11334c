// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The slow paths of HugePageHeap. Included by its header alone.

#ifndef TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_HEAP_INL_H_
#define TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_HEAP_INL_H_

#include <algorithm>
#include <cerrno>
#include <utility>

namespace tcmalloc {

template <typename System>
Span* HugePageHeap<System>::AllocateSlow(Length n, Length alignment) {
  Span* span = AllocateAnywhere(n, alignment);
  AdviseBroken();
  return span;
}

template <typename System>
Span* HugePageHeap<System>::AllocateAnywhere(Length n, Length alignment) {
  if (n > Base::kMaxRequest || alignment > Base::kMaxRequest) return nullptr;
  Span* span = nullptr;
  int retries = 0;
  do {
    if (TryPlaces(n, alignment, &span) == Search::kTried) return span;
    if (!this->MakeRoom(n, Breaking::kAllowed)) continue;
    // The lock may have been released meanwhile, so search again.
    if (TryPlaces(n, alignment, &span) == Search::kTried) return span;
    NoteAddressLimit();
    if (GrowAtEndFor(n, alignment) && TryPlaces(n, alignment, &span) == Search::kTried) return span;
    if (GrowFor(n, alignment) && TryPlaces(n, alignment, &span) == Search::kTried) return span;
    const PageRange anywhere{spans_.FindAnywhere(n, alignment), n};
    if (anywhere.first != PageId(0)) return Take(anywhere);
  } while (this->MayRetry(&retries));
  return nullptr;
}

template <typename System>
auto HugePageHeap<System>::TryPlaces(Length n, Length alignment, Span** span) -> Search {
  return IsShort(n, alignment) ? TryShort(n, alignment, span) : TryLong(n, alignment, span);
}

template <typename System>
auto HugePageHeap<System>::TryShort(Length n, Length alignment, Span** span) -> Search {
  const HugeSpans::SharedPlace place = spans_.FindShared(n, alignment);
  if (place && IsAllowed(place, n)) {
    *span = Take(place, n);
    return Search::kTried;
  }
  const PageId first = spans_.FindWhole(kPagesPerHugePage, Length(1), HeadroomBeside(n));
  if (first == PageId(0)) return Search::kNowhere;
  const PageRange pages = PlaceAt(first, n, alignment);
  if (!IsAllowed(pages)) return Search::kNowhere;
  HugePageTracker* tracker = spans_.Share(first, HugePageTracker::ContentsOf(n));
  if (tracker != nullptr) {
    PrepareShared(tracker);
    *span = pages.first == first ? Take(HugeSpans::SharedPlace{tracker, 0}, n) : Take(pages);
  }
  return Search::kTried;
}

template <typename System>
PageRange HugePageHeap<System>::PlaceAt(PageId first, Length n, Length alignment) const {
  if (saves_addresses_) {
    const PageRange across{spans_.StartBefore(first, n, alignment), n};
    if (IsAllowed(across)) return across;
  }
  return {first, n};
}

template <typename System>
PageId HugePageHeap<System>::FindInRegion(Length n, Length alignment) {
  if (!HugeRegions::ShouldHold(n)) return PageId(0);
  const PageId found = spans_.FindInRegion(n, alignment);
  if (found != PageId(0) || saves_addresses_ || !spans_.NeedsRegion()) return found;
  const PageId first = spans_.FindWhole(HugeRegions::kLength, kPagesPerHugePage, HeadroomBeside(n));
  if (first == PageId(0) || !spans_.AddRegion(first)) return PageId(0);
  return spans_.FindInRegion(n, alignment);
}

template <typename System>
PageRange HugePageHeap<System>::PlaceLong(Length n, Length alignment) {
  const PageId in_region = FindInRegion(n, alignment);
  if (in_region != PageId(0)) return {in_region, n};
  const PageId first = spans_.FindLong(n, alignment, HeadroomBeside(n));
  return first != PageId(0) ? PlaceAt(first, n, alignment) : PageRange{first, n};
}

template <typename System>
void HugePageHeap<System>::OffsetGrowth() {
  if (pacer_.rate() == 0 || spans_.free() == Length(0)) return;
  const Length in_use = std::max(spans_.in_use(), demand_.peak());
  const Length due = growth_bound_.PagesDue(spans_.committed(), in_use, this->freed());
  if (due == Length(0)) return;
  growth_bound_.NoteReleased(
      this->ReleaseLocked(due, Base::Cut::kNever, ReleaseCause::kAllocator, Breaking::kOfBlocks));
}

template <typename System>
auto HugePageHeap<System>::TryLong(Length n, Length alignment, Span** span) -> Search {
  const PageRange pages = PlaceLong(n, alignment);
  if (pages.first == PageId(0) || !IsAllowed(pages)) return Search::kNowhere;
  *span = Take(pages);
  if (*span == nullptr) return Search::kTried;
  PrepareTail(*span);
  // After the pages are taken. Other threads could take them while the lock is let go of, even
  // those by which the heap has just grown for this request.
  OffsetGrowth();
  return Search::kTried;
}

template <typename System>
bool HugePageHeap<System>::GrowAtEndFor(Length n, Length alignment) {
  if (n <= kPagesPerHugePage || alignment > kPagesPerHugePage) return false;
  const Length reach = spans_.LengthAvailableAtEnd();
  if (reach == Length(0) || reach >= n) return false;
  return this->Grow(n - reach, Length(1), this->least_growth()) != nullptr;
}

template <typename System>
void HugePageHeap<System>::NoteAddressLimit() {
  const int saved_errno = errno;
  saves_addresses_ = this->system_.IsLimited();
  errno = saved_errno;
}

template <typename System>
bool HugePageHeap<System>::GrowFor(Length n, Length alignment) {
  const bool region = !saves_addresses_ && HugeRegions::ShouldHold(n) && spans_.NeedsRegion();
  const Length least =
      region ? std::max(this->least_growth(), HugeRegions::kLength) : this->least_growth();
  return this->Grow(n, alignment, least) != nullptr;
}

template <typename System>
bool HugePageHeap<System>::TryExtend(Span* span, Length n) {
  SpinLockHolder holder(lock_);
  TCMALLOC_DCHECK(span->state == Span::State::kLarge);
  if (n <= span->length) return true;
  if (n > Base::kMaxRequest || !this->ExtendLocked(span, n)) return false;
  OffsetGrowth();
  AdviseBroken();
  this->NoteFreeTaken();
  demand_.Note(spans_.in_use());
  this->PublishCommitted();
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
  this->CheckOften();
  TCMALLOC_CHECK(span->in_use());
  const Length n = span->length;
  if (TCMALLOC_UNLIKELY(aggressive_decommit_)) {
    spans_.BeginRelease(span);
    this->ReleaseAlone(span);
    AdviseBroken();
    return;
  }
  spans_.Free(span);
  this->NoteFreed(n);
  if (TCMALLOC_UNLIKELY(pacer_.NoteFreed(n))) {
    pacer_.NoteReleased(this->ReleaseLocked(kPagesPerHugePage, Base::Cut::kExactly,
                                            ReleaseCause::kAllocator, Breaking::kForbidden));
  }
}

template <typename System>
Length HugePageHeap<System>::ReleaseByBreaking(Length n, Base::Cut cut, ReleaseCause cause) {
  const Length released = this->ReleaseLocked(n, cut, cause, Breaking::kAllowed);
  AdviseBroken();
  return released;
}

template <typename System>
void HugePageHeap<System>::AdviseBroken() {
  while (HugePageTracker* tracker = spans_.NextBroken()) {
    if (!advice_.RefillsBroken(tracker->advice)) continue;
    if (huge_events_.small_paged >= kMaxSmallPaged) continue;
    lock_.Unlock();
    const bool told = Advise(tracker, HugeAdvice::kNoHugepage);
    lock_.Lock();
    if (told) NoteAdvice(tracker, HugePageTracker::Advice::kSmall);
  }
}

template <typename System>
Length HugePageHeap<System>::ReleaseUnused(uint64_t now, Length most, ReleaseCause cause) {
  SpinLockHolder holder(lock_);
  if (std::exchange(this->demand_is_over_, false)) demand_ = DemandWindow();
  if (decay_.half_life_ns() > 0) demand_.Advance(now, decay_.half_life_ns(), spans_.in_use());
  const Length due = std::min(decay_.PagesDue(now, spans_.free()), most);
  Length released = this->ReleaseLocked(due, Base::Cut::kExactly, cause, Breaking::kForbidden);
  // Breaking a hugepage pays only if its pages are not needed soon, and recent demand may return.
  const Length reserve = demand_.peak() - std::min(demand_.peak(), spans_.in_use());
  const Length surplus = spans_.free() - std::min(spans_.free(), reserve);
  released += ReleaseByBreaking(std::min(due - std::min(due, released), surplus),
                                Base::Cut::kExactly, cause);
  // A collapse takes too long for a thread that allocates. Where more is due there will be other
  // calls.
  if (cause == ReleaseCause::kBackground && released == Length(0)) CollapseSome();
  return released;
}

template <typename System>
void HugePageHeap<System>::CollapseSome() {
  if (!advice_.MayCollapse(spans_.filler().hugepages()) || aggressive_decommit_) return;
  for (int i = 0; i < kMaxCollapses && this->AllowedByLimit(kPagesPerHugePage); ++i) {
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
  if (told) NoteAdvice(tracker, Advice::kHuge);
  // The hugepage's spans may be gone meanwhile.
  const bool shared = tracker->place != HugePageTracker::Place::kNone;
  if (collapsed && shared && this->AllowedByLimit(tracker->returned()))
    spans_.AssumeBacked(tracker);
  return collapsed;
}

template <typename System>
bool HugePageHeap<System>::Advise(const HugePageTracker* tracker, HugeAdvice advice) {
  const int saved_errno = errno;
  const bool taken =
      this->system_.AdviseHuge(tracker->hugepage.first_page().start(), kHugePageSize, advice);
  errno = saved_errno;
  return taken;
}

template <typename System>
void HugePageHeap<System>::NoteAdvice(HugePageTracker* tracker, HugePageTracker::Advice advice) {
  using Advice = HugePageTracker::Advice;
  if (tracker->advice == advice) return;
  if (tracker->advice == Advice::kSmall) --huge_events_.small_paged;
  if (advice == Advice::kSmall) ++huge_events_.small_paged;
  if (advice == Advice::kHuge) ++huge_events_.asked_for;
  tracker->advice = advice;
}

template <typename System>
void HugePageHeap<System>::SendAdvice(HugePageTracker* tracker, HugePageTracker::Advice advice) {
  using Advice = HugePageTracker::Advice;
  if (advice == Advice::kNone) return;
  if (advice == Advice::kSmall && huge_events_.small_paged >= kMaxSmallPaged) return;
  const bool huge = advice == Advice::kHuge;
  if (Advise(tracker, huge ? HugeAdvice::kHugepage : HugeAdvice::kNoHugepage)) {
    NoteAdvice(tracker, advice);
  } else {
    ++huge_events_.advice_failures;
  }
}

template <typename System>
void HugePageHeap<System>::PrepareShared(HugePageTracker* tracker) {
  // The resident part is backed already, one way or the other.
  if (tracker->returned() < kPagesPerHugePage) return;
  const bool scarce = aggressive_decommit_ || !this->AllowedByLimit(kPagesPerHugePage);
  SendAdvice(tracker, advice_.ForShared(tracker->advice, tracker->contents,
                                        spans_.filler().hugepages(), scarce));
  if (!scarce && advice_.BacksWhole(tracker->advice)) spans_.AssumeBacked(tracker);
}

// A tail is worth a mapping of its own only if it leaves much of its hugepage over.
template <typename System>
void HugePageHeap<System>::PrepareTail(const Span* span) {
  HugePageTracker* tracker = spans_.SharedAt(span->end() - Length(1));
  if (tracker == nullptr || tracker->place != HugePageTracker::Place::kFiller) return;
  if (tracker->used() + tracker->returned() < kPagesPerHugePage) return;
  if (!advice_.BacksWhole(tracker->advice)) return;
  const bool scarce = aggressive_decommit_ || !this->AllowedByLimit(tracker->returned());
  if (scarce || HugeRegions::ShouldHold(span->length))
    SendAdvice(tracker, HugePageTracker::Advice::kSmall);
  if (!scarce && advice_.BacksWhole(tracker->advice)) spans_.AssumeBacked(tracker);
}

template <typename System>
HugePageStats HugePageHeap<System>::huge_stats() {
  SpinLockHolder holder(lock_);
  HugePageStats stats = huge_events_;
  stats.setting = advice_.setting();
  stats.shared = spans_.filler().hugepages();
  stats.regions = spans_.regions();
  stats.backed_used = spans_.filler().backed_used();
  stats.backed_unused = spans_.filler().backed_unused();
  stats.broken = spans_.broken();
  return stats;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_HEAP_INL_H_
