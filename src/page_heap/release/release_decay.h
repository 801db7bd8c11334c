// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Decides how much unused memory goes back to the system as time passes.

#ifndef TCMALLOC_PAGE_HEAP_RELEASE_RELEASE_DECAY_H_
#define TCMALLOC_PAGE_HEAP_RELEASE_RELEASE_DECAY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "pages/page_types.h"

namespace tcmalloc {

// Memory is unneeded if it was free during a whole half-life: its amount is the least that was free
// at any time of the half-life. From then on unneeded memory halves in each half-life. A program
// that uses the same memory again and again, with pauses shorter than a half-life, thus loses none
// of it. A program that falls idle keeps next to nothing.
//
// Time is divided into kSteps steps for each half-life; the least free memory of each step is
// remembered for a half-life. The program was idle if several steps passed without a call of
// PagesDue and hardly anything was taken, in the whole time or since NoteIdleSince. The memory that
// is free now then counts as free during all of these steps but the first. Times are nanoseconds of
// one clock, and may stand still or, between threads, step back a little. Not thread safe.
class ReleaseDecay {
 public:
  static constexpr int kSteps = 8;
  // The program counts as idle if it takes no more than this many spans.
  static constexpr uint64_t kFewTakes = 256;

  constexpr ReleaseDecay() = default;

  // 0 for never.
  void set_half_life(uint64_t ns) {
    step_ns_ = ns == 0 ? 0 : std::max<uint64_t>(ns / kSteps, 1);
    owed_ = Length(0);
  }
  uint64_t step_ns() const { return step_ns_; }
  // Exact to within kSteps nanoseconds.
  uint64_t half_life_ns() const { return step_ns_ * kSteps; }

  // Notes that `free` pages are free after some were taken.
  void NoteFree(Length free) {
    least_ = std::min(least_, free);
    excess_ = std::min(excess_, free);
    ++takes_;
  }

  // Moves on to `now`, when `free` pages are free. Returns the number of them that should be
  // released. They stay due until NoteReleased is called for them.
  Length PagesDue(uint64_t now, Length free);

  // Notes that hardly anything was taken since `since`, however much was before it in the same
  // step.
  void NoteIdleSince(uint64_t since, Length free) {
    PagesDue(since, free);
    takes_ = 0;
  }

  // Makes `n` free pages due, or all if there are fewer, however lately they were needed, until
  // they are taken or this is called again.
  void MakeDue(Length n) {
    if (step_ns_ != 0) excess_ = n;
  }

  // Notes that `n` free pages were released, whether they were due or not.
  void NoteReleased(Length n);

 private:
  void EndStep();
  void Advance(uint64_t steps, Length free);
  Length Unneeded() const;

  uint64_t step_ns_ = 0;
  uint64_t step_start_ = 0;  // 0 before the first call of Due
  Length least_;             // in the step that runs
  uint64_t takes_ = 0;       // since the last call of Due
  Length least_of_[kSteps];  // in the steps before, as a ring
  size_t next_ = 0;          // in that ring
  Length owed_;
  Length excess_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_RELEASE_RELEASE_DECAY_H_
