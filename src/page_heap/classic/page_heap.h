// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The page heap of the original TCMalloc: free lists by length and an ordered set, best fit.

#ifndef TCMALLOC_PAGE_HEAP_CLASSIC_PAGE_HEAP_H_
#define TCMALLOC_PAGE_HEAP_CLASSIC_PAGE_HEAP_H_

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/bits.h"
#include "base/check.h"
#include "base/spin_lock.h"
#include "base/thread_annotations.h"
#include "page_heap/classic/growing_hugepage.h"
#include "page_heap/classic/heap_spans.h"
#include "page_heap/fit.h"
#include "page_heap/huge/huge_page.h"
#include "page_heap/page_heap_base.h"
#include "page_heap/release/growth_cap.h"
#include "page_heap/release/growth_offset.h"
#include "pages/metadata_arena.h"
#include "pages/page_map.h"
#include "pages/page_types.h"
#include "pages/span.h"
#include "system/clock.h"

namespace tcmalloc {

// A SpanSource over `System`: see PageHeapBase.
//
// Serves a request, in this order, from the shortest free span that is long enough, the shortest
// returned one, new memory from the system, or a run of neighbouring free and returned spans. Free
// spans come before returned ones of any length, because resident memory costs neither page faults
// nor more resident memory. Fresh memory counts as returned because it is not resident either.
// Growing in large steps therefore costs address space only. Where GrowthCap says that the heap has
// enough, runs come before new memory.
template <typename System>
class ClassicPageHeap final : public PageHeapBase<System, HeapSpans> {
  using Base = PageHeapBase<System, HeapSpans>;
  using Cuts = HeapSpans::Cuts;
  using Base::aggressive_decommit_, Base::decay_, Base::lock_, Base::pacer_, Base::spans_;

 public:
  static constexpr Length kMinGrowth = Length::FromBytesCeil(size_t{1} << 20);

  using Base::ReleaseAtLeast, Base::ReleaseUnused;

  constexpr ClassicPageHeap(System& system, PageMap& map, MetadataArena& arena)
      : Base(system, map, arena, Length(1), kMinGrowth) {}

  PageHeapKind kind() const final { return PageHeapKind::kClassic; }

  Span* New(Length n) final TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    return Allocate(n, {});
  }

