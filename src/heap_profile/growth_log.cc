// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/growth_log.h"

namespace tcmalloc {

void GrowthLog::Add(size_t bytes, StackId stack) {
  const uint32_t next = used_.load(std::memory_order_relaxed);
  const bool fits = next < kMostGrowths;
  const uint32_t index = fits ? used_.fetch_add(1, std::memory_order_relaxed) : kMostGrowths;
  const uint32_t kept = std::min(index, kMostGrowths - 1);
  const bool has_place = growths_.Ensure(kept);
  if (stack != 0 && (!has_place || index >= kMostGrowths)) stacks_.Release(stack);
  if (!has_place) return;
  Growth& growth = growths_[kept];
  if (index < kMostGrowths) growth.stack = stack;
  growth.bytes.fetch_add(bytes, std::memory_order_relaxed);
  // Release pairs with the acquire in ForEach and publishes the record.
  growth.count.fetch_add(1, std::memory_order_release);
}

}  // namespace tcmalloc
