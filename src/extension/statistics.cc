// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "extension/statistics.h"

#include "heap/heap.h"

namespace tcmalloc {
namespace {

// Numbers of other threads change while they are added up.
uint64_t Difference(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

}  // namespace

SizeClassStatistics CurrentSizeClassStatistics(uint8_t size_class) {
  SizeClassStatistics result;
  result.object_bytes = kSizeClasses[size_class].size;
  const CentralStats central = heap.central(size_class).stats();
  result.spans = central.spans;
  result.central_free = central.free_objects + central.uncarved_objects;
  result.transfer_free = heap.transfer(size_class).stats().objects;
  heap.caches().ForEach(
      [&](const Cache& cache) { result.thread_free += cache.CountObjects(size_class); });
  result.cpu_free = heap.cpus().CountObjects(size_class);
  result.in_use = Difference(central.allocated_objects,
                             result.transfer_free + result.thread_free + result.cpu_free);
  return result;
}

Statistics CurrentStatistics() {
  heap.EnsureInitialized();
  Statistics result;
  for (size_t i = 1; i < kSizeClassCount; ++i) {
    const auto c = static_cast<uint8_t>(i);
    const size_t size = kSizeClasses[c].size;
    const CentralStats central = heap.central(c).stats();
    const size_t untouched = central.untouched_objects * size;
    result.central_free += central.span_bytes - central.allocated_objects * size - untouched;
    result.untouched += untouched;
    result.transfer_free += heap.transfer(c).stats().objects * size;
  }
  const ThreadCachesStats caches = heap.caches().stats();
  result.thread_caches = caches.caches;
  result.thread_free = caches.cached_bytes;
  const CpuCacheStats cpus = heap.cpus().stats();
  result.cpu_caches = cpus.slabs;
  result.cpu_free = cpus.cached_bytes;
  result.allocated = caches.allocated.bytes + cpus.allocated.bytes;
  result.allocations = caches.allocated.allocations + cpus.allocated.allocations;

  result.longest_pause_ns = heap.housekeeping().stats().longest_pause_ns;

  const PageHeapStats pages = heap.page_heap().stats();
  result.mapped = pages.system.bytes();
  result.peak_mapped = heap.memory().stats().peak_bytes;
  result.page_heap_free = (pages.free + pages.in_transit).bytes();
  result.page_heap_returned = pages.returned.bytes();
  result.spans = pages.spans;
  result.hard_limit = heap.page_heap().limit().bytes();
  result.hard_limit_hits = pages.limit_hits;
  const LimitStats limits = heap.limits().stats();
  result.soft_limit = limits.soft_limit;
  result.soft_limit_hits = limits.soft_hits;
  result.pressure_hits = limits.pressure_hits;
  result.shed_by_caches = limits.shed.caches;
  result.shed_by_transfer = limits.shed.transfer;
  result.shed_by_page_heap = limits.shed.page_heap;
  result.metadata = heap.arena().stats().used_bytes;
  result.in_use = Difference(pages.in_use().bytes(), result.untouched + result.central_free +
                                                         result.transfer_free + result.thread_free +
                                                         result.cpu_free);
  return result;
}

}  // namespace tcmalloc
