// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hardened/block_pools.h"

#include <algorithm>
#include <new>

#include "base/random.h"

namespace tcmalloc {

bool BlockPools::Initialize(MetadataArena& arena, size_t bytes_per_class, uint64_t seed) {
  for (size_t p = 1; p <= kPools; ++p) {
    // Memory of the arena is zero.
    auto* pool = static_cast<Pool*>(arena.Allocate(sizeof(Pool), alignof(Pool)));
    if (pool == nullptr) return false;
    pools_[p] = pool;
    seed = NextRandom(seed);
    pool->random = seed;
    for (size_t c = 1; c < kClasses; ++c) {
      pool->lists[c].places = pool->places[c];
      if (bytes_per_class == 0) continue;
      const size_t places =
          std::clamp<size_t>(bytes_per_class / kSizeClasses[c].size, 1, kMostBlocks);
      List& list = pool->lists[c];
      list.most = static_cast<uint8_t>(places);
      list.least = static_cast<uint8_t>(std::max(places / kShare, kFewestWaiting));
      list.window = static_cast<uint8_t>(
          std::clamp<size_t>(std::min<size_t>(places, list.least) / 2, 1, kWindow));
    }
  }
  return true;
}

void* BlockPools::TakeAny(uint8_t part) {
  for (List& list : pools_[part]->lists) {
    if (list.count == 0) continue;
    --list.count;
    return list.PlaceOf(list.count).exchange(nullptr, std::memory_order_relaxed);
  }
  return nullptr;
}

}  // namespace tcmalloc
