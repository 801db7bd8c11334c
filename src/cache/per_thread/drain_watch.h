// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Notices a thread whose objects of one size class become fewer while it still allocates some.

#ifndef TCMALLOC_CACHE_PER_THREAD_DRAIN_WATCH_H_
#define TCMALLOC_CACHE_PER_THREAD_DRAIN_WATCH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"

namespace tcmalloc {

// A list hands out the object that was freed last. While a class shrinks, that object belongs to a
// span that was about to drain. Every span then keeps a few recent objects, and no span goes back.
// In that state frees should leave the cache at once, and allocations should be served from the
// fullest spans. docs/decisions/0015-classes-that-drain.md.
//
// The fast paths count neither allocations nor frees. A list that overflowed several times without
// having been empty in between is a sign. A trial then follows, in which frees take the slow path,
// and which shows whether anything is allocated as well. If nothing is, there is nothing to gain
// and the next trial comes later.
//
// When as much is allocated as freed again, most spans have a few objects left, and drain only if
// new objects go elsewhere. So a class with mostly free room is still treated as draining for as
// many batches as left while it drained. A heap that stays sparse thus does not pay for ever. Owned
// by one thread.
class DrainWatch {
 public:
  // The bytes of the spans of a class that is worth to be drained. A free of a class that drains
  // costs ten times as much as another. docs/decisions/0164-small-classes-do-not-drain.md.
  static constexpr size_t kLeastBytes = size_t{1} << 20;
  // Overflows in a row before the first trial, and before any later one at most.
  static constexpr uint8_t kFirstTrial = 4;
  static constexpr uint8_t kLastTrial = 64;
  // Frees without an allocation that end a trial.
  static constexpr uint32_t kTrialFrees = 16;
  // A class drains while there are this many frees for each allocation. It may be short of a few
  // frees when the allocations come first.
  static constexpr uint32_t kFreesPerAllocation = 2;
  // Fewer allocations than one for so many frees count as none where there are more temporaries
  // than kManyTemporaries for each: one is always under way then.
  static constexpr uint32_t kMostFreesPerAllocation = 64;
  static constexpr uint32_t kManyTemporaries = 32;
  static constexpr uint32_t kSlack = 8;
  // Frees after an allocation among which that of a temporary comes.
  static constexpr uint8_t kSoon = 8;
  // A class that drained stays as it is while it gets no more than this many allocations for each
  // free.
  static constexpr uint32_t kAllocationsPerFree = 2;

  constexpr DrainWatch() = default;

  // Returns true while the class drains as far as is known, or a trial is under way.
  bool active() const { return active_; }
  // Returns how often the list overflowed since it was empty.
  int overflows() const { return overflows_; }

  // Notes that the empty current list was filled from objects that the thread had.
  void NoteRefill() { overflows_ = 0; }
  // Notes that the list was filled from the source, which means that the class grows.
  void NoteGrowth() {
    overflows_ = 0;
    next_trial_ = kFirstTrial;
  }
  // Returns true if the next overflow should begin a trial.
  bool IsTrialNext() const { return overflows_ + 1 >= next_trial_; }
  // Notes that the full current list was put away. Returns true if a trial should begin.
  bool NoteOverflow() { return ++overflows_ >= next_trial_; }

  void Begin() {
    active_ = true;
    frees_ = 0;
    allocations_ = 0;
    temporaries_ = 0;
    credit_ = 0;
  }
  void End() {
    active_ = false;
    overflows_ = 0;
    const int later = AllocatesFew() ? std::min(next_trial_ * 2, int{kLastTrial}) : kFirstTrial;
    next_trial_ = static_cast<uint8_t>(later);
  }

  // Requires active().
  void NoteFree() {
    ++frees_;
    if (since_allocation_ < kSoon) ++since_allocation_;
  }
  // Notes that something was allocated since the last free.
  void NoteAllocated() { since_allocation_ = 0; }
  // Returns true for the first few frees after an allocation, which may be those of temporaries.
  bool IsSoon() const { return since_allocation_ < kSoon; }
  // Notes the free of an object that was allocated just now. Returns true if nearly all are.
  bool NoteTemporary() { return ++temporaries_ > kTrialFrees + frees_; }
  void NoteAllocations(uint32_t n) { allocations_ = static_cast<uint16_t>(allocations_ + n); }
  // Returns the number of objects to gather before Drains or MayDrain is asked again; at most a
  // batch.
  uint32_t ObjectsBeforeNextCheck(uint32_t batch) const {
    return frees_ <= kTrialFrees ? std::min(kTrialFrees, batch) : batch;
  }
  // Returns true, after frees, if the class still drains.
  bool Drains() const { return !AllocatesFew() && frees_ >= kFreesPerAllocation * allocations_; }
  // Returns true, after allocations, if the class may still drain.
  bool MayDrain() const { return frees_ + kSlack >= kFreesPerAllocation * allocations_; }
  // Returns true if a class that no longer drains may still be treated so, provided that its spans
  // have much room.
  bool MayKeepDraining() const {
    return credit_ > 0 && allocations_ > 0 && allocations_ <= kAllocationsPerFree * frees_;
  }
  // Notes that a batch left. Earlier counts weigh less from now on.
  void NoteBatch() {
    if (Drains()) {
      credit_ = static_cast<uint16_t>(std::min(credit_ + 1, int{UINT16_MAX}));
    } else if (credit_ > 0) {
      --credit_;
    }
    frees_ /= 2;
    temporaries_ /= 2;
    allocations_ /= 2;
  }

 private:
  TCMALLOC_NOINLINE bool AllocatesFew() const {
    if (allocations_ + temporaries_ == 0) return true;
    return frees_ > kMostFreesPerAllocation * allocations_ &&
           temporaries_ > kManyTemporaries * (allocations_ + 1);
  }

  bool active_ = false;
  uint8_t overflows_ = 0;
  uint8_t next_trial_ = kFirstTrial;
  uint8_t since_allocation_ = 0;
  uint16_t frees_ = 0;  // since Begin, those of earlier batches for less
  uint16_t allocations_ = 0;
  uint16_t temporaries_ = 0;
  uint16_t credit_ = 0;  // batches that may leave after the class drained
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_THREAD_DRAIN_WATCH_H_
