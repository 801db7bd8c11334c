// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/mapped_object.h"

#include <sys/mman.h>

#include <cerrno>

#include "system/region_name.h"
#include "system/system_calls.h"

namespace tcmalloc {

void* MapZeroed(size_t bytes) {
  const int saved_errno = errno;
  void* memory = system_calls.mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory != MAP_FAILED) {
    // A hugepage would be resident as a whole.
    system_calls.madvise(memory, bytes, MADV_NOHUGEPAGE);
    NameRegion(memory, bytes, kMetadataName);
  }
  errno = saved_errno;
  return memory != MAP_FAILED ? memory : nullptr;
}

void UnmapZeroed(void* memory, size_t bytes) {
  const int saved_errno = errno;
  system_calls.munmap(memory, bytes);
  errno = saved_errno;
}

}  // namespace tcmalloc
