// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The spans of a heap: how they split and merge.

#ifndef TCMALLOC_PAGE_HEAP_CLASSIC_HEAP_SPANS_H_
#define TCMALLOC_PAGE_HEAP_CLASSIC_HEAP_SPANS_H_

#include <cstddef>
#include <cstdint>

#include "base/intrusive_list.h"
#include "page_heap/classic/free_spans.h"
#include "page_heap/classic/heap_regions.h"
#include "page_heap/free_runs.h"
#include "page_heap/stats.h"
#include "pages/metadata_arena.h"
#include "pages/page_map.h"
#include "pages/page_types.h"
#include "pages/span.h"

namespace tcmalloc {

// Every page that the system gave lies in exactly one span, and the page map's entries of a span's
// first and last page name it. So the entries beside a span name its neighbours, or nothing where
// the heap ends; entries inside a span may be stale.
//
// No two kFree spans touch, and no two kReturned ones. A free span does not merge with a returned
// one: the sum would have to count as resident, and what reads as zero would be forgotten. Only
// MergeRun does it, when nothing else can serve a request.
//
// Makes no system call. Not thread safe: the page heap's lock guards it.
class HeapSpans {
 public:
  constexpr HeapSpans(PageMap& map, MetadataArena& arena)
      : map_(map), pool_(arena), regions_(arena) {}
  HeapSpans(const HeapSpans&) = delete;
  HeapSpans& operator=(const HeapSpans&) = delete;

  // A span of `state` (kFree or kReturned) in which n pages fit at an address that is a multiple
  // of `alignment`, a power of two; or null. Without alignment it is the shortest such span; with
  // it, a span may be passed over that would do.
  Span* Find(Span::State state, Length n, Length alignment) const;

  // Joins neighbouring free and returned spans to one free span with room for n pages, aligned as
  // above. Null if there is no such place with at most so many returned pages, which count as
  // committed then. Visits every span of the heap.
  Span* MergeRun(Length n, Length alignment, Length most_returned);

  // Cuts n pages at the first aligned address out of what Find, MergeRun or AddFresh returned, and
  // hands them out as kLarge. Null, with nothing lost, if no memory for a record can be had.
  Span* Take(Span* span, Length n, Length alignment);

  // Takes back a span in use. Returns the span that it merged into.
  Span* Free(Span* span);

  // Adds pages that nobody has touched. Returns the returned span that holds them, or null if no
  // memory for a record can be had.
  Span* AddFresh(PageId first, Length length, bool zeroed);

  // Makes a span in use n pages long, at the cost of free and returned spans behind it. False,
  // with nothing changed, if they do not suffice, or if more than `most_returned` of these pages
  // are returned.
  bool Extend(Span* span, Length n, Length most_returned);

  // Cuts what lies behind the first n pages off a span. Returns it as a span of the same state, or
  // null, with nothing changed, if no memory for a record can be had.
  Span* SplitTail(Span* span, Length n);

  // A longest free span, and of a longer one the last `most` pages, to be given back to the
  // system: it is kInTransit until EndRelease. Null if there is none.
  Span* BeginRelease(Length most);
  void BeginRelease(Span* free);
  // `released`: whether the system took it; `zeroed`: whether all of it reads as zero now.
  void EndRelease(Span* span, bool released, bool zeroed);

  // Fills in everything except the counts of events.
  PageHeapStats stats() const;
  Length committed() const { return regions_.total() - returned_.total(); }
  Length free() const { return free_.total(); }
  // Ever.
  uint64_t releases_begun() const { return releases_begun_; }
  uint64_t releases_ended() const { return releases_ended_; }
  Length total() const { return regions_.total(); }
  size_t count() const { return pool_.live(); }

  // Calls visit(const Span&) for every span, inside a region in order of address.
  template <typename Visitor>
  void ForEach(Visitor&& visit) const {
    for (const HeapRegions::Region* region = regions_.first(); region != nullptr;
         region = region->next) {
      for (PageId page = region->first; page != region->end();) {
        const Span* span = map_.Get(page);
        page = span->end();
        visit(*span);
      }
    }
  }

  // Adds all runs at once. Returns false: nothing remains to be counted.
  bool CountFreeRuns(PageId* next, FreeRunCounts* counts) const;

  // Crashes if anything that is promised above does not hold.
  void CheckInvariants() const;

 private:
  FreeSpans& list(Span::State state) { return state == Span::State::kFree ? free_ : returned_; }
  static bool IsFreeOrReturned(const Span* span) {
    return span->state == Span::State::kFree || span->state == Span::State::kReturned;
  }

  void Retire(Span* record);
  // Merges a span in no list, which is kFree or kReturned, with its neighbours of the same state,
  // and lists it.
  void Settle(Span* span);
  // Adds a neighbour that is not in use to `span`.
  void AbsorbLeft(Span* span, Span* left);
  void AbsorbRight(Span* span, Span* right);
  // Cuts the first n pages off a span in no list. Null if no memory for a record can be had.
  Span* SplitHead(Span* span, Length n);
  // The first of neighbouring free and returned spans that have n pages together, or null.
  Span* FirstOfRun(Length n, Length most_returned) const;

  PageMap& map_;
  MetadataPool<Span> pool_;
  HeapRegions regions_;
  FreeSpans free_;
  FreeSpans returned_;
  IntrusiveList<Span> releasing_;
  Length in_transit_;
  uint64_t releases_begun_ = 0;
  uint64_t releases_ended_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_CLASSIC_HEAP_SPANS_H_
