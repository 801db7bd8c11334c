// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Bounds the share of time that samples take.

#ifndef TCMALLOC_CACHE_SAMPLE_PACE_H_
#define TCMALLOC_CACHE_SAMPLE_PACE_H_

#include <cstdint>

#include "options/options.h"

namespace tcmalloc {

// A sample costs about a microsecond, whatever the program does with its blocks. A program that
// writes to the bytes that it allocates takes a sample in several hundred microseconds at the
// default period; one that hardly touches them takes hundreds of times as many. So the default
// period is doubled, up to kMostDoublings times, while samples come less than kShortGap apart, and
// halved as soon as they come seldom.
//
// The doublings are chosen before the next distance is drawn and stay what they are until its
// sample. So each block's probability follows from what was before it, and estimates with that
// period stay unbiased. A period that somebody has set is not changed.
class SamplePace {
 public:
  // In nanoseconds.
  static constexpr int64_t kShortGap = 100'000;
  static constexpr uint32_t kMostDoublings = 5;

  static constexpr bool Applies(uint64_t period) { return period == kDefaultSamplePeriod; }

  // Returns how often the period is doubled for the next distance, after a sample that came
  // `gap` nanoseconds after the one before and whose period was doubled `doublings` times.
  static constexpr uint32_t Next(uint32_t doublings, int64_t gap) {
    if (gap < kShortGap) return doublings < kMostDoublings ? doublings + 1 : kMostDoublings;
    for (; doublings > 0 && gap >= 2 * kShortGap; gap /= 2) --doublings;
    return doublings;
  }
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_SAMPLE_PACE_H_
