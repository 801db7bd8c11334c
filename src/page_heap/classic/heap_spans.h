// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Splits and merges the spans of a heap.

#ifndef TCMALLOC_PAGE_HEAP_CLASSIC_HEAP_SPANS_H_
#define TCMALLOC_PAGE_HEAP_CLASSIC_HEAP_SPANS_H_

#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/intrusive_list.h"
#include "page_heap/classic/free_spans.h"
#include "page_heap/classic/heap_regions.h"
#include "page_heap/fit.h"
#include "page_heap/free_runs.h"
#include "page_heap/stats.h"
#include "pages/metadata_arena.h"
#include "pages/page_map.h"
#include "pages/page_types.h"
#include "pages/span.h"

namespace tcmalloc {

// Every page that the system gave lies in exactly one span. The page map's entries of a span's
// first and last page name the span. The entries of the pages beside a span therefore name its
// neighbours, or nothing where the heap ends. Entries inside a span may be stale.
//
// No two kFree spans touch, and no two kReturned ones. A free span does not merge with a returned
// one, because the sum would have to count as resident and its zero bytes would be forgotten. Only
// MergeRun does so, when nothing else can serve a request.
//
// Makes no system call. Not thread safe: the page heap's lock guards it.
class HeapSpans {
 public:
  constexpr HeapSpans(PageMap& map, MetadataArena& arena)
      : map_(map), pool_(arena), regions_(arena) {}
  HeapSpans(const HeapSpans&) = delete;
  HeapSpans& operator=(const HeapSpans&) = delete;

  // Returns a span of `state` (kFree or kReturned) in which n pages fit at a multiple of the
  // placement's alignment, a power of two; null if there is none. Without alignment it is the
  // shortest such span, unless another one is wanted for its place or the shortest is the room of a
  // growing block. With alignment, a suitable span may be missed.
  Span* Find(Span::State state, Length n, const Placement& placement) const;

  // Returns the number of pages at the beginning of a free or returned span into which a growing
  // block before it may grow: as many as the block has. 0 if there is no such block, or if the
  // pages are resident, because they then serve the next request.
  Length RoomIn(const Span* span) const;

  // Joins neighbouring free and returned spans to one free span with room for n pages, aligned as
  // above. Its returned pages count as committed from then on. Returns null if there is no such
  // place with at most `most_returned` of them. Visits every span of the heap.
  TCMALLOC_COLD Span* MergeRun(Length n, Length alignment, Length most_returned);

  // Cuts n pages at the first suitable address out of a span that Find, MergeRun or AddFresh
  // returned, and hands them out as kLarge. Returns null, with nothing lost, if no memory for a
  // record can be had.
  Span* Take(Span* span, Length n, const Placement& placement);

  // Takes back a span in use. Returns the span that it merged into.
  Span* Free(Span* span);

  // Returns true if the newest memory of the system ends with `span`.
  bool IsLast(const Span* span) const { return regions_.first()->end() == span->end(); }

  // Keeps memory for the records of a heap of `total` pages, each of which is a span.
  void ReserveRecords(Length total) { pool_.Reserve(total.pages()); }

  // Adds pages that nobody has touched. Returns the kReturned span that holds them, or null if no
  // memory for a record can be had.
  Span* AddFresh(PageId first, Length length, bool zeroed);

  // Makes a span in use n pages long by taking free and returned spans behind it. Returns false,
  // with nothing changed, if they are too short or if more than `most_returned` of these pages are
  // returned.
  bool Extend(Span* span, Length n, Length most_returned);

  // Returns true if a free span has n pages.
  bool HasFree(Length n) const { return free_.BestFit(n) != nullptr; }

  // Returns the number of pages that new memory at the end of the newest region would have to add
  // for a span in use to have n pages; 0 if more than that is in the way, or if more than
  // `most_returned` pages would be needed that are not resident.
  Length MissingAtEnd(const Span* span, Length n, Length most_returned) const;

  // Makes returned pages from `first` on, `most` at most, free ones, which are resident. Returns
  // their number, 0 unless `first` is returned. May miss a span that begins before it.
  TCMALLOC_COLD Length MakeFree(PageId first, Length most);

  // Cuts the pages behind the first n off a span. Returns them as a span of the same state, or
  // null, with nothing changed, if no memory for a record can be had.
  Span* SplitTail(Span* span, Length n);

