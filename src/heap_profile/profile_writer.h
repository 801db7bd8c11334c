// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Writes collected profiles.

#ifndef TCMALLOC_HEAP_PROFILE_PROFILE_WRITER_H_
#define TCMALLOC_HEAP_PROFILE_PROFILE_WRITER_H_

#include "heap_profile/collected_profile.h"
#include "profile_format/byte_sink.h"

namespace tcmalloc {

// Writes a profile as compressed profile.proto. Returns false if there was no memory for all of it.
[[nodiscard]] bool WriteProto(const CollectedProfile& profile, ByteSink& out);

// Writes a profile of the live samples to a file, in the format that its name and the options
// choose. Prints one line if that fails. Allocates nothing from the heap.
bool WriteHeapProfileFile(const char* path);
// Writes a profile of any kind, likewise. Lifetimes and fragmentation have no text.
bool WriteProfileFile(const CollectedProfile& profile, const char* path);
// Writes what made the heap grow, likewise.
bool WriteGrowthProfileFile(const char* path);

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_PROFILE_WRITER_H_
