// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hardened/quarantine.h"

#include <algorithm>

#include "base/random.h"
#include "thread/current_thread.h"

namespace tcmalloc {
namespace {

// Threads that have shared a part.
constinit std::atomic<uint32_t> sharers{0};

}  // namespace

uint8_t Quarantine::ChoosePart(uint8_t shared) {
  const bool end_is_noticed = current_thread->seat != nullptr;
  const uint8_t own = end_is_noticed ? thread_parts.Take() : 0;
  if (own != 0) return own;
  if (shared != 0) return shared;
  const uint32_t others = sharers.fetch_add(1, std::memory_order_relaxed);
  return static_cast<uint8_t>(kOwnParts + 1 + others % kSharedParts);
}

size_t Quarantine::OwnParts() { return thread_parts.highest(); }

bool Quarantine::HasSharers() { return sharers.load(std::memory_order_relaxed) != 0; }

bool Quarantine::Initialize(MetadataArena& arena, size_t bytes_per_class, size_t largest,
                            uint64_t seed) {
  for (size_t c = 1; c < kSizeClassCount; ++c) {
    const size_t size = kSizeClasses[c].size;
    firsts_[c] = static_cast<uint16_t>(places_);
    if (size > largest || bytes_per_class == 0) continue;
    counts_[c] = static_cast<uint16_t>(std::clamp<size_t>(bytes_per_class / size, 1, kMostPlaces));
    places_ += counts_[c];
  }
  for (Part& part : parts_) {
    seed = NextRandom(seed);
    part.random.store(seed, std::memory_order_relaxed);
    void* memory = arena.Allocate(std::max<size_t>(places_, 1) * sizeof(void*), 64);
    if (memory == nullptr) return false;
    part.places = static_cast<std::atomic<void*>*>(memory);
  }
  return true;
}

}  // namespace tcmalloc
