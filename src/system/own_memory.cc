// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/own_memory.h"

#include <sys/mman.h>

#include <cerrno>

#include "base/bits.h"
#include "system/auxv.h"
#include "system/region_name.h"
#include "system/system_calls.h"

namespace tcmalloc {

constinit OwnBytes own_bytes;

void* MapZeroed(size_t bytes) {
  void* memory = MapSparse(bytes);
  if (memory != nullptr) own_bytes.Add(AlignUp(bytes, KernelPageSize()));
  return memory;
}

void UnmapZeroed(void* memory, size_t bytes) {
  UnmapSparse(memory, bytes);
  own_bytes.Remove(AlignUp(bytes, KernelPageSize()));
}

void* MapSparse(size_t bytes, Hugepages hugepages) {
  const int saved_errno = errno;
  void* memory = system_calls.mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory != MAP_FAILED) {
    if (hugepages == Hugepages::kNone) system_calls.madvise(memory, bytes, MADV_NOHUGEPAGE);
    NameRegion(memory, bytes, kMetadataName);
  }
  errno = saved_errno;
  return memory != MAP_FAILED ? memory : nullptr;
}

void UnmapSparse(void* memory, size_t bytes) {
  const int saved_errno = errno;
  system_calls.munmap(memory, bytes);
  errno = saved_errno;
}

size_t own_memory_internal::Use(std::atomic<uint64_t>* words, size_t begin, size_t end) {
  const size_t page = KernelPageSize();
  size_t fresh = 0;
  for (size_t i = begin / page; i * page < end; ++i) {
    std::atomic<uint64_t>& word = words[i / kBits];
    const uint64_t bit = uint64_t{1} << i % kBits;
    if ((word.load(std::memory_order_relaxed) & bit) != 0) continue;
    if ((word.fetch_or(bit, std::memory_order_relaxed) & bit) == 0) fresh += page;
  }
  return fresh;
}

}  // namespace tcmalloc
