// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// For how many blocks a sample stands.

#ifndef TCMALLOC_HEAP_PROFILE_SAMPLE_WEIGHT_H_
#define TCMALLOC_HEAP_PROFILE_SAMPLE_WEIGHT_H_

namespace tcmalloc {

// Returns 1 - exp(-x), for x >= 0, with a relative error below 1e-12.
constexpr double ProbabilityOfPoint(double x) {
  if (x > 64) return 1;
  int doublings = 0;
  for (; x > 0.25; x /= 2) ++doublings;
  // x - x^2 / 2! + x^3 / 3! - ..., from the last term to the first.
  double p = 0;
  for (int n = 9; n >= 1; --n) p = x / n * (1 - p);
  // 1 - exp(-2x) = p * (2 - p), if p is 1 - exp(-x).
  for (; doublings > 0; --doublings) p *= 2 - p;
  return p;
}

// Returns the number of blocks for which a sample stands in whose bytes `points` points of the
// process were expected: a block of s bytes, with points T bytes apart on average, has s / T of
// them, and is a sample with the probability 1 - exp(-s / T). Requires points > 0.
constexpr double SampleWeight(double points) { return 1 / ProbabilityOfPoint(points); }

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_SAMPLE_WEIGHT_H_
