// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The page heap that packs spans into hugepages.

#ifndef TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_HEAP_H_
#define TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_HEAP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/bits.h"
#include "base/check.h"
#include "base/spin_lock.h"
#include "base/thread_annotations.h"
#include "page_heap/huge/advice.h"
#include "page_heap/huge/huge_page.h"
#include "page_heap/huge/huge_page_stats.h"
#include "page_heap/huge/huge_spans.h"
#include "page_heap/page_heap_base.h"
#include "page_heap/release/demand_window.h"
#include "page_heap/release/growth_bound.h"
#include "pages/metadata_arena.h"
#include "pages/page_map.h"
#include "pages/page_types.h"
#include "pages/span.h"
#include "system/memory.h"
#include "system/transparent_hugepages.h"

namespace tcmalloc {

// A SpanSource over `System`, which also offers AdviseHuge and IsLimited as SystemMemory does: see
// PageHeapBase.
// Promises what ClassicPageHeap does.
//
// Spans below a hugepage share hugepages: see HugePageFiller. Longer spans have hugepages of their
// own and share the last one if they do not fill it, or they lie side by side in a region: see
// HugeRegions. Both the shared and the own hugepages come from unused hugepages, resident ones
// first, and those from the system. When the system gives no more memory, any run of pages will do.
//
// If the system gives only a limited number of addresses, spans also lie across hugepages, so that
// no pages are left over between them, and there are no regions.
//
// The lock is also held while the system is told how to back the pages that spans are about to use.
// It is released while memory is moved.
template <typename System>
class HugePageHeap final : public PageHeapBase<System, HugeSpans> {
  using Base = PageHeapBase<System, HugeSpans>;
  using Base::aggressive_decommit_, Base::decay_, Base::lock_, Base::pacer_, Base::spans_;
  using Breaking = HugeSpans::Breaking;

 public:
  static constexpr Length kMinGrowth = kPagesPerHugePage;

  using Base::ReleaseAtLeast, Base::ReleaseUnused;

  constexpr HugePageHeap(System& system, PageMap& map, MetadataArena& arena)
      : Base(system, map, arena, kPagesPerHugePage, kMinGrowth) {}

  PageHeapKind kind() const final { return PageHeapKind::kHuge; }

  Span* New(Length n) final TCMALLOC_EXCLUDES(lock_) { return NewAligned(n, Length(1)); }

  // Places spans by hugepages only.
  Span* NewNear(Length n, PageId) final TCMALLOC_EXCLUDES(lock_) { return New(n); }

  // Ranges of hugepages leave room behind most long spans anyway.
  Span* NewRoomy(Length n) final TCMALLOC_EXCLUDES(lock_) { return New(n); }

  Span* NewAligned(Length n, Length alignment) final TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    return Allocate(n, alignment);
  }

