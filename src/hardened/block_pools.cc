// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hardened/block_pools.h"

#include <algorithm>
#include <utility>

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
    for (size_t c = 1; c < kClasses && bytes_per_class != 0; ++c) {
      const size_t places =
          std::clamp<size_t>(bytes_per_class / kSizeClasses[c].size, 1, kMostBlocks);
      List& list = pool->lists[c];
      list.most = static_cast<uint8_t>(places);
      list.least = static_cast<uint8_t>(std::max(places / kShare, kFewestWaiting));
      list.group = static_cast<uint8_t>(std::clamp<size_t>(places / kShare, 1, kGroup));
    }
  }
  return true;
}

void BlockPools::MakeRun(uint8_t part, uint8_t size_class, void** objects, size_t count) {
  Pool& pool = *pools_[part];
  SmallDraws draws(pool.random);
  for (size_t i = 0; i < count; ++i) {
    const size_t before = i % kNeighbours;  // that may change places with this one
    std::swap(objects[i], objects[i - draws.Below(before + 1)]);
  }
  pool.random = draws.random();
  Put(pool, size_class, objects, count, /*is_filled=*/false);
}

void BlockPools::Put(Pool& pool, uint8_t size_class, void* const* blocks, size_t count,
                     bool is_filled) {
  for (size_t i = 0; i < count; ++i) {
    // Release pairs with the acquire in LookAt.
    pool.groups[size_class][count - i].store(blocks[i], std::memory_order_release);
  }
  List& list = pool.lists[size_class];
  list.ready = static_cast<uint8_t>(count);
  list.is_filled = is_filled;
}

void* BlockPools::TakeAny(uint8_t part) {
  for (uint8_t c = 1; c < kClasses; ++c) {
    void* block;
    if (TakeOldest(part, c, &block, 1) == 1) return block;
    const Turn turn = Next(part, c);
    if (!turn.has_come()) continue;
    block = turn.block();
    turn.Take();
    return block;
  }
  return nullptr;
}

}  // namespace tcmalloc
