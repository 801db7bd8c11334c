// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/huge/huge_regions.h"

#include "base/bits.h"

namespace tcmalloc {

bool HugeRegions::Add(HugePage first, bool returned, bool zeroed) {
  // If this fails, the trackers made so far are used another time.
  for (size_t i = 0; i < kHugePages; ++i) {
    if (map_.GetOrMake(first + i) == nullptr) return false;
  }
  Region* region = pool_.New();
  if (region == nullptr) return false;
  region->first = first;
  region->next = regions_;
  regions_ = region;
  ForEachTracker(region, [&](HugePageTracker* tracker) {
    tracker->Reset(returned, zeroed);
    tracker->place = HugePageTracker::Place::kRegion;
  });
  return true;
}

PageId HugeRegions::NextUnused(PageId page, PageId end) const {
  while (page < end) {
    const HugePageTracker* tracker = map_.Get(HugePage::Containing(page));
    const PageId first = tracker->hugepage.first_page();
    const bool full = tracker->used() == kPagesPerHugePage;
    const size_t found =
        full ? HugePageTracker::kPages : tracker->NextUnused((page - first).pages());
    page = first + Length(found);
    if (found < HugePageTracker::kPages) break;
  }
  return page;
}

PageId HugeRegions::NextUsed(PageId page, PageId end) const {
  while (page < end) {
    const HugePageTracker* tracker = map_.Get(HugePage::Containing(page));
    const PageId first = tracker->hugepage.first_page();
    const bool empty = tracker->used() == Length(0);
    const size_t found =
        empty ? HugePageTracker::kPages : tracker->NextUsed((page - first).pages());
    page = first + Length(found);
    if (found < HugePageTracker::kPages) break;
  }
  return page;
}

PageId HugeRegions::Find(Length n, Length alignment) const {
  for (const Region* region = regions_; region != nullptr; region = region->next) {
    PageId begin = NextUnused(region->begin(), region->end());
    while (begin < region->end()) {
      const PageId end = NextUsed(begin, region->end());
      const PageId start(AlignUp(begin.index(), alignment.pages()));
      if (start + n <= end) return start;
      begin = NextUnused(end, region->end());
    }
  }
  return PageId(0);
}

bool HugeRegions::IsEmpty(const Region* region) const {
  Length used;
  ForEachTracker(region, [&](const HugePageTracker* tracker) { used += tracker->used(); });
  return used == Length(0);
}

bool HugeRegions::Dissolve(HugePage page, HugePage* first) {
  Region** link = &regions_;
  while (page < (*link)->first || (*link)->first + kHugePages <= page) link = &(*link)->next;
  Region* region = *link;
  if (!IsEmpty(region)) return false;
  ForEachTracker(region,
                 [](HugePageTracker* tracker) { tracker->place = HugePageTracker::Place::kNone; });
  *first = region->first;
  *link = region->next;
  pool_.Delete(region);
  return true;
}

HugePageTracker* HugeRegions::FindWithFreeMemory(bool only_empty) const {
  HugePageTracker* found = nullptr;
  for (const Region* region = regions_; region != nullptr; region = region->next) {
    ForEachTracker(region, [&](HugePageTracker* tracker) {
      if (tracker->free() == Length(0)) return;
      const bool empty = tracker->used() == Length(0);
      if (only_empty && !empty) return;
      if (found == nullptr || (empty && found->used() > Length(0))) found = tracker;
    });
  }
  return found;
}

}  // namespace tcmalloc
