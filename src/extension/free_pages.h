// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Free runs of pages by their length.

#ifndef TCMALLOC_EXTENSION_FREE_PAGES_H_
#define TCMALLOC_EXTENSION_FREE_PAGES_H_

#include <cstddef>
#include <cstdint>

#include "pages/page_types.h"

namespace tcmalloc {

// What is free in runs of one length, or of all lengths above.
struct FreeRuns {
  uint64_t count = 0;
  Length with_memory;  // that may be resident
  Length without;
};

struct FreePages {
  // Runs of up to so many pages have an entry for each length.
  static constexpr size_t kListed = 128;

  FreeRuns of_length[kListed + 1];  // entry 0 is not used
  FreeRuns longer;
};

void CountFreePages(FreePages* pages);

}  // namespace tcmalloc

#endif  // TCMALLOC_EXTENSION_FREE_PAGES_H_
