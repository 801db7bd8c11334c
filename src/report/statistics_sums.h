// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Combines figures of different moments to statistics whose sums hold.

#ifndef TCMALLOC_REPORT_STATISTICS_SUMS_H_
#define TCMALLOC_REPORT_STATISTICS_SUMS_H_

#include <cstdint>

#include "central/central_free_list.h"
#include "page_heap/stats.h"
#include "report/statistics.h"

namespace tcmalloc {

// Objects of one class in caches, which change while they are counted.
struct CachedObjects {
  uint64_t thread = 0;
  uint64_t cpu = 0;
  uint64_t transfer = 0;
};

// Combines the figures of one class. The central free list knows how many objects it gave out.
// Objects that caches claim beyond that are left out.
SizeClassStatistics CombineSizeClass(uint8_t c, const CentralStats& central,
                                     const CachedObjects& cached);

// Adds one size class to the sums over all.
void AddUp(const SizeClassStatistics& of, Statistics* statistics);

// Adds the counts of the page heap, after all size classes, whose spans have `small_bytes`. Spans
// that went back to the page heap after their class was counted are subtracted from its free
// memory.
void AddUp(const PageHeapStats& pages, uint64_t small_bytes, Statistics* statistics);

}  // namespace tcmalloc

#endif  // TCMALLOC_REPORT_STATISTICS_SUMS_H_
