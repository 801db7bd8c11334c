// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Writes the growth of the heap in the text format that pprof reads.

#ifndef TCMALLOC_REPORT_GROWTH_PROFILE_H_
#define TCMALLOC_REPORT_GROWTH_PROFILE_H_

#include <cstdint>

#include "report/text_sink.h"

namespace tcmalloc {

struct HeapGrowth {
  uint64_t count = 0;  // of blocks obtained from the system
  uint64_t bytes = 0;  // of all of them
};

// Returns zeros if the slow path was interrupted.
HeapGrowth CurrentHeapGrowth();

// Writes one record without a stack, because no stacks are taken here, and the mappings of the
// process. Holds no lock while it writes.
void WriteGrowthProfile(TextSink& sink);

}  // namespace tcmalloc

#endif  // TCMALLOC_REPORT_GROWTH_PROFILE_H_
