// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/sample_countdown.h"

#include <bit>

#include "base/random.h"

namespace tcmalloc {

double LogOfFraction(uint64_t u) {
  constexpr double kLn2 = 0.693147180559945309417;
  // u = m * 2^e with m in [0.75, 1.5), so that t below is at most 0.2.
  auto exponent = static_cast<int>(std::bit_width(u));
  double m = static_cast<double>(u) / static_cast<double>(uint64_t{1} << exponent);
  if (m < 0.75) {
    m *= 2;
    --exponent;
  }
  const double t = (m - 1) / (m + 1);
  const double square = t * t;
  // ln m = 2 * (t + t^3 / 3 + t^5 / 5 + ...)
  double sum = 0;
  for (int odd = 15; odd >= 1; odd -= 2) sum = sum * square + 1.0 / odd;
  return 2 * t * sum + (exponent - 53) * kLn2;
}

int64_t DrawSampleDistance(uint64_t period, uint64_t* random) {
  *random = NextRandom(*random);
  const uint64_t u = (*random >> 11) + 1;
  const double distance = -LogOfFraction(u) * static_cast<double>(period);
  return distance < static_cast<double>(kNoSampleDistance) ? static_cast<int64_t>(distance)
                                                           : kNoSampleDistance;
}

bool SharedSampleCountdown::PassBy(size_t size, uint64_t period) {
  if (period_ != period) {
    period_ = period;
    left_.store(Draw(period), std::memory_order_relaxed);
  }
  const auto bytes = static_cast<int64_t>(size);
  int64_t distance = left_.load(std::memory_order_relaxed);
  while (true) {
    const bool sample = distance < bytes;
    const int64_t next = sample ? Draw(period) : distance - bytes;
    if (left_.compare_exchange_weak(distance, next, std::memory_order_relaxed)) return sample;
  }
}

int64_t SharedSampleCountdown::Draw(uint64_t period) {
  uint64_t random = draws_.fetch_add(1, std::memory_order_relaxed);
  return DrawSampleDistance(period, &random);
}

}  // namespace tcmalloc
