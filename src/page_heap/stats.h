// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The statistics of a page heap.

#ifndef TCMALLOC_PAGE_HEAP_STATS_H_
#define TCMALLOC_PAGE_HEAP_STATS_H_

#include <cstddef>
#include <cstdint>

#include "pages/page_types.h"

namespace tcmalloc {

// The reasons why pages went back to the system.
enum class ReleaseCause : uint8_t {
  kProgram,     // it asked for that
  kBackground,  // a thread that does the housekeeping found them due
  kSoftLimit,   // or memory pressure
  kHardLimit,
  kAllocator,  // threads that allocate and free do so too: by time and by rate
  kGrowth,     // likewise, to offset growth of the classic heap
};
inline constexpr size_t kReleaseCauseCount = static_cast<size_t>(ReleaseCause::kGrowth) + 1;

// Counts of events since the start.
struct PageHeapEvents {
  uint64_t commits = 0;                     // times that returned pages came into use
  uint64_t growths = 0;                     // blocks obtained from the system
  uint64_t growth_failures = 0;             // requests that the system refused
  uint64_t releases = 0;                    // runs given back to the system
  uint64_t release_failures = 0;            // runs that the system did not take
  Length released_for[kReleaseCauseCount];  // pages of all releases, by ReleaseCause
  uint64_t limit_hits = 0;                  // times that the limit did not allow a request at first
  uint64_t limit_shrinks = 0;               // of these, times that a release made it fit

  Length released(ReleaseCause cause) const { return released_for[static_cast<size_t>(cause)]; }
  Length released() const {
    Length sum;
    for (const Length pages : released_for) sum += pages;
    return sum;
  }
};

// system = in_use + free + returned + in_transit.
struct PageHeapStats : PageHeapEvents {
  Length system;      // address space obtained and never given up
  Length free;        // not in use, may be resident
  Length returned;    // not in use, not resident: given back, or never touched
  Length in_transit;  // not in use, on the way from free to returned
  size_t spans = 0;   // records alive, whatever their state

  Length in_use() const { return system - free - returned - in_transit; }
  // Pages that may be resident. The heap's limit bounds this figure.
  Length committed() const { return system - returned; }
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_STATS_H_
