// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Tells whether objects that were freed one after the other lie far apart.

#ifndef TCMALLOC_CACHE_SCATTER_H_
#define TCMALLOC_CACHE_SCATTER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tcmalloc {

// A cache hands out what was freed last. Objects that a program frees in random order would come
// back in that order: what it allocates in a row then lies in as many pages, and its own walks miss
// the processor's caches and TLB. Scattered objects therefore go home to their spans, which hand
// out neighbours. docs/decisions/0030-scattered-objects-go-home.md.
//
// Neighbours are no farther apart than a page of the kernel, or than a few objects where these are
// large. Objects of more than kScatterMostSize bytes have few neighbours in a page anyway.
inline constexpr uint32_t kScatterMostSize = 2048;
// The bytes of one class that a cache keeps in any order. A core's own cache and its TLB reach that
// far, so the objects freed last are found there.
inline constexpr uint32_t kScatterKeptBytes = 128 << 10;
// The bytes that a transfer cache keeps in any order beside slabs, each of which keeps as much
// already.
inline constexpr uint32_t kScatterSharedBytes = 64 << 10;
// Objects are scattered if more than one step in this many leads far. A program often frees several
// neighbours together, such as the parts of one of its own objects, and the next ones elsewhere:
// half of the steps are short then, and yet the order is random.
inline constexpr uint32_t kScatterStepsForOneFar = 8;
// The number of newest objects that are looked at first. The others are looked at only if these are
// scattered. That costs little, because scattered objects are visited one by one anyway.
inline constexpr uint32_t kScatterProbes = 9;

// Judges `count` objects of `size` bytes each, the last one freed first: next(object) is the object
// after `object`. Fewer than kScatterProbes objects are never scattered.
template <typename Next>
bool IsScattered(uint32_t size, const void* object, uint32_t count, Next next) {
  if (size > kScatterMostSize || count < kScatterProbes) return false;
  const uintptr_t near = std::max<uintptr_t>(4096, uintptr_t{4} * size);
  const uint32_t most_far = count / kScatterStepsForOneFar;
  uint32_t far = 0;
  for (uint32_t seen = 1; seen < count; ++seen) {
    if (seen == kScatterProbes && far <= kScatterProbes / kScatterStepsForOneFar) return false;
    const void* const before = object;
    object = next(before);
    const uintptr_t step =
        reinterpret_cast<uintptr_t>(before) - reinterpret_cast<uintptr_t>(object);
    if (step + near > 2 * near && ++far > most_far) return true;
  }
  return false;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_SCATTER_H_
