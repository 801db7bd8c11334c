// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What the allocator knows of itself, gathered from every layer.

#ifndef TCMALLOC_EXTENSION_STATISTICS_H_
#define TCMALLOC_EXTENSION_STATISTICS_H_

#include <cstddef>
#include <cstdint>

namespace tcmalloc {

// In bytes unless said otherwise. Exact while no other thread is in the allocator, else each number
// is right for a moment of its own.
struct Statistics {
  uint64_t mapped = 0;  // address space obtained for the heap
  uint64_t peak_mapped = 0;
  uint64_t in_use = 0;              // by the application, rounded up to size classes and pages
  uint64_t page_heap_free = 0;      // free spans that may be resident
  uint64_t page_heap_returned = 0;  // free spans that are not
  uint64_t central_free = 0;        // objects of central free lists, and what spans cannot use
  uint64_t untouched = 0;           // objects of central free lists that have no memory yet
  uint64_t transfer_free = 0;
  uint64_t thread_free = 0;
  uint64_t cpu_free = 0;
  uint64_t metadata = 0;
  uint64_t spans = 0;              // count
  uint64_t thread_caches = 0;      // count
  uint64_t cpu_caches = 0;         // count, that were ever used
  uint64_t hard_limit = 0;         // 0: none
  uint64_t soft_limit = 0;         // 0: none
  uint64_t hard_limit_hits = 0;    // count: requests that it did not allow at first
  uint64_t soft_limit_hits = 0;    // count: times that memory was shed because of it
  uint64_t pressure_hits = 0;      // count: times that memory was shed under memory pressure
  uint64_t shed_by_caches = 0;     // ever, because of any limit; to the page heap
  uint64_t shed_by_transfer = 0;   // likewise
  uint64_t shed_by_page_heap = 0;  // because of the soft limit or pressure; to the system
  uint64_t longest_pause_ns = 0;   // that release by time took from an allocating thread
  uint64_t allocated = 0;          // ever
  uint64_t allocations = 0;        // ever; count, estimated

  // What the system gave that is not known to be without physical memory.
  uint64_t physical() const { return mapped - page_heap_returned - untouched + metadata; }
};

Statistics CurrentStatistics();

// Of one size class, in objects.
struct SizeClassStatistics {
  size_t object_bytes = 0;
  size_t spans = 0;
  size_t in_use = 0;
  size_t central_free = 0;  // those that were never carved included
  size_t transfer_free = 0;
  size_t thread_free = 0;
  size_t cpu_free = 0;
};

SizeClassStatistics CurrentSizeClassStatistics(uint8_t size_class);

}  // namespace tcmalloc

#endif  // TCMALLOC_EXTENSION_STATISTICS_H_
