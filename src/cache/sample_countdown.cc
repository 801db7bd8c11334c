// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/sample_countdown.h"

#include <bit>

#include "base/random.h"
#include "system/clock.h"
#include "system/random.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

constinit std::atomic<uint64_t> thread_seeds{0};

}  // namespace

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

uint64_t NewThreadSeed() {
  constexpr uint64_t kSalt = 0x7468726561647321;
  return RandomSeed(kSalt + thread_seeds.fetch_add(1, std::memory_order_relaxed));
}

// Brothers may be born at the same time, and one may have the number that another one had.
void RenewThreadSeeds() {
  const uint64_t process = NextRandom(static_cast<uint64_t>(system_calls.gettid()));
  const auto now = static_cast<uint64_t>(MonotonicNanoseconds());
  thread_seeds.fetch_add(NextRandom(process + now), std::memory_order_relaxed);
}

void SampleCountdown::Restart(uint64_t period) {
  period_ = period;
  distance_ = kNoSampleDistance;
  if (period_ != 0) distance_ = DrawSampleDistance(period_ << doublings_, &random_);
}

// The allocations in the interval have had their chance at the old period. So the last one is a
// sample if the point lies in it, and is not drawn again. If there were no samples, its chance is
// yet to come.
DrawnPeriod SampleCountdown::PassChange(uint64_t bytes, size_t size, const SamplePeriod& period) {
  const DrawnPeriod old = period_ << doublings_;
  const bool has_point = distance_ < static_cast<int64_t>(bytes);
  doublings_ = 0;
  Restart(period);
  if (old == 0) return Pass(size, size, period);
  return has_point && period_ != 0 ? old : 0;
}

DrawnPeriod SampleCountdown::EndDistance() {
  const DrawnPeriod drawn = period_ << doublings_;
  if (SamplePace::Applies(period_)) {
    const int64_t now = MonotonicNanoseconds();
    doublings_ = SamplePace::Next(doublings_, now - last_sample_ns_);
    last_sample_ns_ = now;
  }
  Restart(period_);
  return drawn;
}

SampleDraw SharedSampleCountdown::PassBy(size_t size, uint64_t period) {
  if (period_ != period) {
    period_ = period;
    left_.store(Draw(period, 0), std::memory_order_relaxed);
  }
  const auto bytes = static_cast<int64_t>(size);
  Left left = left_.load(std::memory_order_relaxed);
  while (true) {
    const bool sample = left / kByte < bytes;
    const auto doublings = static_cast<uint32_t>(left % kByte);
    const Left next =
        sample ? Draw(period, NextDoublings(period, doublings)) : left - bytes * kByte;
    if (left_.compare_exchange_weak(left, next, std::memory_order_relaxed)) {
      return {.is_sample = sample, .period = period << doublings};
    }
  }
}

uint32_t SharedSampleCountdown::NextDoublings(uint64_t period, uint32_t doublings) {
  if (pace_ == Pace::kFree || !SamplePace::Applies(period)) return 0;
  const int64_t now = MonotonicNanoseconds();
  const int64_t gap = now - last_sample_ns_;
  last_sample_ns_ = now;
  return SamplePace::Next(doublings, gap);
}

SharedSampleCountdown::Left SharedSampleCountdown::Draw(uint64_t period, uint32_t doublings) {
  uint64_t random = draws_.fetch_add(1, std::memory_order_relaxed);
  return DrawSampleDistance(period << doublings, &random) * kByte + doublings;
}

}  // namespace tcmalloc
