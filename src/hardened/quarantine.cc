// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hardened/quarantine.h"

#include <algorithm>

#include "base/attributes.h"
#include "base/random.h"

namespace tcmalloc {
namespace {

// Threads that have a part of their own.
constinit std::atomic<uint32_t> owners{0};
// Threads that share one.
constinit std::atomic<uint32_t> sharers{0};

}  // namespace

uint8_t Quarantine::ChoosePart() {
  uint32_t part = owners.load(std::memory_order_relaxed);
  while (part < kOwnParts &&
         !owners.compare_exchange_weak(part, part + 1, std::memory_order_relaxed)) {
  }
  if (part >= kOwnParts) {
    part = kOwnParts + sharers.fetch_add(1, std::memory_order_relaxed) % kSharedParts;
  }
  return static_cast<uint8_t>(part + 1);
}

size_t Quarantine::OwnParts() { return owners.load(std::memory_order_relaxed); }

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
