// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/classic/heap_regions.h"

namespace tcmalloc {

HeapRegions::Region* HeapRegions::Take(Region** link) {
  Region* region = *link;
  if (region != nullptr) *link = region->next;
  return region;
}

HeapRegions::Region* HeapRegions::TakeEndingAt(PageId page) {
  Region** link = &regions_;
  while (*link != nullptr && (*link)->end() != page) link = &(*link)->next;
  return Take(link);
}

HeapRegions::Region* HeapRegions::TakeBeginningAt(PageId page) {
  Region** link = &regions_;
  while (*link != nullptr && (*link)->first != page) link = &(*link)->next;
  return Take(link);
}

bool HeapRegions::Add(PageId first, Length length) {
  Region* region = TakeEndingAt(first);
  if (region == nullptr) {
    region = pool_.New();
    if (region == nullptr) return false;
    region->first = first;
  }
  region->length += length;
  if (Region* right = TakeBeginningAt(region->end())) {
    region->length += right->length;
    pool_.Delete(right);
  }
  region->next = regions_;
  regions_ = region;
  total_ += length;
  return true;
}

}  // namespace tcmalloc
