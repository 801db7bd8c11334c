// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The statistics of the huge page heap about hugepages.

#ifndef TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_STATS_H_
#define TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_STATS_H_

#include <cstddef>
#include <cstdint>

#include "pages/page_types.h"
#include "system/transparent_hugepages.h"

namespace tcmalloc {

// The hugepages that spans share. The hugepages of long spans are a matter between the program and
// the kernel.
struct HugePageStats {
  TransparentHugepages setting;

  size_t shared = 0;       // now, in the filler
  size_t regions = 0;      // now
  Length backed_used;      // gained: in use, in hugepages believed to be backed by one page each
  Length backed_unused;    // wasted: not in use, in the same
  size_t small_paged = 0;  // hugepages that the kernel is told to leave alone now

  uint64_t asked_for = 0;        // hugepages that the kernel was told to back by one page
  uint64_t advice_failures = 0;  // what it did not take
  uint64_t collapses = 0;        // hugepages that were made of pages in use
  uint64_t collapse_failures = 0;
  uint64_t broken = 0;  // hugepages of which a part was given back
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_STATS_H_
