// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hardened/block_pools.h"

#include <algorithm>
#include <iterator>

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
      pool->runs[c] = kFirstRun;
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

void BlockPools::MakeRun(uint8_t part, uint8_t size_class, void* const* objects, size_t count) {
  Pool& pool = *pools_[part];
  List& list = pool.lists[size_class];
  SmallDraws draws(pool.random);
  uint32_t changes = draws.Bits();
  pool.random = draws.random();
  const auto next = static_cast<uint8_t>(list.first - count);
  size_t i = 0;
  for (; i + 1 < count; i += 2, changes >>= 1) {
    const size_t change = changes & 1;
    Publish(list.places[(next + i) % kMostBlocks], objects[i + change]);
    Publish(list.places[(next + i + 1) % kMostBlocks], objects[i + 1 - change]);
  }
  if (i < count) Publish(list.places[(next + i) % kMostBlocks], objects[i]);
  list.next = next;
  list.is_filled = false;
  pool.runs[size_class] = static_cast<uint8_t>(std::min<size_t>(2 * pool.runs[size_class], kRun));
  FindRoom(list);
}

// Moves the group on by some places, which are free, to the new beginning of the queue.
void BlockPools::MoveGroup(List& list, size_t places) {
  if (places == 0) return;
  // The last block first.
  for (uint8_t number = list.first; number != list.next;) {
    --number;
    Publish(list.PlaceOf(static_cast<uint8_t>(number + places)),
            list.PlaceOf(number).load(std::memory_order_relaxed));
    list.PlaceOf(number).store(nullptr, std::memory_order_relaxed);
  }
  list.next = static_cast<uint8_t>(list.next + places);
  list.first = static_cast<uint8_t>(list.first + places);
  FindRoom(list);
}

void* BlockPools::TakeAny(uint8_t part) {
  for (uint8_t c = kFirstClass; c < kClasses; ++c) {
    const Turn turn = Next(part, c);
    void* block = nullptr;
    if (turn.has_come()) {
      block = turn.block();
      turn.Take();
      return block;
    }
    TakeOldest(part, c, 1, [&](void* oldest, const Facts&) { block = oldest; });
    if (block != nullptr) return block;
  }
  return nullptr;
}

}  // namespace tcmalloc
