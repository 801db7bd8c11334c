// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Names for the allocator's mappings, which the kernel shows to people.

#ifndef TCMALLOC_SYSTEM_REGION_NAME_H_
#define TCMALLOC_SYSTEM_REGION_NAME_H_

#include <cstddef>

namespace tcmalloc {

// Names that /proc/PID/smaps shows for the allocator's mappings.
inline constexpr char kHeapName[] = "tcmalloc heap";
inline constexpr char kMetadataName[] = "tcmalloc metadata";

// Makes `name`, which must be a constant, visible in /proc/PID/smaps if the kernel can. Failures
// are ignored, because this is only a convenience. A kernel that cannot is asked only once.
void NameRegion(void* start, size_t bytes, const char* name);

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_REGION_NAME_H_
