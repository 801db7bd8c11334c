// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The regions of address space that the heap occupies.

#ifndef TCMALLOC_PAGE_HEAP_CLASSIC_HEAP_REGIONS_H_
#define TCMALLOC_PAGE_HEAP_CLASSIC_HEAP_REGIONS_H_

#include "pages/metadata_arena.h"
#include "pages/page_types.h"

namespace tcmalloc {

// The maximal runs of pages that the system gave. No two of them touch, so every span lies in
// exactly one. A plain list suffices, because the heap seldom grows and the system gives blocks
// side by side where it can. Not thread safe.
class HeapRegions {
 public:
  struct Region {
    PageId first;
    Length length;
    Region* next = nullptr;

    PageId end() const { return first + length; }
  };

  constexpr explicit HeapRegions(MetadataArena& arena) : pool_(arena) {}
  HeapRegions(const HeapRegions&) = delete;
  HeapRegions& operator=(const HeapRegions&) = delete;

  // Adds a run. Requires that its pages are in no region yet. Returns false, with nothing changed,
  // if no memory for a record can be had.
  [[nodiscard]] bool Add(PageId first, Length length);

  // Returns the newest region, or null if there is none. The order of the others is unspecified.
  const Region* first() const { return regions_; }
  Length total() const { return total_; }

 private:
  // Unlinks and returns the region that ends (begins) at `page`, or null.
  Region* TakeEndingAt(PageId page);
  Region* TakeBeginningAt(PageId page);
  Region* Take(Region** link);

  MetadataPool<Region> pool_;
  Region* regions_ = nullptr;
  Length total_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_CLASSIC_HEAP_REGIONS_H_
