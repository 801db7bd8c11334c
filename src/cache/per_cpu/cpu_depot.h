// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The objects that belong to a slab but find no slots in it.

#ifndef TCMALLOC_CACHE_PER_CPU_CPU_DEPOT_H_
#define TCMALLOC_CACHE_PER_CPU_CPU_DEPOT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/relaxed.h"
#include "cache/outgrowth.h"
#include "size_class/size_classes.h"
#include "transfer/chain_stack.h"

namespace tcmalloc {

// Batches of objects in arrays, of each class a stack: the batch that left the slab last is the
// first to come back. So a class can use the whole budget of its slab, and a program that frees
// many objects gets them back in the reverse order of its frees.
//
// A class keeps as many batches as it had to fetch from elsewhere: a CPU that only frees keeps
// none, because nobody would take them out. Batches that were not needed while many others came and
// went have to go, the oldest first. Those no longer belong to the budget, and wait here until
// somebody takes them away.
//
// All zero at first. Guarded by the slab's lock; what the first three methods of an object return
// are estimates for who does not have it.
class alignas(64) CpuDepot {
 public:
  constexpr CpuDepot() = default;
  CpuDepot(const CpuDepot&) = delete;
  CpuDepot& operator=(const CpuDepot&) = delete;

  // Returns the bytes of `objects` objects of class c. The array that names them comes on top.
  static int64_t BytesOf(uint8_t c, uint32_t objects) {
    return int64_t{objects} * kSizeClasses[c].size;
  }

  // Returns the number of objects of class c.
  uint32_t CountObjects(uint8_t c) const { return stocks_[c].objects; }
  // Returns the number of batches of class c that have to go.
  uint32_t CountLeaving(uint8_t c) const { return stocks_[c].leaving; }
  // Returns the number of the others.
  uint32_t CountKept(uint8_t c) const { return stocks_[c].batches.size() - stocks_[c].leaving; }

  // Lets the class keep one more, because a batch was fetched from elsewhere.
  void NoteFetch(uint8_t c) {
    if (stocks_[c].most < UINT16_MAX) ++stocks_[c].most;
  }
  // Returns true if the class may keep one more. Now and then it may keep one less after it might
  // not.
  bool Admits(uint8_t c);
  // Says if class c outgrew the slab.
  Outgrowth& outgrowth(uint8_t c) { return stocks_[c].outgrowth; }
  // Keeps a batch. Returns false if there is no memory to note it.
  [[nodiscard]] bool Push(uint8_t c, ObjectArray batch, ChainArrays& arrays);
  // Takes the batch that was pushed last; an empty one if none is kept.
  ObjectArray Pop(uint8_t c);

  // Returns the number of kept batches that were not needed lately. Counts as a look at the class:
  // one of which none came or went since the last look is not in use.
  uint32_t CountUnneeded(uint8_t c);
  // Returns the number of kept batches of a class of which none was taken out since the last call,
  // if they hold kManyIdleBytes; else 0.
  uint32_t CountIdle(uint8_t c);
  // Lets the `count` oldest of the kept batches go. Returns their bytes.
  int64_t LetGo(uint8_t c, uint32_t count);
  // Moves up to `most` batches that have to go to `out`. Returns their number.
  uint32_t TakeLeaving(uint8_t c, ObjectArray* out, uint32_t most);

  // Calls f(batch) for each batch of class c, the newest first, as long as it returns true.
  template <typename F>
  void ForEach(uint8_t c, F f) const {
    const ChainStack& batches = stocks_[c].batches;
    for (uint32_t i = batches.size(); i > 0 && f(batches.packed_at(i - 1).UnpackArray()); --i) {
    }
  }

  // Returns the bytes of all kept batches.
  int64_t CountKeptBytes() const;

 private:
  // Batches that come and go, for each that is there, before those that stayed all the time are
  // taken for unneeded.
  static constexpr uint32_t kMovesForEach = 4;
  static constexpr uint8_t kMostOverages = 3;

  // The oldest `leaving` of the batches have to go.
  struct Stock {
    ChainStack batches;
    Relaxed<uint32_t> objects = 0;
    Relaxed<uint32_t> leaving = 0;
    uint32_t moves = 0;  // since CountUnneeded last judged
    uint32_t least = 0;  // batches kept since then
    Outgrowth outgrowth;
    uint16_t most = 0;  // batches that may be kept
    uint8_t overages = 0;
    bool moved = false;   // since CountUnneeded last looked
    bool popped = false;  // since CountIdle last looked
  };

  static void NoteMove(Stock& stock) {
    ++stock.moves;
    stock.moved = true;
  }

  Stock stocks_[kSizeClassCount] = {};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_CPU_CPU_DEPOT_H_
