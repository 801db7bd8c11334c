// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The spans of a heap of hugepages: where they are put, and what becomes of their pages.

#ifndef TCMALLOC_PAGE_HEAP_HUGE_HUGE_SPANS_H_
#define TCMALLOC_PAGE_HEAP_HUGE_HUGE_SPANS_H_

#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/intrusive_list.h"
#include "page_heap/classic/heap_regions.h"
#include "page_heap/free_runs.h"
#include "page_heap/huge/huge_page.h"
#include "page_heap/huge/huge_page_filler.h"
#include "page_heap/huge/huge_page_map.h"
#include "page_heap/huge/huge_page_tracker.h"
#include "page_heap/huge/huge_ranges.h"
#include "page_heap/huge/huge_regions.h"
#include "page_heap/stats.h"
#include "pages/metadata_arena.h"
#include "pages/page_map.h"
#include "pages/page_types.h"
#include "pages/span.h"

namespace tcmalloc {

// A run of pages; of length 0 for none.
struct PageRange {
  PageId first;
  Length length;
};

// Each hugepage of the heap is one of
//
//   shared   its tracker, in the filler or a region, says what each page is
//   whole    in a range of hugepages that nobody uses: HugeRanges
//   inside   wholly inside one span, which is in use or on its way to the system
//
// and every page that is used, according to a tracker, lies in a span in use or in transit. Only
// such spans and ranges have records; runs that nobody uses inside shared hugepages have none. Both
// ends of every record are in the page map, so that the entry of a page names its span, or one that
// does not hold the page.
//
// Any run of pages that nobody uses can be claimed, wherever it begins and however many hugepages
// of whatever kind it touches: placement decides only where. Page 0 stands for nowhere.
//
// Makes no system call. Not thread safe: the page heap's lock guards it.
class HugeSpans {
 public:
  constexpr HugeSpans(PageMap& map, MetadataArena& arena)
      : map_(map),
        arena_(arena),
        pool_(arena),
        blocks_(arena),
        trackers_(arena),
        ranges_(map, pool_),
        regions_(trackers_, arena) {}
  HugeSpans(const HugeSpans&) = delete;
  HugeSpans& operator=(const HugeSpans&) = delete;

  // Pages that nobody uses in a shared hugepage; without a tracker, nowhere.
  struct SharedPlace {
    HugePageTracker* tracker = nullptr;
    size_t first = 0;
    explicit operator bool() const { return tracker != nullptr; }
  };

  // Where n pages nobody uses begin at a multiple of `alignment`, a power of two.
  // In a shared hugepage. Requires that both are below a hugepage.
  SharedPlace FindShared(Length n, Length alignment) const;
  // In a region.
  PageId FindInRegion(Length n, Length alignment) const { return regions_.Find(n, alignment); }
  // At the beginning of a hugepage of a range, best one that may be resident. To find one of these,
  // up to `most_returned` returned pages of empty hugepages may become free.
  PageId FindWhole(Length n, Length alignment, Length most_returned);
  // Where n pages begin if they also take what nobody uses at the end of the shared hugepage before
  // `first`, which FindWhole returned for them; `first` itself if nothing is left over there.
  PageId StartBefore(PageId first, Length n, Length alignment) const;
  // The same, but best where the least has to become resident: also in several ranges side by side.
  PageId FindLong(Length n, Length alignment, Length most_returned);
  // How much of a long span would have room at the end of the newest block of the system, if more
  // memory followed it.
  Length ReachAtEnd() const;
  // Anywhere at all. Visits every span of the heap.
  PageId FindAnywhere(Length n, Length alignment) const;

  // How many of these pages, which nobody uses, are returned.
  Length Returned(PageRange pages) const;
  static Length Returned(SharedPlace place, Length n) {
    return Length(place.tracker->Returned(place.first, n.pages()));
  }