  // If it is kAtHugepages, what goes of a long span begins where a hugepage does. One that the
  // kernel gave then goes as a whole, and can be had again.
  enum class Cuts : bool { kAnywhere, kAtHugepages };
  // Takes a longest free span, or of its end at most `most` pages if it is longer, for release to
  // the system. It is kInTransit until EndRelease. Returns null if there is none, or no place for a
  // cut.
  TCMALLOC_COLD Span* BeginRelease(Length most, Cuts cuts);
  void BeginRelease(Span* free);
  // `released` is true if the system took the span, `zeroed` if all of it reads as zero now. Its
  // `details` say already what they say of a returned span.
  void EndRelease(Span* span, bool released, bool zeroed);

  // Fills in everything except the counts of events.
  PageHeapStats stats() const;
  Length committed() const { return regions_.total() - returned_.total(); }
  Length free() const { return free_.total(); }
  // The pages that went back to offset growth and became resident again, ever. An estimate: of a
  // returned span of which some went back for that reason, these are taken first.
  Length retaken() const { return retaken_; }
  // Releases begun since the start.
  uint64_t releases_begun() const { return releases_begun_; }
  uint64_t releases_ended() const { return releases_ended_; }
  Length total() const { return regions_.total(); }
  size_t count() const { return pool_.live(); }

  // Calls visit(const Span&) for every span; within a region, in order of address.
  template <typename Visitor>
  void ForEach(Visitor&& visit) const {
    ForEachWhile([&](const Span& span) {
      visit(span);
      return true;
    });
  }
  // Stops as soon as visit returns false.
  template <typename Visitor>
  void ForEachWhile(Visitor&& visit) const {
    for (const HeapRegions::Region* region = regions_.first(); region != nullptr;
         region = region->next) {
      for (PageId page = region->first; page != region->end();) {
        const Span* span = map_.Get(page);
        page = span->end();
        if (!visit(*span)) return;
      }
    }
  }

  // Adds all runs at once. Returns false, because nothing remains to be counted.
  TCMALLOC_COLD bool CountFreeRuns(PageId* next, FreeRunCounts* counts) const;

  // Crashes if one of the invariants above is violated.
  void CheckInvariants() const;

 private:
  // Spans of different lengths that are looked at for aligned pages, before one is taken in which
  // they fit wherever it begins.
  static constexpr int kAlignedProbes = 16;

  FreeSpans& list(Span::State state) { return state == Span::State::kFree ? free_ : returned_; }
  const FreeSpans& list(Span::State state) const {
    return state == Span::State::kFree ? free_ : returned_;
  }
  static bool IsFreeOrReturned(const Span* span) {
    return span->state == Span::State::kFree || span->state == Span::State::kReturned;
  }

  Span* Shortest(Span::State state, Length n) const;
  Span* FindRoomy(Span::State state, Length n) const;
  TCMALLOC_ALWAYS_INLINE Span* FindAligned(Span* span, Length n, Length alignment) const;
  // Returns the page of a free or returned span at which n pages begin.
  PageId StartIn(const Span* span, Length n, const Placement& placement) const;
  Span* FindInZone(Span::State state, Length n, PageId near) const;
  TCMALLOC_ALWAYS_INLINE static PageId CutForRelease(const Span* span, Length most, Cuts cuts);
  void Retire(Span* record);
  TCMALLOC_ALWAYS_INLINE void NoteTaken(Span* span, Length n);
  TCMALLOC_ALWAYS_INLINE static void ShareOffset(Span* head, Span* tail, uintptr_t pages);
  // Merges an unlisted kFree or kReturned span with its neighbours of the same state, and lists it.
  void MergeAndList(Span* span);
  // Adds a neighbour that is not in use to `span`.
  void AbsorbLeft(Span* span, Span* left);
  void AbsorbRight(Span* span, Span* right);
  // Cuts the first n pages off an unlisted span. Returns null if no memory for a record can be had.
  Span* SplitHead(Span* span, Length n);
  // Returns the first of neighbouring free and returned spans that have n pages together, or null.
  TCMALLOC_COLD Span* FirstOfRun(Length n, Length most_returned) const;

  PageMap& map_;
  MetadataPool<Span> pool_;
  HeapRegions regions_;
  FreeSpans free_;
  FreeSpans returned_;
  IntrusiveList<Span> releasing_;
  Length in_transit_;
  Length retaken_;
  uint64_t releases_begun_ = 0;
  uint64_t releases_ended_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_CLASSIC_HEAP_SPANS_H_
