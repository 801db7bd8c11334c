// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/release/release_decay.h"

#include <iterator>

namespace tcmalloc {
namespace {

// 2^(-1/kSteps): the part of unneeded memory that is left after one step.
static_assert(ReleaseDecay::kSteps == 8);
constexpr double kLeftByStep = 0.91700404320467123;

// The steps after which next to nothing is left.
constexpr uint64_t kMostSteps = 64 * ReleaseDecay::kSteps;

Length Less(Length a, Length b) { return a > b ? a - b : Length(0); }

}  // namespace

Length ReleaseDecay::Unneeded() const {
  return std::min(least_, *std::min_element(std::begin(least_of_), std::end(least_of_)));
}

void ReleaseDecay::EndStep() {
  least_of_[next_] = least_;
  next_ = (next_ + 1) % kSteps;
  const Length unneeded = Less(Unneeded(), owed_);
  const auto kept = static_cast<uintptr_t>(static_cast<double>(unneeded.pages()) * kLeftByStep);
  owed_ += unneeded - Length(kept);
}

void ReleaseDecay::Advance(uint64_t steps, Length free) {
  const bool idle = takes_ <= kFewTakes;
  for (; steps > 1; --steps) {
    EndStep();
    if (idle) least_ = free;
  }
  EndStep();
  least_ = free;
}

Length ReleaseDecay::PagesDue(uint64_t now, Length free) {
  if (step_ns_ == 0) return Length(0);
  if (step_start_ == 0) step_start_ = now;
  if (now > step_start_) {
    const uint64_t steps = (now - step_start_) / step_ns_;
    if (steps > 0) Advance(std::min(steps, kMostSteps), free);
    takes_ = 0;
    step_start_ += steps * step_ns_;
  }
  owed_ = std::min({owed_, free, Unneeded()});
  return std::max(owed_, std::min(excess_, free));
}

void ReleaseDecay::NoteReleased(Length n) {
  owed_ = Less(owed_, n);
  excess_ = Less(excess_, n);
  least_ = Less(least_, n);
  for (Length& least : least_of_) least = Less(least, n);
}

}  // namespace tcmalloc
