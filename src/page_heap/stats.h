// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What a page heap can tell about itself.

#ifndef TCMALLOC_PAGE_HEAP_STATS_H_
#define TCMALLOC_PAGE_HEAP_STATS_H_

#include <cstddef>
#include <cstdint>

#include "pages/page_types.h"

namespace tcmalloc {

// system = in_use + free + returned + in_transit.
struct PageHeapStats {
  Length system;      // address space obtained and never given up
  Length free;        // not in use, may be resident
  Length returned;    // not in use, not resident: given back, or never touched
  Length in_transit;  // not in use, on the way from free to returned
  size_t spans = 0;   // records alive, whatever their state

  uint64_t commits = 0;           // times that returned pages came into use
  uint64_t growths = 0;           // blocks obtained from the system
  uint64_t growth_failures = 0;   // requests that the system refused
  uint64_t releases = 0;          // runs given back to the system
  uint64_t release_failures = 0;  // runs that the system did not take
  Length released;                // pages in all releases together
  uint64_t limit_hits = 0;        // requests that the limit did not allow at first

  Length in_use() const { return system - free - returned - in_transit; }
  // What may be resident: the heap's limit is on this.
  Length committed() const { return system - returned; }
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_STATS_H_