  Span* NewNear(Length n, PageId near) final TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    return Allocate(n, {.alignment = kOnePage, .near = near, .zoned = true});
  }

  Span* NewRoomy(Length n) final TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    return Allocate(
        n, {.alignment = kOnePage, .near = PageId(), .zoned = false, .roomy = DeservesRoom(n)});
  }

  Span* NewAligned(Length n, Length alignment) final TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    return Allocate(n, {.alignment = alignment, .near = PageId(), .zoned = false});
  }

  void Delete(Span* span) final TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    DeleteLocked(span);
  }

  bool TryExtend(Span* span, Length n) final TCMALLOC_EXCLUDES(lock_);

  void Truncate(Span* span, Length n) final TCMALLOC_EXCLUDES(lock_);

  // Releases the longest spans first.
  Length ReleaseAtLeast(Length n, ReleaseCause cause) final TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    // Callers do not know of the pages that become free here, and want so many others to go.
    n += growing_hugepage_.is_begun() ? EndHugepage() : Length(0);
    return this->ReleaseLocked(n, Base::Cut::kNever, cause, Cuts::kAnywhere);
  }

  Length ReleaseUnused(uint64_t now, Length most, ReleaseCause cause) final
      TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    if (growing_hugepage_.is_begun()) EndHugepage();
    growth_offset_.NoteTime(now);
    growth_cap_.NoteTime(now, decay_.half_life_ns(), InUse());
    const Length due = std::min(decay_.PagesDue(now, spans_.free()), most);
    const Length released =
        this->ReleaseLocked(due, Base::Cut::kExactly, cause, Cuts::kAtHugepages);
    if (released > Length(0)) return released;
    return this->ReleaseLocked(due, Base::Cut::kExactly, cause, Cuts::kAnywhere);
  }

 private:
  // A growing block gets room behind it if it is at least this share of the resident heap.
  static constexpr uintptr_t kRoomyShare = 4;
  // The most that one free has to wait for: about a tenth of a millisecond.
  static constexpr Length kMaxPacedRelease = Length::FromBytesCeil(size_t{1} << 20);

  TCMALLOC_ALWAYS_INLINE Span* Allocate(Length n, const Placement& placement)
      TCMALLOC_REQUIRES(lock_) {
    TCMALLOC_DCHECK(n > Length(0) && IsPowerOfTwo(placement.alignment.pages()));
    this->NoteRequest();
    Span* span = spans_.Find(Span::State::kFree, n, placement);
    if (TCMALLOC_LIKELY(span != nullptr)) {
      span = spans_.Take(span, n, placement);
      this->NoteFreeTaken();
    } else {
      span = AllocateSlow(n, placement);
      NoteTaken();
    }
    return span;
  }

  TCMALLOC_NOINLINE Span* AllocateSlow(Length n, const Placement& placement)
      TCMALLOC_REQUIRES(lock_);
  Length InUse() const TCMALLOC_REQUIRES(lock_) { return spans_.committed() - spans_.free(); }
  // Called after the heap may have made more memory resident.
  TCMALLOC_NOINLINE void NoteTaken() TCMALLOC_REQUIRES(lock_) {
    growth_cap_.NoteInUse(InUse());
    this->PublishCommitted();
  }
  Span* FindAnywhere(Length n, const Placement& placement) TCMALLOC_REQUIRES(lock_);
  // Returns true if room behind a growing block of n pages is worth its addresses. Shorter blocks
  // are better off in resident memory that others left.
  bool DeservesRoom(Length n) const TCMALLOC_REQUIRES(lock_);
  // Leaves room on both sides of a roomy span, because another growing block may end before it.
  Length LeastGrowthFor(Length n, const Placement& placement) const TCMALLOC_REQUIRES(lock_) {
    return placement.roomy ? std::max(this->least_growth(), n + n + n) : this->least_growth();
  }
  // Returns true if pages that no span has may be resident, until a release makes them free ones.
  bool MayHaveHugepage() const TCMALLOC_REQUIRES(lock_) {
    return !this->HasLimit() && !aggressive_decommit_ && decay_.half_life_ns() != 0;
  }
  // Returns true if addresses that nobody uses yet are missing nowhere. Keeps errno.
  TCMALLOC_COLD bool AddressesAbound() const TCMALLOC_REQUIRES(lock_);
  // Takes n pages out of a span that FindAnywhere returned.
  Span* TakeFrom(Span* found, Length n, const Placement& placement) TCMALLOC_REQUIRES(lock_);
  // Takes them out of a returned one.
  TCMALLOC_ALWAYS_INLINE Span* TakeReturned(Span* found, Length n, const Placement& placement)
      TCMALLOC_REQUIRES(lock_);
  // Takes them out of a returned one, by the hugepage that they begin if it can be had.
  TCMALLOC_COLD Span* TakeByHugepage(Span* found, Length n, const Placement& placement)
      TCMALLOC_REQUIRES(lock_);
  // Touches a hugepage that has just begun, in a page of the span that the caller has taken. Lets
  // go of the lock meanwhile, so the growth must have been noted.
  TCMALLOC_COLD void TouchHugepage(PageId page) TCMALLOC_REQUIRES(lock_);
  // Returns true if n pages from `unused` would begin a hugepage but for the end of the heap,
  // behind which the system may add more.
  TCMALLOC_ALWAYS_INLINE bool LacksEnd(const Span* unused, Length n) const TCMALLOC_REQUIRES(lock_);
  // Makes pages of a hugepage that no span has free ones, which may go. Returns their number.
  TCMALLOC_COLD Length EndHugepage() TCMALLOC_REQUIRES(lock_);
  // Releases memory before the heap grows: see GrowthOffset and GrowthCap. May let go of the lock.
  void OffsetGrowth(Length n) TCMALLOC_REQUIRES(lock_);
  // Returns a span of n pages from a run of spans if the heap has enough, or null.
  TCMALLOC_COLD Span* MergeRunBeforeGrowth(Length n, Length alignment) TCMALLOC_REQUIRES(lock_);

  void DeleteLocked(Span* span) TCMALLOC_REQUIRES(lock_);
  // Releases a longest span, or a part of it that takes a short time.
  TCMALLOC_ALWAYS_INLINE Length ReleasePaced() TCMALLOC_REQUIRES(lock_);

  GrowthCap growth_cap_ TCMALLOC_GUARDED_BY(lock_);
  GrowthOffset growth_offset_ TCMALLOC_GUARDED_BY(lock_);
  GrowingHugepage<System> growing_hugepage_ TCMALLOC_GUARDED_BY(lock_);
};

