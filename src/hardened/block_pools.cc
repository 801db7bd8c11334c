// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hardened/block_pools.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/random.h"

namespace tcmalloc {

bool BlockPools::Initialize(MetadataArena& arena, size_t bytes_per_class, const Filling& filling,
                            uint64_t seed) {
  // Memory of the arena is zero: in the first pool no turn comes, and no place is free.
  for (size_t p = 0; p <= kPools; ++p) {
    auto* pool = static_cast<Pool*>(arena.Allocate(sizeof(Pool), alignof(Pool)));
    if (pool == nullptr) return false;
    pools_[p] = pool;
    if (p == 0) continue;
    seed = NextRandom(seed);
    pool->random = seed;
    for (size_t c = kFirstClass; c < kClasses; ++c) {
      const size_t size = kSizeClasses[c].size;
      List& list = pool->lists[c];
      list.places = pool->places[c];
      list.facts = {BlockPairs(size, filling), BlockMap::ShortStates(size)};
      if (bytes_per_class == 0) continue;
      const size_t places = std::clamp<size_t>(bytes_per_class / size, 1, kMostBlocks);
      list.most = static_cast<uint8_t>(places);
      list.least = static_cast<uint8_t>(std::max(places / kShare, kFewestWaiting));
      list.group = static_cast<uint8_t>(std::clamp<size_t>(places / kShare, 1, kGroup));
      FindRoom(list);
    }
  }
  std::fill(pools_ + kPools + 1, std::end(pools_), pools_[0]);
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
  List& list = pool.lists[size_class];
  list.next = static_cast<uint8_t>(list.first - count);
  list.is_filled = false;
  for (size_t i = 0; i < count; ++i) {
    // Release pairs with the acquire in LookAt.
    list.PlaceOf(static_cast<uint8_t>(list.next + i)).store(objects[i], std::memory_order_release);
  }
  FindRoom(list);
}

size_t BlockPools::TakeOldest(uint8_t part, uint8_t size_class, void** blocks, size_t most) {
  List& list = pools_[part]->lists[size_class];
  const size_t count = std::min<size_t>(most, list.waiting());
  for (size_t i = 0; i < count; ++i) {
    blocks[i] = list.PlaceOf(static_cast<uint8_t>(list.first + i)).load(std::memory_order_relaxed);
  }
  // The group follows, its last block first. Release pairs with the acquire in LookAt.
  for (uint8_t number = list.first; number != list.next;) {
    --number;
    list.PlaceOf(static_cast<uint8_t>(number + count))
        .store(list.PlaceOf(number).load(std::memory_order_relaxed), std::memory_order_release);
  }
  for (size_t i = 0; i < count; ++i) {
    list.PlaceOf(static_cast<uint8_t>(list.next + i)).store(nullptr, std::memory_order_relaxed);
  }
  list.next = static_cast<uint8_t>(list.next + count);
  list.first = static_cast<uint8_t>(list.first + count);
  FindRoom(list);
  return count;
}

void* BlockPools::TakeAny(uint8_t part) {
  for (uint8_t c = 1; c < kClasses; ++c) {
    const Turn turn = Next(part, c);
    void* block;
    if (!turn.has_come()) {
      if (TakeOldest(part, c, &block, 1) == 1) return block;
      continue;
    }
    block = turn.block();
    turn.Take();
    return block;
  }
  return nullptr;
}

}  // namespace tcmalloc
