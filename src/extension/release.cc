// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "extension/release.h"

#include "allocator/slow_path.h"

namespace tcmalloc {

size_t ReleaseFreeMemory() {
  SlowPath slow_path;
  if (slow_path.reentrant()) return 0;
  heap.EnsureInitialized();
  if (slow_path.cache() != nullptr) slow_path.cache()->Flush();
  for (size_t c = 1; c < kSizeClassCount; ++c) heap.transfer(static_cast<uint8_t>(c)).Drain();
  return heap.page_heap().ReleaseAtLeast(Length::Max()).bytes();
}

}  // namespace tcmalloc
