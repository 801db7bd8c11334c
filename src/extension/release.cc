// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "extension/release.h"

#include "allocator/slow_path.h"

namespace tcmalloc {

size_t ReleaseFreeMemory() {
  SlowPath slow_path(SlowPath::Patient{});
  if (slow_path.reentrant()) return 0;
  heap.EnsureInitialized();
  // Counted over all stages, because with aggressive decommit spans go as the caches give them up.
  const auto released = [] { return heap.page_heap().stats().released(); };
  const Length before = released();
  slow_path.Shed(Length::Max(), ReleaseCause::kProgram);
  return (released() - before).bytes();
}

size_t ReleaseFreeSpans(size_t bytes) {
  SlowPath slow_path(SlowPath::Patient{});
  if (slow_path.reentrant() || bytes == 0) return 0;
  heap.EnsureInitialized();
  const bool all = bytes > Length::Max().bytes();
  return heap.page_heap()
      .ReleaseAtLeast(all ? Length::Max() : Length::FromBytesCeil(bytes))
      .bytes();
}

void FlushThreadCache() {
  SlowPath slow_path(SlowPath::Patient{});
  if (!slow_path.reentrant()) slow_path.FlushOwnCache();
}

}  // namespace tcmalloc
