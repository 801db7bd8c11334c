// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "report/current_statistics.h"

#include <algorithm>

#include "heap/heap.h"
#include "heap/observer.h"
#include "report/statistics_sums.h"

namespace tcmalloc {
namespace {

// Computes the statistics of one class, of which `in_threads` objects are in caches of threads.
SizeClassStatistics OfClass(uint8_t c, uint64_t in_threads) {
  CachedObjects cached{.thread = in_threads, .cpu = heap.cpus().CountObjects(c)};
  CentralStats central;
  if (Transfer* transfer = heap.lists().Find(c)) {
    cached.transfer = transfer->stats().objects;
    central = heap.lists().central(c).stats();
  }
  return CombineSizeClass(c, central, cached);
}

// Adds the spans of small objects that are samples. Returns their bytes.
uint64_t AddSampled(Statistics* statistics) {
  const SampledMemory sampled = CountSampledMemory();
  statistics->in_use += sampled.in_use_bytes;
  statistics->central_free += sampled.span_bytes - sampled.in_use_bytes;
  return sampled.span_bytes;
}

// Returns the bytes of all spans of small objects.
uint64_t AddSizeClasses(Statistics* statistics, AllSizeClassStatistics* classes) {
  uint64_t in_threads[kSizeClassCount] = {};
  heap.caches().ForEach([&](const Cache& cache) {
    cache.ForEachCount([&](uint8_t c, size_t objects) { in_threads[c] += objects; });
  });
  statistics->thread_caches = heap.caches().count();
  uint64_t span_bytes = 0;
  for (size_t i = 1; i < kSizeClassCount; ++i) {
    const auto c = static_cast<uint8_t>(i);
    const SizeClassStatistics of = OfClass(c, in_threads[c]);
    AddUp(of, statistics);
    span_bytes += of.span_bytes;
    if (classes != nullptr) (*classes)[c] = of;
  }
  return span_bytes;
}

void AddTotals(Statistics* statistics) {
  const CpuCacheStats cpus = heap.cpus().stats();
  AllocationTotals allocated = heap.caches().allocated();
  allocated.Add(cpus.allocated);
  statistics->cpu_caches = cpus.slabs;
  const LargeTotals& large = heap.large_totals();
  // Small blocks count with the size asked for, so that more may be in use than was asked for.
  statistics->allocated = std::max(allocated.bytes + large.bytes(), statistics->in_use);
  statistics->allocations = allocated.allocations() + large.blocks();
  statistics->peak_mapped = heap.memory().stats().peak_bytes;
  statistics->metadata = heap.CountMetadata();
  statistics->longest_pause_ns = heap.housekeeping().stats().longest_pause_ns;
}

// Parts of the emergency arena without blocks give their pages back.
void AddEmergency(Statistics* statistics) {
  const EmergencyStats stats = heap.emergency().stats();
  statistics->in_use += stats.in_use;
  statistics->mapped += std::max(stats.mapped, stats.in_use);
  statistics->page_heap_returned += stats.mapped - std::min(stats.mapped, stats.in_use);
}

void AddPeak(Length committed, Statistics* statistics) {
  const PeakStats peak = heap.peak().Note({committed, statistics->in_use, statistics->physical()});
  statistics->peak_in_use = peak.in_use;
  statistics->peak_physical = peak.physical;
}

void AddLimits(Statistics* statistics) {
  statistics->hard_limit = heap.page_heap().limit().bytes();
  const LimitStats limits = heap.limits().stats();
  statistics->soft_limit = limits.soft_limit;
  statistics->soft_limit_hits = limits.soft_hits;
  statistics->pressure_hits = limits.pressure_hits;
  statistics->soft_limit_shrinks = limits.soft_shrinks;
  statistics->shed_by_caches = limits.shed_caches;
  statistics->shed_by_transfer = limits.shed_transfer;
}

}  // namespace

const Statistics& Moment::statistics() {
  if (!statistics_) statistics_ = CurrentStatistics(nullptr, &pages_.emplace());
  return *statistics_;
}

const PageHeapStats& Moment::pages() {
  if (!pages_) pages_ = heap.page_heap().stats();
  return *pages_;
}

Statistics CurrentStatistics(AllSizeClassStatistics* classes, PageHeapStats* pages_out) {
  heap.EnsureInitialized();
  Statistics statistics;
  const uint64_t small_bytes = AddSizeClasses(&statistics, classes) + AddSampled(&statistics);
  const PageHeapStats pages = heap.page_heap().stats();
  if (pages_out != nullptr) *pages_out = pages;
  AddUp(pages, small_bytes, &statistics);
  AddEmergency(&statistics);
  AddTotals(&statistics);
  AddPeak(pages.committed(), &statistics);
  AddLimits(&statistics);
  return statistics;
}

}  // namespace tcmalloc
