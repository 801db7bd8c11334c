// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Remembers the moment when the heap held the most memory.

#ifndef TCMALLOC_UPKEEP_PEAK_H_
#define TCMALLOC_UPKEEP_PEAK_H_

#include <cstddef>
#include <cstdint>

#include "base/spin_lock.h"
#include "base/thread_annotations.h"
#include "pages/page_types.h"
#include "upkeep/growth_steps.h"

namespace tcmalloc {

struct PeakStats {
  Length committed;       // PageHeapStats::committed, which makes the peak
  uint64_t in_use = 0;    // bytes that the program had then
  uint64_t physical = 0;  // bytes of the heap and the allocator's records that had memory then
};

// Remembers, to within a step, the moment when the heap grew to the most memory ever committed.
// Adding up the memory in use takes some microseconds. It is done when the heap has grown a step
// above the last peak, and whenever statistics are read. Of the moments seen within that step, the
// one with the most memory in use counts. A heap in a steady state is never examined, so that more
// memory may have been in use later without growth.
//
// Thread safe. Update and Note are called inside a slow path that is not reentrant.
class Peak {
 public:
  using Steps = StepsOfGrowth<size_t{1} << 20>;
  static constexpr Length kLeastStep = Steps::kLeastStep;

  // Returns how much the heap grows beyond a peak of `committed` before it is examined again.
  static constexpr Length StepAfterPeak(Length committed) { return Steps::StepAfter(committed); }

  constexpr Peak() = default;
  Peak(const Peak&) = delete;
  Peak& operator=(const Peak&) = delete;

  // Returns true if a thread that fetched memory should call Update. One load.
  bool IsDue(Length committed) const { return steps_.IsDue(committed); }
  // Notes the present contents of the heap, which count() returns. Does nothing, and does not call
  // count(), while another thread counts.
  template <typename F>
  void Update(F count) TCMALLOC_EXCLUDES(lock_) {
    if (!lock_.TryLock()) return;
    NoteLocked(count());
    lock_.Unlock();
  }

  // Notes the present contents of the heap, known to the caller. Returns the peak, which may be
  // this moment.
  PeakStats Note(const PeakStats& now) TCMALLOC_EXCLUDES(lock_);

  SpinLock& lock() TCMALLOC_RETURN_CAPABILITY(lock_) { return lock_; }

 private:
  void NoteLocked(const PeakStats& now) TCMALLOC_REQUIRES(lock_);

  SpinLock lock_{LockRank::kPeak};
  PeakStats peak_ TCMALLOC_GUARDED_BY(lock_);
  Steps steps_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_UPKEEP_PEAK_H_
