// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// One line on stderr for each call of mmap and its kin, in gperftools' words.

#ifndef TCMALLOC_RECORDER_MAPPING_LOG_H_
#define TCMALLOC_RECORDER_MAPPING_LOG_H_

#include <sys/types.h>

#include <cstddef>

namespace tcmalloc {

// Arguments of the calls.
struct MmapCall {
  const void* start;
  size_t bytes;
  int protection;
  int flags;
  int fd;
  off_t offset;
};
struct MremapCall {
  const void* old_start;
  size_t old_bytes;
  size_t new_bytes;
  int flags;
  const void* new_start;
};

void LogMmap(const void* result, const MmapCall& call);
void LogMunmap(const void* start, size_t bytes);
void LogMremap(const void* result, const MremapCall& call);
void LogSbrk(const void* result, ptrdiff_t increment);

}  // namespace tcmalloc

#endif  // TCMALLOC_RECORDER_MAPPING_LOG_H_
