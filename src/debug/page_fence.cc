// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/page_fence.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/bits.h"
#include "debug/fences.h"
#include "system/auxv.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

constinit std::atomic<int> fenced_blocks{0};

int Protection(bool readable) { return readable ? PROT_READ : PROT_NONE; }

bool Map(size_t size, size_t alignment, bool readable, BlockRecord* block) {
  const size_t page = KernelPageSize();
  alignment = std::max<size_t>(alignment, 16);
  size_t total = 0;
  if (!CheckedAlignUp(size + kFrontBytes + alignment, page, &total)) return false;
  const int saved_errno = errno;
  void* memory = system_calls.mmap(nullptr, total + page, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  bool mapped = memory != MAP_FAILED;
  if (mapped) {
    char* base = static_cast<char*>(memory);
    if (system_calls.mprotect(base + total, page, Protection(readable)) != 0) {
      system_calls.munmap(base, total + page);
      mapped = false;
    } else {
      const uintptr_t end = reinterpret_cast<uintptr_t>(base) + total;
      block->SetPlace(base, total, reinterpret_cast<char*>((end - size) & ~(alignment - 1)));
      block->paged = true;
    }
  }
  errno = saved_errno;
  return mapped;
}

}  // namespace

bool MapFenced(size_t size, size_t alignment, bool readable, BlockRecord* block) {
  if (fenced_blocks.fetch_add(1, std::memory_order_relaxed) < kMostFenced &&
      Map(size, alignment, readable, block)) {
    return true;
  }
  fenced_blocks.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

bool ForbidFenced(const BlockRecord& block, bool readable) {
  const int saved_errno = errno;
  const bool done = system_calls.mprotect(block.base(), block.total, Protection(readable)) == 0;
  errno = saved_errno;
  return done && !readable;
}

void UnmapFenced(const BlockRecord& block) {
  const int saved_errno = errno;
  system_calls.munmap(block.base(), block.total + KernelPageSize());
  fenced_blocks.fetch_sub(1, std::memory_order_relaxed);
  errno = saved_errno;
}

}  // namespace tcmalloc
