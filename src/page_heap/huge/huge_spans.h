// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The spans of a heap of hugepages: their places, and the states of their pages.

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

  // Unused pages in a shared hugepage; nowhere if the tracker is null.
  struct SharedPlace {
    HugePageTracker* tracker = nullptr;
    size_t first = 0;
    explicit operator bool() const { return tracker != nullptr; }
  };

  // Return a place where n unused pages begin at a multiple of `alignment`, a power of two.
  //
  // FindShared looks in shared hugepages. Requires that both arguments are below a hugepage.
  SharedPlace FindShared(Length n, Length alignment) const;
  // Looks in the regions.
  PageId FindInRegion(Length n, Length alignment) const { return regions_.Find(n, alignment); }
  // Looks at the beginnings of hugepages in ranges, preferably resident ones. To find these, up to
  // `most_returned` returned pages of empty hugepages may become free.
  PageId FindWhole(Length n, Length alignment, Length most_returned);
  // Returns the beginning of n pages that start with the unused end of the shared hugepage before
  // `first`, a place that FindWhole returned. Returns `first` itself if that end is in use.
  PageId StartBefore(PageId first, Length n, Length alignment) const;
  // Works as FindWhole, but prefers the place where the least has to become resident, also across
  // adjacent ranges.
  PageId FindLong(Length n, Length alignment, Length most_returned);
  // Returns the length of the part of a long span that would fit at the end of the newest block of
  // the system, if more memory followed that block.
  Length LengthAvailableAtEnd() const;
  // Looks anywhere. Visits every span of the heap.
  PageId FindAnywhere(Length n, Length alignment) const;

  // Returns the number of returned pages among these unused pages.
  Length CountReturned(PageRange pages) const;
  static Length CountReturned(SharedPlace place, Length n) {
    return Length(place.tracker->CountReturned(place.first, n.pages()));
  }

  // Hands out unused pages as kLarge. Null, with nothing lost, if no memory for a record can be
  // had.
  Span* Take(PageRange pages);
  // Hands out n pages, less than a hugepage, of a hugepage in the filler.
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
  // Makes a span in use n pages long. Returns false, with nothing changed, if a page behind it is
  // used, if more than `most_returned` of these pages are returned, or if no memory for a record
  // can be had.
  bool Extend(Span* span, Length n, Length most_returned);
  // Returns true if a free range has n pages.
  bool HasFree(Length n) const { return ranges_.Find(Span::State::kFree, n, Length(1)) != nullptr; }

  // Returns the number of pages that new memory at the end of the newest block of the system would
  // have to add for a span in use to have n pages; 0 if more than that is in the way, or if more
  // than `most_returned` pages would be needed that are not resident.
  Length MissingAtEnd(const Span* span, Length n, Length most_returned) const;
  // Cuts the pages behind the first n off a span in use. Returns them as a span in use, or null,
  // with nothing changed, if no memory for a record can be had.
  Span* SplitTail(Span* span, Length n);

  // Keeps memory for the records of a heap of `total` pages, each of which is a span.
  void ReserveRecords(Length total) { pool_.Reserve(total.pages()); }

  // Adds whole hugepages that nobody has touched. Returns the range that holds them, or null, with
  // nothing changed, if no memory for records can be had.
  Span* AddFresh(PageId first, Length length, bool zeroed);
  // Lets spans share the hugepage that begins at `first`, which is in a range. Null, with nothing
  // changed, if no memory for a record can be had.
  HugePageTracker* Share(PageId first, HugePageTracker::Contents contents);
  // Makes a region of hugepages in a range.
  [[nodiscard]] bool AddRegion(PageId first);
  // Returns true if so much is left over behind long spans that a region is worth its address
  // space.
  bool NeedsRegion() const { return filler_.tail_slack() >= kMostTailSlack; }
  // Returns the tracker of the hugepage of `page`; null if it is not shared.
  HugePageTracker* SharedAt(PageId page) const {
    HugePageTracker* tracker = trackers_.Get(HugePage::Containing(page));
    return tracker != nullptr && tracker->place != HugePageTracker::Place::kNone ? tracker
                                                                                 : nullptr;
  }
  // Notes that the kernel backs all of a shared hugepage: its returned pages become free.
  void AssumeBacked(HugePageTracker* tracker);
  // Returns a nearly full hugepage that is not known to be backed by one page and was not proposed
  // before; or null.
  HugePageTracker* ProposeCollapse();

  // Permits the release of free pages in hugepages that are in use: of none; of those in regions
  // and those that were first shared for large blocks; or of all.
  enum class Breaking : uint8_t { kForbidden, kOfBlocks, kAllowed };
  // Takes up to `most` free pages for release to the system; they are in transit until EndRelease.
  // Unused hugepages come first. Null, with nothing changed, if there are no such pages or no
  // memory for a record can be had.
  Span* BeginRelease(Length most, Breaking breaking);
  // Takes a span in use for release to the system.
  void BeginRelease(Span* span);
  // `released` is true if the system took the span, `zeroed` if all of it reads as zero now.
  void EndRelease(Span* span, bool released, bool zeroed);
  // Returns each shared hugepage once after a part of it went back; null if there is none.
  HugePageTracker* NextBroken();
  // Releases begun since the start.
  uint64_t releases_begun() const { return releases_begun_; }
  uint64_t releases_ended() const { return releases_ended_; }

  // Fills in everything except the counts of events.
  PageHeapStats stats() const;
  Length total() const { return blocks_.total(); }
  Length free() const { return free_; }
  Length committed() const { return blocks_.total() - returned_; }
  Length in_use() const { return blocks_.total() - free_ - returned_ - in_transit_; }
  // The number of records that CheckInvariants visits.
  size_t count() const { return pool_.live() + filler_.hugepages(); }
  const HugePageFiller& filler() const { return filler_; }
  size_t regions() const { return regions_.count(); }
  // The number of shared hugepages of which a part was ever given back.
  uint64_t broken() const { return broken_; }

  // Calls visit(const Span&) for every span and range, and for every run of free or of returned
  // pages in a shared hugepage; within a block of the system, in order of address.
  template <typename Visitor>
  void ForEach(Visitor&& visit) const {
    ForEachWhile([&](const Span& span) {
      visit(span);
      return true;
    });
  }
  // Stops as soon as visit returns false.
  template <typename Visitor>
  void ForEachWhile(Visitor&& visit) const;

  static constexpr size_t kRecordsPerPart = 4096;
  // Adds a part of the unused runs, in order of address, beginning at *next, which it advances; the
  // first call gets page 0. Looks at kRecordsPerPart records, plus at most those of one hugepage.
  // Returns false after the last part.
  bool CountFreeRuns(PageId* next, FreeRunCounts* counts) const;

  // Crashes if one of the invariants above is violated.
  void CheckInvariants() const;

 private:
  // The number of shared hugepages that are examined for one that may be broken.
  static constexpr int kMostTried = 64;
  static constexpr Length kMostTailSlack = kPagesPerHugePage * 8;

  // Makes free ranges of unused shared hugepages of which a part is returned. Returns true if there
  // were any.
  bool ReclaimEmpty(Length most_returned);
  const Span* FindFree(Length n, Length alignment, Length most_returned);
  bool Claim(PageRange pages, bool extends, bool* zeroed);
  bool MakeTrackers(PageRange pages);
  bool ClaimInFiller(HugePageTracker* tracker, size_t first, Length n, bool new_allocation);
  bool ClaimIn(HugePageTracker* tracker, PageId first, PageId end, bool new_allocation);
  HugePageTracker* ShareFrom(Span* range, PageId first, HugePageTracker::Contents contents);
  // Frees a span that lies in one hugepage of the filler.
  void FreeInOne(HugePageTracker* tracker, Span* span);
  void Free(Span* span, Span::State state, bool zeroed);
  void FreeIn(HugePageTracker* tracker, PageId first, PageId end, Span::State state, bool zeroed);
  void MakeRange(Span* record, PageRange pages, Span::State state, bool zeroed);
  void FreeTrackers(PageId first, PageId end);
  void Vacate(HugePageTracker* tracker);
  void MakeWhole(HugePageTracker* tracker);
  Length UnusedFrom(PageId page, Length most) const;
  // Notes that the hugepage of `cut`, which lies inside one span, is shared by the two spans that
  // it is split into.
  void SplitAllocationAt(PageId cut);
  void NoteBroken(HugePageTracker* tracker);
  // Changes a tracker in any place; one in the filler through HugePageFiller::Update.
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
  // Returns the pages to give back next; of length 0 if there are none.
  PageRange NextRelease(Length most, Breaking breaking) const;
  void Retire(Span* record);
  // Returns the span that holds `page`, which is a used page or the first of a whole hugepage;
  // otherwise, in `buffer`, the run of unused pages that begins there.
  const Span* SpanAt(PageId page, Span* buffer) const;
  // Returns the block with the lowest address that ends behind `page`; null if there is none.
  const HeapRegions::Region* BlockFrom(PageId page) const;
  // Counts the runs of the hugepage, or of the range, that begins at `page`, and sets *end to the
  // beginning of the next one. Returns the number of records that it looked at.
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
void HugeSpans::ForEachWhile(Visitor&& visit) const {
  for (const HeapRegions::Region* block = blocks_.first(); block != nullptr; block = block->next) {
    for (PageId page = block->first; page != block->end();) {
      Span buffer;
      const Span* span = SpanAt(page, &buffer);
      page = span->end();
      if (!visit(*span)) return;
    }
  }
}

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_HUGE_HUGE_SPANS_H_
