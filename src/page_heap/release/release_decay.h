// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// How much unused memory goes back to the system as time passes.

#ifndef TCMALLOC_PAGE_HEAP_RELEASE_RELEASE_DECAY_H_
#define TCMALLOC_PAGE_HEAP_RELEASE_RELEASE_DECAY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "pages/page_types.h"

namespace tcmalloc {

// Memory counts as unneeded once it was free during a whole half-life: the least that was free at
// any time of it. From then on what is unneeded halves in each half-life. A program that uses the
// same memory again and again, with pauses shorter than a half-life, thus loses none of it, and one
// that falls idle keeps next to nothing.
//
// Time is divided into kSteps steps for each half-life; the least of each step is remembered for a
// half-life. Where nobody asked for several steps what is due, and hardly anything was taken (in
// the whole time, or since NoteIdleSince), the program was idle: during all of them but the first,
// what is free now counts as free. Times are nanoseconds of one clock, and may stand still or,
// between threads, step back a little. Not thread safe.
class ReleaseDecay {
 public:
  static constexpr int kSteps = 8;
  // So many spans that are taken are hardly anything.
  static constexpr uint64_t kFewTakes = 256;

  constexpr ReleaseDecay() = default;

  // 0 for never.
  void set_half_life(uint64_t ns) {
    step_ns_ = ns == 0 ? 0 : std::max<uint64_t>(ns / kSteps, 1);
    owed_ = Length(0);
  }
  uint64_t step_ns() const { return step_ns_; }
  // To within kSteps nanoseconds.
  uint64_t half_life_ns() const { return step_ns_ * kSteps; }

  // Notes that `free` pages are free after some were taken.
  void NoteFree(Length free) {
    least_ = std::min(least_, free);
    excess_ = std::min(excess_, free);
    ++takes_;
  }

  // Moves on to `now`, when `free` pages are free. Returns how many of them should be released;
  // until NoteReleased is called for them, they stay due.
  Length Due(uint64_t now, Length free);

  // Says that hardly anything was taken since `since`, however much before it in the same step.
  void NoteIdleSince(uint64_t since, Length free) {
    Due(since, free);
    takes_ = 0;
  }

  // Makes everything due that is free until some of it is taken, however lately it was needed.
  void MakeFreeDue() {
    if (step_ns_ != 0) excess_ = Length::Max();
  }

  // `n` free pages were released, due or not.
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
