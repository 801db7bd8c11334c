// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Long runs of hugepages in which spans lie side by side, regardless of the bounds of hugepages.

#ifndef TCMALLOC_PAGE_HEAP_HUGE_HUGE_REGIONS_H_
#define TCMALLOC_PAGE_HEAP_HUGE_HUGE_REGIONS_H_

#include <cstddef>

#include "page_heap/huge/huge_page.h"
#include "page_heap/huge/huge_page_map.h"
#include "page_heap/huge/huge_page_tracker.h"
#include "pages/metadata_arena.h"
#include "pages/page_types.h"

namespace tcmalloc {

// A span a little longer than some hugepages, placed at the beginning of a hugepage, leaves most of
// its last hugepage to others. If many spans do so and no others use the rest, they are packed in a
// region instead. All hugepages of a region have trackers, whose place is kRegion. A region is
// never wholly empty. Not thread safe.
class HugeRegions {
 public:
  static constexpr size_t kHugePages = 32;
  static constexpr Length kLength = kPagesPerHugePage * kHugePages;

  struct Region {
    HugePage first;
    Region* next = nullptr;
    PageId begin() const { return first.first_page(); }
    PageId end() const { return begin() + kLength; }
  };

  constexpr HugeRegions(HugePageMap& map, MetadataArena& arena) : map_(map), pool_(arena) {}
  HugeRegions(const HugeRegions&) = delete;
  HugeRegions& operator=(const HugeRegions&) = delete;

  // Returns true if spans of n pages should lie in regions, because in hugepages of their own they
  // would leave over more than an eighth of their size.
  static constexpr bool ShouldHold(Length n) {
    const Length slack = RoundUpToHugePages(n) - n;
    return n > kPagesPerHugePage && slack * 8 > n;
  }

  // Makes a region of hugepages that are in no range. `returned` and `zeroed` apply to all its
  // pages. Returns false, with nothing changed, if no memory for records can be had.
  [[nodiscard]] bool Add(HugePage first, bool returned, bool zeroed);

  // Returns the beginning of the first n unused, aligned pages of a region; page 0 if there is
  // none.
  PageId Find(Length n, Length alignment) const;

  // Forgets the region of `page` if it is wholly empty, and then returns true. Its trackers,
  // beginning with that of *first, are in no place afterwards.
  bool Dissolve(HugePage page, HugePage* first);

  // Returns a tracker with free memory: an empty one if there is any, and no other if `only_empty`.
  // Null if there is none.
  HugePageTracker* FindWithFreeMemory(bool only_empty) const;

  size_t count() const { return pool_.live(); }

 private:
  template <typename Visitor>
  void ForEachTracker(const Region* region, Visitor&& visit) const {
    for (size_t i = 0; i < kHugePages; ++i) visit(map_.Get(region->first + i));
  }
  PageId NextUnused(PageId page, PageId end) const;
  PageId NextUsed(PageId page, PageId end) const;
  bool IsEmpty(const Region* region) const;

  HugePageMap& map_;
  MetadataPool<Region> pool_;
  Region* regions_ = nullptr;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_HUGE_HUGE_REGIONS_H_
