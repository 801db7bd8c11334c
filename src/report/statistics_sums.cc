// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "report/statistics_sums.h"

#include <algorithm>
#include <cstddef>

#include "size_class/size_classes.h"

namespace tcmalloc {
namespace {

uint64_t Difference(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

// Takes as much of `amount` as is left.
uint64_t Take(uint64_t amount, uint64_t* left) {
  const uint64_t taken = std::min(amount, *left);
  *left -= taken;
  return taken;
}

void AddReleased(const PageHeapStats& pages, Statistics* statistics) {
  const auto bytes = [&](ReleaseCause cause) { return pages.released(cause).bytes(); };
  statistics->released = pages.released().bytes();
  statistics->released_for_program = bytes(ReleaseCause::kProgram);
  statistics->released_in_background = bytes(ReleaseCause::kBackground);
  statistics->shed_by_page_heap = bytes(ReleaseCause::kSoftLimit);
  statistics->released_for_hard_limit = bytes(ReleaseCause::kHardLimit);
  statistics->released_by_allocator =
      bytes(ReleaseCause::kAllocator) + bytes(ReleaseCause::kGrowth);
}

}  // namespace

SizeClassStatistics CombineSizeClass(uint8_t c, const CentralStats& central,
                                     const CachedObjects& cached) {
  SizeClassStatistics of;
  of.object_bytes = kSizeClasses[c].size;
  of.least_bytes = c == 1 ? 0 : LeastRequest(c);
  of.spans = central.spans;
  of.span_bytes = central.span_bytes;
  of.untouched = central.untouched_objects;
  of.central_free = central.free_objects + central.uncarved_objects - central.untouched_objects;
  uint64_t given_out = central.allocated_objects;
  of.transfer_free = Take(cached.transfer, &given_out);
  of.cpu_free = Take(cached.cpu, &given_out);
  of.thread_free = Take(cached.thread, &given_out);
  of.in_use = given_out;
  return of;
}

void AddUp(const SizeClassStatistics& of, Statistics* statistics) {
  statistics->in_use += of.in_use * of.object_bytes;
  statistics->thread_free += of.thread_free * of.object_bytes;
  statistics->cpu_free += of.cpu_free * of.object_bytes;
  statistics->transfer_free += of.transfer_free * of.object_bytes;
  statistics->central_free += of.external_bytes();
  statistics->untouched += of.untouched * of.object_bytes;
  statistics->most_internal += of.most_internal_bytes();
}

void AddUp(const PageHeapStats& pages, uint64_t small_bytes, Statistics* statistics) {
  statistics->mapped = pages.system.bytes();
  statistics->page_heap_free = (pages.free + pages.in_transit).bytes();
  statistics->page_heap_returned = pages.returned.bytes();
  statistics->spans = pages.spans;
  statistics->hard_limit_hits = pages.limit_hits;
  statistics->hard_limit_shrinks = pages.limit_shrinks;
  AddReleased(pages, statistics);
  statistics->large_in_use = Difference(pages.in_use().bytes(), small_bytes);
  statistics->in_use += statistics->large_in_use;
  uint64_t twice = Difference(small_bytes, pages.in_use().bytes());
  for (uint64_t* free : {&statistics->page_heap_free, &statistics->page_heap_returned}) {
    *free -= Take(*free, &twice);
  }
  // Only pages that moved from one class to another meanwhile can remain.
  statistics->mapped += twice;
}

}  // namespace tcmalloc
