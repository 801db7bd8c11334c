// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "extension/statistics.h"

#include <algorithm>

#include "heap/heap.h"

namespace tcmalloc {
namespace {

// Numbers of other threads change while they are added up.
uint64_t Difference(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

// So much of `amount` as is left.
uint64_t Take(uint64_t amount, uint64_t* left) {
  const uint64_t taken = std::min(amount, *left);
  *left -= taken;
  return taken;
}

void CountCaches(Statistics* statistics) {
  heap.caches().ForEach([&](const Cache& cache) {
    ++statistics->thread_caches;
    cache.ForEachCount(
        [&](uint8_t c, size_t objects) { statistics->classes[c].thread_free += objects; });
  });
  const CpuCacheStats cpus = heap.cpus().stats();
  statistics->cpu_caches = cpus.slabs;
  const AllocationTotals allocated = heap.caches().allocated();
  statistics->allocated = allocated.bytes + cpus.allocated.bytes;
  statistics->allocations = allocated.allocations + cpus.allocated.allocations;
}

// Completes what CountCaches began.
void CountSizeClass(uint8_t c, SizeClassStatistics* of) {
  const CentralStats central = heap.central(c).stats();
  of->object_bytes = kSizeClasses[c].size;
  of->least_bytes = c == 1 ? 0 : kSizeClasses[c - 1].size + 1;
  of->spans = central.spans;
  of->span_bytes = central.span_bytes;
  of->untouched = central.untouched_objects;
  of->central_free = central.free_objects + central.uncarved_objects - central.untouched_objects;
  uint64_t given_out = central.allocated_objects;
  of->transfer_free = Take(heap.transfer(c).stats().objects, &given_out);
  of->cpu_free = Take(heap.cpus().CountObjects(c), &given_out);
  of->thread_free = Take(of->thread_free, &given_out);
  of->in_use = given_out;
}

// Returns the bytes of all spans of small objects.
uint64_t AddUpSizeClasses(Statistics* statistics) {
  uint64_t span_bytes = 0;
  for (size_t i = 1; i < kSizeClassCount; ++i) {
    SizeClassStatistics& of = statistics->classes[i];
    CountSizeClass(static_cast<uint8_t>(i), &of);
    statistics->in_use += of.in_use * of.object_bytes;
    statistics->thread_free += of.thread_free * of.object_bytes;
    statistics->cpu_free += of.cpu_free * of.object_bytes;
    statistics->transfer_free += of.transfer_free * of.object_bytes;
    statistics->central_free += of.external_bytes();
    statistics->untouched += of.untouched * of.object_bytes;
    statistics->most_internal += of.most_internal_bytes();
    span_bytes += of.span_bytes;
  }
  return span_bytes;
}

void AddPageHeap(uint64_t small_bytes, Statistics* statistics) {
  const PageHeapStats pages = heap.page_heap().stats();
  statistics->mapped = pages.system.bytes();
  statistics->page_heap_free = (pages.free + pages.in_transit).bytes();
  statistics->page_heap_returned = pages.returned.bytes();
  statistics->spans = pages.spans;
  statistics->hard_limit_hits = pages.limit_hits;
  statistics->large_in_use = Difference(pages.in_use().bytes(), small_bytes);
  statistics->in_use += statistics->large_in_use;
  // Spans that went back to the page heap after they had been counted are free by now.
  uint64_t twice = Difference(small_bytes, pages.in_use().bytes());
  for (uint64_t* free : {&statistics->page_heap_free, &statistics->page_heap_returned}) {
    *free -= Take(*free, &twice);
  }
  statistics->mapped += twice;
}

void AddLimits(Statistics* statistics) {
  statistics->hard_limit = heap.page_heap().limit().bytes();
  const LimitStats limits = heap.limits().stats();
  statistics->soft_limit = limits.soft_limit;
  statistics->soft_limit_hits = limits.soft_hits;
  statistics->pressure_hits = limits.pressure_hits;
  statistics->shed_by_caches = limits.shed.caches;
  statistics->shed_by_transfer = limits.shed.transfer;
  statistics->shed_by_page_heap = limits.shed.page_heap;
}

}  // namespace

Statistics CurrentStatistics() {
  heap.EnsureInitialized();
  Statistics statistics;
  CountCaches(&statistics);
  AddPageHeap(AddUpSizeClasses(&statistics), &statistics);
  AddLimits(&statistics);
  statistics.peak_mapped = heap.memory().stats().peak_bytes;
  statistics.metadata = heap.arena().stats().used_bytes;
  statistics.longest_pause_ns = heap.housekeeping().stats().longest_pause_ns;
  return statistics;
}

}  // namespace tcmalloc
