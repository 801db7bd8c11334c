// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Writes records with stacks in the text formats of gperftools, which pprof reads.

#ifndef TCMALLOC_REPORT_STACK_PROFILE_H_
#define TCMALLOC_REPORT_STACK_PROFILE_H_

#include <cstdint>

#include "heap/observer.h"
#include "report/text_sink.h"

namespace tcmalloc {

struct HeapGrowth {
  uint64_t count = 0;  // of blocks obtained from the system
  uint64_t bytes = 0;  // of all of them
};

// Returns zeros if the slow path was interrupted.
HeapGrowth CurrentHeapGrowth();

// Write the records and the mappings of the process. Hold no lock while they write.
//
// What made the heap grow; in a library without profiles, one record without a stack.
void WriteGrowthProfile(TextSink& sink);
// The live samples. Returns false, with nothing written, in a library without profiles.
bool WriteHeapSample(TextSink& sink);

}  // namespace tcmalloc

#endif  // TCMALLOC_REPORT_STACK_PROFILE_H_