  void Delete(Span* span) final TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    DeleteLocked(span);
  }

  bool TryExtend(Span* span, Length n) final TCMALLOC_EXCLUDES(lock_);

  void Truncate(Span* span, Length n) final TCMALLOC_EXCLUDES(lock_);

  // Releases whole hugepages first.
  Length ReleaseAtLeast(Length n, ReleaseCause cause) final TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    return ReleaseByBreaking(n, Base::Cut::kNever, cause);
  }

  // Releases unused hugepages, and pages of other hugepages only beyond what recent demand would
  // need. In the background, also asks the kernel to back nearly full hugepages by one page.
  Length ReleaseUnused(uint64_t now, Length most, ReleaseCause cause) final
      TCMALLOC_EXCLUDES(lock_);

  void set_hugepages(const TransparentHugepages& setting) final TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    advice_.Configure(setting);
  }

  HugePageStats huge_stats() final TCMALLOC_EXCLUDES(lock_);

 private:
  // The collapses in one call of ReleaseUnused. Each takes up to a millisecond.
  static constexpr int kMaxCollapses = 8;
  // Each hugepage that the kernel is told to leave alone may cost two of the mappings that a
  // process may have, 65530 by default.
  static constexpr size_t kMaxSmallPaged = 8192;

  // The result of a search: no place was found, or one was, though memory for records may be
  // missing.
  enum class Search : bool { kNowhere, kTried };

  TCMALLOC_ALWAYS_INLINE Span* Allocate(Length n, Length alignment) TCMALLOC_REQUIRES(lock_) {
    TCMALLOC_DCHECK(n > Length(0) && IsPowerOfTwo(alignment.pages()));
    this->NoteRequest();
    if (TCMALLOC_LIKELY(IsShort(n, alignment))) {
      const HugeSpans::SharedPlace place = spans_.FindShared(n, alignment);
      if (TCMALLOC_LIKELY(place) && IsAllowed(place, n)) return Take(place, n);
    }
    return AllocateSlow(n, alignment);
  }

  static bool IsShort(Length n, Length alignment) {
    return n < kPagesPerHugePage && alignment < kPagesPerHugePage;
  }

  TCMALLOC_NOINLINE Span* AllocateSlow(Length n, Length alignment) TCMALLOC_REQUIRES(lock_);
  Span* AllocateAnywhere(Length n, Length alignment) TCMALLOC_REQUIRES(lock_);
  Span* Take(PageRange pages) TCMALLOC_REQUIRES(lock_) { return NoteTaken(spans_.Take(pages)); }
  Span* Take(HugeSpans::SharedPlace place, Length n) TCMALLOC_REQUIRES(lock_) {
    return NoteTaken(spans_.Take(place, n));
  }
  Span* NoteTaken(Span* span) TCMALLOC_REQUIRES(lock_) {
    this->PublishCommitted();
    this->NoteFreeTaken();
    demand_.Note(spans_.in_use());
    return span;
  }
  // Looks for a place that the limit allows, without growing the heap.
  Search TryPlaces(Length n, Length alignment, Span** span) TCMALLOC_REQUIRES(lock_);
  Search TryShort(Length n, Length alignment, Span** span) TCMALLOC_REQUIRES(lock_);
  Search TryLong(Length n, Length alignment, Span** span) TCMALLOC_REQUIRES(lock_);
  PageId FindInRegion(Length n, Length alignment) TCMALLOC_REQUIRES(lock_);
  // Returns the place of n pages for which FindWhole found room at `first`.
  PageRange PlaceAt(PageId first, Length n, Length alignment) const TCMALLOC_REQUIRES(lock_);
  // Returns a place in a region, or one where the fewest pages have to become resident. Page 0 if
  // there is none.
  PageRange PlaceLong(Length n, Length alignment) TCMALLOC_REQUIRES(lock_);
  // Releases the memory that is due according to GrowthBound after pages were taken that are not
  // resident yet. May let go of the lock.
  void OffsetGrowth() TCMALLOC_REQUIRES(lock_);

  // Returns how many more pages the limit allows to be committed, beyond n that are needed.
  Length HeadroomBeside(Length n) const TCMALLOC_REQUIRES(lock_) {
    return this->Headroom() - std::min(this->Headroom(), n);
  }
  bool IsAllowed(PageRange pages) const TCMALLOC_REQUIRES(lock_) {
    return !this->HasLimit() || this->AllowedByLimit(spans_.CountReturned(pages));
  }
  bool IsAllowed(HugeSpans::SharedPlace place, Length n) const TCMALLOC_REQUIRES(lock_) {
    return !this->HasLimit() || this->AllowedByLimit(HugeSpans::CountReturned(place, n));
  }
  // Reads the limit on addresses, which a program may change while it runs.
  void NoteAddressLimit() TCMALLOC_REQUIRES(lock_);
  // Extends a place at the end of the heap by its missing pages. The system may put them elsewhere.
  bool GrowAtEndFor(Length n, Length alignment) TCMALLOC_REQUIRES(lock_);
  bool GrowFor(Length n, Length alignment) TCMALLOC_REQUIRES(lock_);

  void DeleteLocked(Span* span) TCMALLOC_REQUIRES(lock_);
  // All of these let go of the lock for system calls.
  // Breaks hugepages where that takes.
  Length ReleaseByBreaking(Length n, Base::Cut cut, ReleaseCause cause) TCMALLOC_REQUIRES(lock_);
  // Tells the kernel to leave hugepages alone after a part of them went back.
  void AdviseBroken() TCMALLOC_REQUIRES(lock_);
  void CollapseSome() TCMALLOC_REQUIRES(lock_);
  bool Collapse(HugePageTracker* tracker) TCMALLOC_REQUIRES(lock_);

  // Decides how the kernel is to back a hugepage that spans begin to share, and tells it.
  void PrepareShared(HugePageTracker* tracker) TCMALLOC_REQUIRES(lock_);
  // Does so for the last hugepage of a long span.
  void PrepareTail(const Span* span) TCMALLOC_REQUIRES(lock_);
  void SendAdvice(HugePageTracker* tracker, HugePageTracker::Advice advice)
      TCMALLOC_REQUIRES(lock_);
  void NoteAdvice(HugePageTracker* tracker, HugePageTracker::Advice advice)
      TCMALLOC_REQUIRES(lock_);
  // Makes the call alone. Keeps errno.
  bool Advise(const HugePageTracker* tracker, HugeAdvice advice);

  bool saves_addresses_ TCMALLOC_GUARDED_BY(lock_) = false;
  GrowthBound growth_bound_ TCMALLOC_GUARDED_BY(lock_);
  DemandWindow demand_ TCMALLOC_GUARDED_BY(lock_);
  HugePageAdvice advice_ TCMALLOC_GUARDED_BY(lock_);
  HugePageStats huge_events_ TCMALLOC_GUARDED_BY(lock_);  // the counts of events alone
};

}  // namespace tcmalloc

#include "page_heap/huge/huge_page_heap_inl.h"

#endif  // TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_HEAP_H_
