// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Notices a thread whose objects of one size class become fewer while it still allocates some.

#ifndef TCMALLOC_CACHE_PER_THREAD_DRAIN_WATCH_H_
#define TCMALLOC_CACHE_PER_THREAD_DRAIN_WATCH_H_

#include <algorithm>
#include <cstdint>

namespace tcmalloc {

// A list hands out what was freed last. While a class becomes smaller that is an object of a span
// that was about to drain, and every span keeps a few objects of the last comers: none goes back.
// Then frees should leave at once, and allocations be served from the fullest spans.
// docs/decisions/0015-classes-that-drain.md.
//
// The fast paths count neither. But a list that overflowed several times, and was never empty in
// between, is a sign; a trial, during which frees take the slow path, tells whether anything is
// allocated as well. Where not there is nothing to gain, and the next trial comes later.
//
// When as much is allocated as is freed again, most spans have a few objects left. Those drain only
// if new ones go elsewhere. So a class in which most room is free is treated as before for as many
// batches as left while it drained: a heap that stays sparse does not pay for ever. Owned by one
// thread.
class DrainWatch {
 public:
  // Overflows in a row before the first trial, and at most.
  static constexpr uint8_t kFirstTrial = 4;
  static constexpr uint8_t kLastTrial = 64;
  // Frees without an allocation that end a trial.
  static constexpr uint32_t kTrialFrees = 16;
  // A class drains while for each allocation there are so many frees, and it may be short of a few
  // when allocations come first.
  static constexpr uint32_t kFreesPerAllocation = 2;
  static constexpr uint32_t kSlack = 8;
  // Afterwards it stays as it is while it gets no more than so many for each free.
  static constexpr uint32_t kAllocationsPerFree = 2;

  constexpr DrainWatch() = default;

  // True while the class drains, for all that is known, or a trial is under way.
  bool active() const { return active_; }

  // The current list was empty and was filled from what the thread had.
  void NoteRefill() { overflows_ = 0; }
  // It was filled from the source: the class becomes larger.
  void NoteGrowth() {
    overflows_ = 0;
    next_trial_ = kFirstTrial;
  }
  // The current list was full, and was put away. Whether a trial should begin.
  bool NoteOverflow() { return ++overflows_ >= next_trial_; }

  void Begin() {
    active_ = true;
    frees_ = 0;
    allocations_ = 0;
    credit_ = 0;
  }
  void End() {
    active_ = false;
    overflows_ = 0;
    const int later = allocations_ > 0 ? kFirstTrial : std::min(next_trial_ * 2, int{kLastTrial});
    next_trial_ = static_cast<uint8_t>(later);
  }

  // Only while active.
  void NoteFree() { ++frees_; }
  void NoteAllocations(uint32_t n) { allocations_ = static_cast<uint16_t>(allocations_ + n); }
  // How many objects should have gathered when the next question is asked, of a batch at most.
  uint32_t NextLook(uint32_t batch) const {
    return frees_ <= kTrialFrees ? std::min(kTrialFrees, batch) : batch;
  }
  // After frees: whether the class still drains.
  bool Drains() const { return allocations_ > 0 && frees_ >= kFreesPerAllocation * allocations_; }
  // After allocations: whether it may.
  bool MayDrain() const { return frees_ + kSlack >= kFreesPerAllocation * allocations_; }
  // If neither: whether it may stay as it is, where its spans have much room.
  bool MaySettle() const {
    return credit_ > 0 && allocations_ > 0 && allocations_ <= kAllocationsPerFree * frees_;
  }
  // A batch left: what was longer ago counts less.
  void NoteBatch() {
    if (Drains()) {
      credit_ = static_cast<uint16_t>(std::min(credit_ + 1, int{UINT16_MAX}));
    } else if (credit_ > 0) {
      --credit_;
    }
    frees_ /= 2;
    allocations_ /= 2;
  }

 private:
  bool active_ = false;
  uint8_t overflows_ = 0;
  uint8_t next_trial_ = kFirstTrial;
  uint16_t frees_ = 0;  // since Begin, those of earlier batches for less
  uint16_t allocations_ = 0;
  uint16_t credit_ = 0;  // batches that may leave after the class drained
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_THREAD_DRAIN_WATCH_H_
