// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The statistics of the allocator, as plain figures. fields.h gives the name and the meaning of
// each; current_statistics.h gathers them.

#ifndef TCMALLOC_REPORT_STATISTICS_H_
#define TCMALLOC_REPORT_STATISTICS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "size_class/size_classes.h"

namespace tcmalloc {

// The statistics of one size class, in objects unless said otherwise:
//
//     span_bytes = object_bytes * (in_use + thread_free + cpu_free + transfer_free + central_free +
//                                  untouched) + the ends of spans that are too short for an object
struct SizeClassStatistics {
  uint64_t object_bytes = 0;
  uint64_t least_bytes = 0;  // that are asked for where no smaller class would do
  uint64_t spans = 0;        // count
  uint64_t span_bytes = 0;
  uint64_t in_use = 0;
  uint64_t thread_free = 0;
  uint64_t cpu_free = 0;
  uint64_t transfer_free = 0;
  uint64_t central_free = 0;
  uint64_t untouched = 0;  // of the central free list as well, but without memory yet

  // Objects in caches or free lists, with memory.
  uint64_t free() const { return thread_free + cpu_free + transfer_free + central_free; }
  // Bytes of its spans that hold no object.
  uint64_t tail_bytes() const { return span_bytes - object_bytes * (in_use + free() + untouched); }
  // Bytes with memory that only this class can use until their spans are empty.
  uint64_t external_bytes() const { return object_bytes * central_free + tail_bytes(); }
  // A bound of the unused bytes in objects in use, whose true number is not known. Blocks that are
  // aligned to more than their size requires, or that shrank in place, may exceed it.
  uint64_t most_internal_bytes() const { return (object_bytes - least_bytes) * in_use; }
};

// Counts bytes unless a comment names another unit. The sums hold at any time:
//
//     mapped = in_use + page_heap_free + page_heap_returned + central_free + transfer_free +
//              thread_free + cpu_free + untouched
//     in_use = large_in_use + the sum over all size classes of in_use * object_bytes
//
// Exact while no other thread is in the allocator. Otherwise the parts are of different moments,
// and memory that would be counted twice for that reason is subtracted from the memory in use or
// free.
struct Statistics {
  uint64_t mapped = 0;  // address space obtained for the heap
  uint64_t peak_mapped = 0;
  uint64_t peak_in_use = 0;         // when the heap held the most: see Peak
  uint64_t peak_physical = 0;       // then
  uint64_t in_use = 0;              // by the application, rounded up to size classes and pages
  uint64_t large_in_use = 0;        // of these, in spans of their own
  uint64_t page_heap_free = 0;      // free spans that may be resident
  uint64_t page_heap_returned = 0;  // free spans that are not
  uint64_t central_free = 0;        // objects of central free lists, and what spans cannot use
  uint64_t untouched = 0;           // objects of central free lists that have no memory yet
  uint64_t transfer_free = 0;
  uint64_t thread_free = 0;
  uint64_t cpu_free = 0;
  uint64_t metadata = 0;
  uint64_t most_internal = 0;       // sum over all size classes
  uint64_t spans = 0;               // count
  uint64_t thread_caches = 0;       // count
  uint64_t cpu_caches = 0;          // count, that were ever used
  uint64_t hard_limit = 0;          // 0: none
  uint64_t soft_limit = 0;          // 0: none
  uint64_t hard_limit_hits = 0;     // count: requests that it did not allow at first
  uint64_t hard_limit_shrinks = 0;  // count: of these, times that releasing memory made room
  uint64_t soft_limit_hits = 0;     // count: times that memory was shed because of it
  uint64_t soft_limit_shrinks = 0;  // count: of these, times that the heap was within it then
  uint64_t pressure_hits = 0;       // count: times that memory was shed under memory pressure
  uint64_t shed_by_caches = 0;      // ever, because of any limit; to the page heap
  uint64_t shed_by_transfer = 0;    // likewise
  uint64_t shed_by_page_heap = 0;   // because of the soft limit or pressure; to the system
  uint64_t released = 0;  // ever, to the system; the sum of shed_by_page_heap and of what follows
  uint64_t released_for_program = 0;
  uint64_t released_in_background = 0;
  uint64_t released_for_hard_limit = 0;
  uint64_t released_by_allocator = 0;
  uint64_t longest_pause_ns = 0;  // that release by time took from an allocating thread
  uint64_t allocated = 0;         // ever; at least in_use
  uint64_t allocations = 0;       // ever; count, estimated

  // Memory from the system, except the part that is known to have no physical memory.
  uint64_t physical() const { return mapped - page_heap_returned - untouched + metadata; }
};

// The statistics of all size classes, by class; entry 0 is not used. Too large for the stack of a
// small thread.
using AllSizeClassStatistics = std::array<SizeClassStatistics, kSizeClassCount>;

}  // namespace tcmalloc

#endif  // TCMALLOC_REPORT_STATISTICS_H_
