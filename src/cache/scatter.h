// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Tells whether objects that were freed one after the other lie far apart.

#ifndef TCMALLOC_CACHE_SCATTER_H_
#define TCMALLOC_CACHE_SCATTER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "pages/free_link.h"

namespace tcmalloc {

// A cache hands out what was freed last. Objects that a program frees in random order would come
// back in that order: what it allocates in a row then lies in as many pages, and its own walks miss
// the processor's caches and TLB. Scattered objects therefore go home to their spans, which hand
// out neighbours. docs/decisions/0030-scattered-objects-go-home.md.
//
// Neighbours are no farther apart than a page of the kernel, or than a few objects where these are
// large. Objects of more than kMostSize bytes have few neighbours in a page anyway.
inline constexpr uint32_t kScatterMostSize = 2048;
// Objects of a run that are looked at.
inline constexpr uint32_t kScatterProbes = 9;

// Judges the first `count` of `objects`, of `size` bytes each, in the order in which they were
// freed or in its reverse. Fewer than kScatterProbes are never scattered. Touches no object.
inline bool AreScattered(uint32_t size, void* const* objects, uint32_t count) {
  if (size > kScatterMostSize || count < kScatterProbes) return false;
  const uintptr_t near = std::max<uintptr_t>(4096, uintptr_t{4} * size);
  uint32_t far = 0;
  for (uint32_t i = 1; i < kScatterProbes; ++i) {
    const auto before = reinterpret_cast<uintptr_t>(objects[i - 1]);
    const auto object = reinterpret_cast<uintptr_t>(objects[i]);
    if (before - object + near > 2 * near) ++far;
  }
  return far > kScatterProbes / 2;
}

// AreScattered for the objects of a chain, of which it reads the first ones. next(object) is the
// reference to the object after `object`.
template <typename Next>
bool IsScattered(uint32_t size, Chain chain, Next next) {
  if (size > kScatterMostSize || chain.count < kScatterProbes) return false;
  void* objects[kScatterProbes];
  for (uint32_t i = 0; i < kScatterProbes; ++i) {
    objects[i] = ObjectAt(chain.head);
    if (i + 1 < kScatterProbes) chain.head = next(objects[i]);
  }
  return AreScattered(size, objects, kScatterProbes);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_SCATTER_H_
