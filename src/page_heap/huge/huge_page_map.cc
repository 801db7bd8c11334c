// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/huge/huge_page_map.h"

#include <new>

namespace tcmalloc {

bool HugePageMap::Ensure(HugePage first, size_t n) {
  const uintptr_t end = first.index() + n;
  if ((end - 1) >> kBits != 0 || !EnsureNode(root_)) return false;
  for (uintptr_t i = first.index(); i < end; i = (i | (kLeafEntries - 1)) + 1) {
    if (!EnsureNode(root_->leaves[i >> kLeafBits])) return false;
  }
  return true;
}

HugePageTracker* HugePageMap::GetOrMake(HugePage page) {
  HugePageTracker*& entry =
      root_->leaves[page.index() >> kLeafBits]->trackers[page.index() & (kLeafEntries - 1)];
  if (entry != nullptr) return entry;
  void* memory = arena_.Allocate(sizeof(HugePageTracker), alignof(HugePageTracker));
  if (memory == nullptr) return nullptr;
  entry = new (memory) HugePageTracker();
  entry->hugepage = page;
  return entry;
}

}  // namespace tcmalloc