template <typename System>
Span* ClassicPageHeap<System>::AllocateSlow(Length n, const Placement& placement) {
  if (n > Base::kMaxRequest || placement.alignment > Base::kMaxRequest) return nullptr;
  // A limit that was set since the hugepage began counts all of it. A long span, of which the
  // program may touch little, leaves its rest to short ones, and so does an aligned one, which
  // leaves pages out.
  const bool ends =
      this->HasLimit() || GrowingHugepage<System>::IsLong(n) || placement.alignment > kOnePage;
  if (ends && growing_hugepage_.is_begun()) EndHugepage();
  OffsetGrowth(n);
  int retries = 0;
  do {
    if (!this->MakeRoom(n, Cuts::kAnywhere)) continue;
    if (Span* found = FindAnywhere(n, placement)) return TakeFrom(found, n, placement);
  } while (this->MayRetry(&retries));
  return nullptr;
}

template <typename System>
Span* ClassicPageHeap<System>::TakeFrom(Span* found, Length n, const Placement& placement) {
  if (found->state != Span::State::kReturned) return spans_.Take(found, n, placement);
  const bool by_hugepage = growing_hugepage_.Suits(n, spans_.committed()) &&
                           placement.alignment == kOnePage && MayHaveHugepage() &&
                           spans_.RoomIn(found) == Length(0);
  return TCMALLOC_UNLIKELY(by_hugepage) ? TakeByHugepage(found, n, placement)
                                        : TakeReturned(found, n, placement);
}

template <typename System>
Span* ClassicPageHeap<System>::TakeReturned(Span* found, Length n, const Placement& placement) {
  Span* span = spans_.Take(found, n, placement);
  if (TCMALLOC_LIKELY(span != nullptr)) growing_hugepage_.NoteGrown({span->first, n}, n);
  return span;
}

template <typename System>
Span* ClassicPageHeap<System>::TakeByHugepage(Span* found, Length n, const Placement& placement) {
  if (!growing_hugepage_.IsWanted(this->system_)) return TakeReturned(found, n, placement);
  if (LacksEnd(found, n)) {
    this->GrowBehind(found->end(), kPagesPerHugePage);
    // Whatever was added may have merged with it.
    found = spans_.Find(Span::State::kReturned, n, placement);
  }
  const PageRange unused{found->first, found->length};
  Span* span = spans_.Take(found, n, placement);
  if (span == nullptr) return nullptr;
  const PageRange taken{span->first, n};
  bool is_begun = false;
  if (growing_hugepage_.Begins(taken, unused)) {
    if (growing_hugepage_.is_begun()) EndHugepage();
    is_begun = growing_hugepage_.Begin(this->system_, taken, this->HasReleased());
  }
  growing_hugepage_.NoteGrown(taken, n);
  if (is_begun) TouchHugepage(taken.end() - Length(1));
  return span;
}

template <typename System>
void ClassicPageHeap<System>::TouchHugepage(PageId page) {
  lock_.Unlock();
  const int64_t begin = this->system_.Now();
  this->system_.Touch(page.start());
  const int64_t end = this->system_.Now();
  lock_.Lock();
  growing_hugepage_.NoteTouched(begin, end);
}

template <typename System>
bool ClassicPageHeap<System>::LacksEnd(const Span* unused, Length n) const {
  const PageRange pages{unused->first, unused->length};
  return GrowingHugepage<System>::IsCutShort({pages.first, n}, pages) && spans_.IsLast(unused) &&
         AddressesAbound();
}

