// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "extension/release.h"

#include "allocator/slow_path.h"

namespace tcmalloc {

size_t ReleaseFreeMemory() {
  SlowPath slow_path;
  if (slow_path.reentrant()) return 0;
  heap.EnsureInitialized();
  return slow_path.Shed(Length::Max()).page_heap;
}

}  // namespace tcmalloc