  // Hands out pages that nobody uses, as kLarge. Null, with nothing lost, if no memory for a record
  // can be had.
  Span* Take(PageRange pages);
  // The same with n pages, less than a hugepage, of a hugepage in the filler.
  Span* Take(SharedPlace place, Length n);
  // Takes back a span in use.
  void Free(Span* span) {
    HugePageTracker* tracker = SharedAt(span->first);
    const bool in_one = tracker != nullptr && tracker->place == HugePageTracker::Place::kFiller &&
                        span->end() <= tracker->hugepage.end_page();
    if (TCMALLOC_LIKELY(in_one)) {
      FreeInOne(tracker, span);
    } else {
      Free(span, Span::State::kFree, false);
    }
  }
  // Makes a span in use n pages long. False, with nothing changed, if somebody uses the pages
  // behind it, more than `most_returned` of them are returned, or no memory for a record can be
  // had.
  bool Extend(Span* span, Length n, Length most_returned);
  // Cuts what lies behind the first n pages off a span in use. Returns it as a span in use, or
  // null, with nothing changed, if no memory for a record can be had.
  Span* SplitTail(Span* span, Length n);

  // Adds whole hugepages that nobody has touched. Returns the range that holds them, or null, with
  // nothing changed, if no memory for records can be had.
  Span* AddFresh(PageId first, Length length, bool zeroed);
  // Lets spans share the hugepage that begins at `first`, which is in a range. Null, with nothing
  // changed, if no memory for a record can be had.
  HugePageTracker* Share(PageId first, HugePageTracker::Contents contents);
  // Makes a region of hugepages in a range.
  [[nodiscard]] bool AddRegion(PageId first);
  // Whether so much is left over behind long spans that a region is worth its address space.
  bool NeedsRegion() const { return filler_.tail_slack() >= kMostTailSlack; }
  // The tracker of the hugepage of `page`; null if it is not shared.
  HugePageTracker* SharedAt(PageId page) const {
    HugePageTracker* tracker = trackers_.Get(HugePage::Containing(page));
    return tracker != nullptr && tracker->place != HugePageTracker::Place::kNone ? tracker
                                                                                 : nullptr;
  }
  // Notes that the kernel backs all of a shared hugepage: its returned pages become free.
  void AssumeBacked(HugePageTracker* tracker);
  // A nearly full hugepage that is not known to be backed by one page, not proposed before; or
  // null.
  HugePageTracker* ProposeCollapse();

  // Whether what is free in hugepages that somebody uses may go back: never, in regions and where
  // they were first shared for large blocks, or always.
  enum class Breaking : uint8_t { kForbidden, kOfBlocks, kAllowed };
  // Sends free pages, at most so many, on their way to the system: in transit until EndRelease.
  // Hugepages that nobody uses come first. Null, with nothing changed, if there is nothing or no
  // memory for a record can be had.
  Span* BeginRelease(Length most, Breaking breaking);
  // The same with a span in use.
  void BeginRelease(Span* span);
  // `released`: whether the system took it; `zeroed`: whether all of it reads as zero now.
  void EndRelease(Span* span, bool released, bool zeroed);
  // Each shared hugepage of which a part went back, once after that; null if there is none.
  HugePageTracker* NextBroken();
  // Ever.
  uint64_t releases_begun() const { return releases_begun_; }
  uint64_t releases_ended() const { return releases_ended_; }

  // Fills in everything except the counts of events.
  PageHeapStats stats() const;
  Length total() const { return blocks_.total(); }
  Length free() const { return free_; }
  Length committed() const { return blocks_.total() - returned_; }
  Length in_use() const { return blocks_.total() - free_ - returned_ - in_transit_; }
  // What CheckInvariants visits.
  size_t count() const { return pool_.live() + filler_.hugepages(); }
  const HugePageFiller& filler() const { return filler_; }
  size_t regions() const { return regions_.count(); }
  // How many shared hugepages were broken: the first time that something of them was given back.
  uint64_t broken() const { return broken_; }

  // Calls visit(const Span&) for every span and range, and for every run of free or of returned
  // pages in a shared hugepage; inside a block of the system's in order of address.
  template <typename Visitor>
  void ForEach(Visitor&& visit) const;

  static constexpr size_t kRecordsPerPart = 4096;
  // Adds a part of the runs that nobody uses, in order of address, from *next on, which it moves:
  // page 0 at first. Looks at kRecordsPerPart records, or at those of one hugepage more. False if
  // that was the last part.
  bool CountFreeRuns(PageId* next, FreeRunCounts* counts) const;

