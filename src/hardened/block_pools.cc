// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hardened/block_pools.h"

#include <algorithm>
#include <new>

#include "base/random.h"

namespace tcmalloc {

bool BlockPools::Initialize(MetadataArena& arena, size_t bytes_per_class, uint64_t seed) {
  for (Pool*& entry : pools_) {
    // Memory of the arena is zero.
    entry = static_cast<Pool*>(arena.Allocate(sizeof(Pool), alignof(Pool)));
    if (entry == nullptr) return false;
    seed = NextRandom(seed);
    entry->random = seed;
    if (bytes_per_class == 0) continue;
    for (size_t c = 1; c < kClasses; ++c) {
      const size_t places = std::clamp<size_t>(bytes_per_class / kSizeClasses[c].size, 1, kMostBlocks);
      List& list = entry->lists[c];
      list.most = static_cast<uint8_t>(places);
      list.least = static_cast<uint8_t>(std::max(places / kShare, kFewestWaiting));
      list.window = static_cast<uint8_t>(std::clamp<size_t>(places / 2, 1, kWindow));
    }
  }
  return true;
}

void* BlockPools::TakeAny(uint8_t part) {
  Pool& pool = *pools_[part - 1];
  for (size_t c = 1; c < kClasses; ++c) {
    List& list = pool.lists[c];
    if (list.count == 0) continue;
    --list.count;
    return pool.places[c][list.PlaceOf(list.count)].exchange(nullptr, std::memory_order_relaxed);
  }
  return nullptr;
}

}  // namespace tcmalloc
