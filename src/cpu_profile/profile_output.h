// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Writes CPU profiles to files.

#ifndef TCMALLOC_CPU_PROFILE_PROFILE_OUTPUT_H_
#define TCMALLOC_CPU_PROFILE_PROFILE_OUTPUT_H_

#include <cstdint>

#include "cpu_profile/stack_counts.h"
#include "profile_format/byte_sink.h"

namespace tcmalloc {

struct CpuProfileFacts {
  int frequency = 100;   // samples per second
  bool wall = false;     // of wall-clock time, not CPU time
  int64_t begin_ns = 0;  // since 1970
  int64_t duration_ns = 0;
};

// Makes the name of the file of this process from one that several share: _ and the process number
// are appended, or come before .pb.gz. `to` has room for kPathCapacity. A name that would be too
// long stays.
void NameForProcess(const char* path, char* to);

// Writes profile.proto. Returns false if there was no memory for all of it.
bool WriteCpuProto(ByteSink& out, const CpuProfileFacts& facts, const StackCounts& counts);

// Writes a file, as profile.proto if `proto` is true or the name ends in .pb.gz, and else in the
// format of gperftools. Reports a failure in one line, and returns false.
bool WriteCpuProfileFile(const char* path, bool proto, const CpuProfileFacts& facts,
                         const StackCounts& counts);

}  // namespace tcmalloc

#endif  // TCMALLOC_CPU_PROFILE_PROFILE_OUTPUT_H_
