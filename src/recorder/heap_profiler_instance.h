// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The recorder and the heap profiler of this process.

#ifndef TCMALLOC_RECORDER_HEAP_PROFILER_INSTANCE_H_
#define TCMALLOC_RECORDER_HEAP_PROFILER_INSTANCE_H_

#include "heap/heap.h"
#include "recorder/heap_profiler.h"
#include "recorder/recorder.h"

namespace tcmalloc {

extern constinit Recorder recorder;
extern constinit HeapProfiler heap_profiler;

// Returns true if the options ask for mappings in the profile.
inline bool RecordsMappings() {
  return heap.options().heap_profiler_mmap || heap.options().heap_profiler_only_mmap;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_RECORDER_HEAP_PROFILER_INSTANCE_H_
