// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "upkeep/peak.h"

#include "heap/heap.h"

namespace tcmalloc {
namespace {

// Exact while no other thread is in the allocator.
PeakStats Now() {
  uint64_t cached = 0;
  heap.caches().ForEach([&cached](const Cache& cache) { cached += cache.CountBytes(); });
  uint64_t given_out = 0;
  uint64_t in_spans = 0;
  uint64_t untouched = 0;
  heap.lists().ForEach([&](uint8_t c, Transfer& transfer, Central& central) {
    const uint64_t size = kSizeClasses[c].size;
    cached += (heap.cpus().CountObjects(c) + transfer.stats().objects) * size;
    const CentralStats stats = central.stats();
    given_out += stats.allocated_objects * size;
    in_spans += stats.span_bytes;
    untouched += stats.untouched_objects * size;
  });
  const PageHeapStats pages = heap.page_heap().stats();
  const uint64_t in_use = pages.in_use().bytes() + given_out;
  const uint64_t committed = pages.committed().bytes();
  return {.committed = pages.committed(),
          .in_use = in_use - std::min(in_use, in_spans + cached),
          .physical = committed - std::min(committed, untouched) + heap.arena().stats().used_bytes};
}

}  // namespace

void Peak::Look() {
  if (!lock_.TryLock()) return;
  NoteLocked(Now());
  lock_.Unlock();
}

PeakStats Peak::Note(const PeakStats& now) {
  SpinLockHolder holder(lock_);
  NoteLocked(now);
  return peak_;
}

// Whoever reads statistics need not do so at a peak: within the step what is in use decides.
void Peak::NoteLocked(const PeakStats& now) {
  if (now.committed < peak_.committed) return;
  if (!IsDue(now.committed) && now.in_use <= peak_.in_use) return;
  peak_ = now;
  next_pages_.store((now.committed + StepAbove(now.committed)).pages(), std::memory_order_relaxed);
}

}  // namespace tcmalloc
