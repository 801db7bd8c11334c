// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Samples as they count in texts of gperftools' format.

#ifndef TCMALLOC_HEAP_PROFILE_TEXT_SAMPLES_H_
#define TCMALLOC_HEAP_PROFILE_TEXT_SAMPLES_H_

#include <cstdint>

#include "heap/observer.h"
#include "heap_profile/sample_table.h"
#include "heap_profile/sample_weight.h"
#include "heap_profile/whole_blocks.h"

namespace tcmalloc {

// Readers of these texts multiply what a record counts by the weight of a sample of its size at the
// one period that the text names. A sample that was drawn with another period is counted as often
// as gives its own weight then. The remainder of rounding goes to the next record.
class TextSamples {
 public:
  explicit TextSamples(uint64_t period) : period_(static_cast<double>(period)) {}

  // Returns the record without its frames. Its count may be 0, and then it is to be left out.
  StackRecord RecordOf(const Sample& sample) {
    const uint64_t count = CountOf(sample);
    return {.count = count, .bytes = count * sample.requested, .frames = {}};
  }

 private:
  uint64_t CountOf(const Sample& sample) {
    if (period_ == 0) return 1;
    // A large block, which has no twin, was drawn by the bytes of its span.
    const uint64_t drawn = sample.twin == 0 ? sample.allocated : sample.requested;
    const double count = sample.weight * ProbabilityOfPoint(static_cast<double>(drawn) / period_);
    // Weights are not exact, and most samples were drawn with this period.
    constexpr double kError = 1e-5;
    if (count > 1 - kError && count < 1 + kError) return 1;
    return static_cast<uint64_t>(whole_.Round(count));
  }

  double period_;
  WholeBlocks whole_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_TEXT_SAMPLES_H_