template <typename System>
Length ClassicPageHeap<System>::EndHugepage() {
  const PageRange rest = growing_hugepage_.End(this->system_);
  const Length made = spans_.MakeFree(rest.first, rest.length);
  this->PublishCommitted();
  return made;
}

template <typename System>
Span* ClassicPageHeap<System>::FindAnywhere(Length n, const Placement& placement) {
  const Length alignment = placement.alignment;
  // MakeRoom may have let go of the lock, so search again.
  Span* span = spans_.Find(Span::State::kFree, n, placement);
  if (span == nullptr) span = spans_.Find(Span::State::kReturned, n, placement);
  if (span == nullptr && growth_cap_.HasEnough(spans_.total(), InUse() + n)) {
    span = MergeRunBeforeGrowth(n, alignment);
  }
  if (span == nullptr) span = this->Grow(n, alignment, LeastGrowthFor(n, placement));
  if (span == nullptr) span = spans_.MergeRun(n, alignment, this->Headroom());
  return span;
}

template <typename System>
Span* ClassicPageHeap<System>::MergeRunBeforeGrowth(Length n, Length alignment) {
  Span* span = spans_.MergeRun(n, alignment, this->Headroom());
  if (span == nullptr) growth_cap_.NoteSearchedInVain(spans_.total());
  return span;
}

template <typename System>
bool ClassicPageHeap<System>::DeservesRoom(Length n) const {
  if (n > Base::kMaxRequest || n.pages() * kRoomyShare < spans_.committed().pages()) return false;
  return AddressesAbound();
}

template <typename System>
bool ClassicPageHeap<System>::AddressesAbound() const {
  const int saved_errno = errno;
  const bool abound = !this->system_.IsFinite() && !this->system_.IsLimited();
  errno = saved_errno;
  return abound;
}

template <typename System>
void ClassicPageHeap<System>::OffsetGrowth(Length n) {
  if (pacer_.rate() == 0) return;
  Length due = growth_offset_.PagesDue(n, spans_.free(), spans_.committed());
  if (TCMALLOC_UNLIKELY(growth_cap_.IsResidentEnough(spans_.committed() + n, InUse() + n))) {
    due = std::max(due, n);
  } else {
    if (due == Length(0)) return;
    growth_offset_.NoteTime(static_cast<uint64_t>(MonotonicNanoseconds()));
    if (!growth_offset_.MayPay(spans_.retaken(), spans_.committed())) return;
  }
  growth_offset_.NoteReleased(
      this->ReleaseLocked(due, Base::Cut::kExactly, ReleaseCause::kGrowth, Cuts::kAnywhere));
}

template <typename System>
void ClassicPageHeap<System>::DeleteLocked(Span* span) {
  this->CheckOften();
  TCMALLOC_CHECK(span->in_use());
  const Length n = span->length;
  span = spans_.Free(span);
  this->NoteFreed(n);
  if (TCMALLOC_UNLIKELY(aggressive_decommit_)) {
    spans_.BeginRelease(span);
    this->ReleaseAlone(span);
  } else if (TCMALLOC_UNLIKELY(pacer_.NoteFreed(n))) {
    pacer_.NoteReleased(ReleasePaced());
  }
}

template <typename System>
bool ClassicPageHeap<System>::TryExtend(Span* span, Length n) {
  SpinLockHolder holder(lock_);
  TCMALLOC_DCHECK(span->state == Span::State::kLarge);
  if (n <= span->length) return true;
  const Length before = spans_.committed();
  if (n > Base::kMaxRequest || !this->ExtendLocked(span, n)) return false;
  if (spans_.committed() > before) {
    const Length grown = spans_.committed() - before;
    growing_hugepage_.NoteGrown({span->first, n}, grown);
    OffsetGrowth(grown);
  }
  this->NoteFreeTaken();
  NoteTaken();
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
Length ClassicPageHeap<System>::ReleasePaced() {
  Span* span = spans_.BeginRelease(kMaxPacedRelease, Cuts::kAnywhere);
  return span != nullptr ? this->ReleaseAlone(span) : Length(0);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_CLASSIC_PAGE_HEAP_H_
