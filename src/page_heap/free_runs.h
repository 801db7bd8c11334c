// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Counts runs of unused pages by their length.

#ifndef TCMALLOC_PAGE_HEAP_FREE_RUNS_H_
#define TCMALLOC_PAGE_HEAP_FREE_RUNS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "pages/page_types.h"

namespace tcmalloc {

// The free memory in runs of one length, or of all greater lengths.
struct FreeRuns {
  uint64_t count = 0;
  Length with_memory;  // that may be resident
  Length without;
};

struct FreeRunCounts {
  // Runs of up to this many pages have an entry for each length.
  static constexpr size_t kListed = 127;

  FreeRuns of_length[kListed + 1];  // entry 0 is not used
  FreeRuns longer;
  // The most records that were looked at in one hold of the page heap's lock. It bounds the time
  // that other threads waited.
  size_t most_at_once = 0;

  // Adds runs of `n` pages each. `memory` selects their kind.
  void Add(Length n, uint64_t count, Length FreeRuns::* memory) {
    FreeRuns& runs = n <= Length(kListed) ? of_length[n.pages()] : longer;
    runs.count += count;
    runs.*memory += Length(n.pages() * count);
  }
  void NoteHold(size_t records) { most_at_once = std::max(most_at_once, records); }
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_FREE_RUNS_H_