  // Crashes if anything that is promised above does not hold.
  void CheckInvariants() const;

 private:
  // Eight hugepages.
  // So many shared hugepages are looked at for one that may be broken.
  static constexpr int kMostTried = 64;
  static constexpr Length kMostTailSlack = kPagesPerHugePage * 8;

  // Makes free ranges of shared hugepages that nobody uses but of which a part is returned. Returns
  // whether there were any.
  bool ReclaimEmpty(Length most_returned);
  const Span* FindFree(Length n, Length alignment, Length most_returned);
  bool Claim(PageRange pages, bool extends, bool* zeroed);
  bool MakeTrackers(PageRange pages);
  bool ClaimInFiller(HugePageTracker* tracker, size_t first, Length n, bool new_allocation);
  bool ClaimIn(HugePageTracker* tracker, PageId first, PageId end, bool new_allocation);
  HugePageTracker* ShareFrom(Span* range, PageId first, HugePageTracker::Contents contents);
  // Of a span that lies in one hugepage of the filler.
  void FreeInOne(HugePageTracker* tracker, Span* span);
  void Free(Span* span, Span::State state, bool zeroed);
  void FreeIn(HugePageTracker* tracker, PageId first, PageId end, Span::State state, bool zeroed);
  void MakeRange(Span* record, PageRange pages, Span::State state, bool zeroed);
  void FreeTrackers(PageId first, PageId end);
  void Vacate(HugePageTracker* tracker);
  void MakeWhole(HugePageTracker* tracker);
  Length UnusedFrom(PageId page, Length most) const;
  // The hugepage of `cut`, which lies inside one span, is shared by the two that it is split into.
  void SplitAllocationAt(PageId cut);
  void NoteBroken(HugePageTracker* tracker);
  // Makes a change to a tracker wherever it is, in the filler as that demands.
  template <typename Change>
  void Update(HugePageTracker* tracker, Change change) {
    if (tracker->place == HugePageTracker::Place::kFiller) {
      filler_.Update(tracker, change);
    } else {
      change();
    }
  }
  static bool MayBreak(const HugePageTracker* tracker, Breaking breaking) {
    return breaking == Breaking::kAllowed ||
           (breaking == Breaking::kOfBlocks &&
            tracker->contents == HugePageTracker::Contents::kBlocks);
  }
  // What to give back next; of length 0 if there is nothing.
  PageRange NextRelease(Length most, Breaking breaking) const;
  void Retire(Span* record);
  // The span that holds `page`, a used one or the first of a whole hugepage; or, in `buffer`, the
  // run of unused pages that begins there.
  const Span* SpanAt(PageId page, Span* buffer) const;
  // The block with the lowest address that ends behind `page`; null if there is none.
  const HeapRegions::Region* BlockFrom(PageId page) const;
  // Of the hugepage that begins at `page`, or of the range that does: *end is where the next one
  // begins. Returns how many records it looked at.
  size_t CountFreeRunsAt(PageId page, PageId* end, FreeRunCounts* counts) const;

  PageMap& map_;
  MetadataArena& arena_;
  MetadataPool<Span> pool_;
  HeapRegions blocks_;
  HugePageMap trackers_;
  HugeRanges ranges_;
  HugePageFiller filler_;
  HugeRegions regions_;
  HugePageTracker* newly_broken_ = nullptr;
  IntrusiveList<Span> releasing_;
  Length free_;
  Length returned_;
  Length in_transit_;
  uint64_t releases_begun_ = 0;
  uint64_t releases_ended_ = 0;
  uint64_t broken_ = 0;
};

template <typename Visitor>
void HugeSpans::ForEach(Visitor&& visit) const {
  for (const HeapRegions::Region* block = blocks_.first(); block != nullptr; block = block->next) {
    for (PageId page = block->first; page != block->end();) {
      Span buffer;
      const Span* span = SpanAt(page, &buffer);
      page = span->end();
      visit(*span);
    }
  }
}

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_HUGE_HUGE_SPANS_H_
