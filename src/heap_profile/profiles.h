// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Everything that is recorded for profiles.

#ifndef TCMALLOC_HEAP_PROFILE_PROFILES_H_
#define TCMALLOC_HEAP_PROFILE_PROFILES_H_

#include <atomic>
#include <cstdint>

#include "central/sampled_objects.h"
#include "heap/heap.h"
#include "heap_profile/growth_log.h"
#include "heap_profile/peak_samples.h"
#include "heap_profile/sample_log.h"
#include "heap_profile/sample_table.h"
#include "heap_profile/sampled_hooks.h"
#include "heap_profile/samples_in_place.h"
#include "heap_profile/stack_table.h"

namespace tcmalloc {

// The tables are apart from the rest, all zero, so that they lie in .bss.
extern constinit StackTable stack_table;
extern constinit SampleTable sample_table;

// The parts that watch and follow samples. constinit and trivially destructible: usable before the
// first constructor and after the last destructor.
struct Profiles {
  SampledObjects<PageHeaps> objects{heap.page_heaps(), heap.page_map(), heap.arena()};
  SamplesInPlace in_place{sample_table, heap.page_map()};
  PeakSamples peak{sample_table, stack_table};
  SampleLog allocated{stack_table};  // samples since there are users
  SampleLog freed{stack_table};      // likewise, of blocks that were freed
  GrowthLog growths{stack_table};
  SampledHooks hooks{stack_table};
  std::atomic<uint64_t> kept_bytes{0};  // of twins of samples
};

extern constinit Profiles profiles;

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_PROFILES_H_
