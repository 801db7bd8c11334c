// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Tells how far apart objects lie that were freed one after the other.

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
// Less stays so where a thread keeps kNearKeptBytes of all classes. A core's own cache does not
// hold that much of each, and what the program builds of it lies scattered for as long as it lives.
// docs/decisions/0155-less-in-any-order-beside-much.md.
inline constexpr uint32_t kScatterKeptBesideMuch = 32 << 10;
// The bytes of scattered chains that go home between two misses, after which a class keeps nothing
// in any order: the program frees far more than it would find here.
inline constexpr uint32_t kScatterRunBytes = 2 << 20;
// The objects that the list of a class holds from then on.
inline constexpr uint32_t kScatterListObjects = 64;
// The bytes of the spans of a class up to which a thread sorts scattered objects of it by pages. Of
// more, too few of each page come together. Also the bytes of all classes up to which a cache sorts
// more of them: beyond that they are worth more as pages of any class.
// docs/decisions/0136-bins-for-pages.md.
inline constexpr size_t kBinnedBytes = 8 << 20;
// The bytes that a transfer cache keeps in any order beside slabs, each of which keeps as much
// already.
inline constexpr uint32_t kScatterSharedBytes = 64 << 10;
// Objects are scattered if more than one step in this many leads far. A program often frees several
// neighbours together, such as the parts of one of its own objects, and the next ones elsewhere:
// half of the steps are short then, and yet the order is random.
inline constexpr uint32_t kScatterStepsForOneFar = 8;
// A step is wide if it is wider than kRowBytes, or than to the next object where that is farther. A
// processor fetches that far ahead by itself. Near objects are in rows if one step in this many is
// wide at most, and in pieces of rows if one in kScatterStepsForOneWide is.
inline constexpr uint32_t kScatterStepsForOnePiece = 32;
inline constexpr uint32_t kScatterStepsForOneWide = 4;
inline constexpr uint32_t kRowBytes = 256;
// Smaller objects share cache lines, so that their order inside a page matters less than it costs.
// They are in pieces of rows if they are near.
inline constexpr uint32_t kScatterLeastNear = 64;
// The bytes of all classes up to which a cache keeps near objects. A core's own caches hold as
// much, and the order inside of a page does not matter there. Beyond that they go home as well.
// docs/decisions/0132-near-objects-go-home.md.
inline constexpr int64_t kNearKeptBytes = 1 << 20;
// A class of which pieces of rows do not fit the cache's share outgrows it: what does not fit goes
// home, and what is kept keeps the spans of the others, so that the order gets worse each time the
// program frees all and allocates again. Beyond kScatterKeptBytes pieces then go home as well,
// until fewer bytes than this go home between two misses.
// docs/decisions/0133-classes-outgrow-a-cache.md.
inline constexpr uint32_t kOutgrownBytes = 4 << 20;
// So does a class of which a cache keeps this much: a core's TLB does not reach that far.
inline constexpr int64_t kPiecesKeptBytes = 16 << 20;
// Fewer objects are taken for rows.
inline constexpr uint32_t kScatterFewest = 9;
// The number of newest objects that are looked at first. The others are looked at only if these are
// scattered. That costs little, because scattered objects are visited one by one anyway.
inline constexpr uint32_t kScatterProbes = 33;

enum class Scatter {
  kInRows,    // each object lies close to the one before
  kInPieces,  // in rows with wide steps between them
  kNear,      // inside of pages, in any order
  kFarApart,  // scattered
};

// Judges `count` objects of `size` bytes each, the last one freed first: next(object) is the object
// after `object`.
template <typename Next>
Scatter JudgeScatter(uint32_t size, const void* object, uint32_t count, Next next) {
  if (size > kScatterMostSize || count < kScatterFewest) return Scatter::kInRows;
  const uintptr_t near = std::max<uintptr_t>(4096, uintptr_t{4} * size);
  const uintptr_t row = std::max(kRowBytes, size);
  const auto step_to = [&object, next] {
    const auto before = reinterpret_cast<uintptr_t>(object);
    object = next(object);
    return before - reinterpret_cast<uintptr_t>(object);
  };
  const uint32_t probes = std::min(count, kScatterProbes);
  uint32_t far = 0;
  uint32_t wide = 0;
  for (uint32_t seen = 1; seen < probes; ++seen) {
    const uintptr_t step = step_to();
    wide += step + row > 2 * row;
    far += step + near > 2 * near;
  }
  if (far > probes / kScatterStepsForOneFar) {
    const uint32_t most_far = count / kScatterStepsForOneFar;
    for (uint32_t seen = probes; seen < count && far <= most_far; ++seen) {
      far += step_to() + near > 2 * near;
    }
    if (far > most_far) return Scatter::kFarApart;
  }
  if (wide <= probes / kScatterStepsForOnePiece) return Scatter::kInRows;
  const bool in_pieces = size < kScatterLeastNear || wide <= probes / kScatterStepsForOneWide;
  return in_pieces ? Scatter::kInPieces : Scatter::kNear;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_SCATTER_H_
