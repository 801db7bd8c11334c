// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Chooses the allocations that are samples.

#ifndef TCMALLOC_CACHE_SAMPLE_COUNTDOWN_H_
#define TCMALLOC_CACHE_SAMPLE_COUNTDOWN_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/relaxed.h"

namespace tcmalloc {

// The mean number of bytes between two samples, for all threads; 0 takes none. Any thread may
// change it at any time.
using SamplePeriod = Relaxed<uint64_t>;
inline constinit const SamplePeriod kNoSamples{0};

// Longer than any program runs. No sum of it and a block overflows.
inline constexpr int64_t kNoSampleDistance = int64_t{1} << 60;

// Returns the natural logarithm of u / 2^53, for u in [1, 2^53]. The error is below 1e-11.
double LogOfFraction(uint64_t u);

// Draws the distance to the next sample from the exponential distribution whose mean is `period`
// bytes. Advances *random.
int64_t DrawSampleDistance(uint64_t period, uint64_t* random);

// Samples are the points of a Poisson process over the bytes that are allocated one after the
// other. An allocation is a sample if a point lies in it, which for a block of s bytes has the
// probability 1 - exp(-s / period). The process has no memory, so that it may begin anew at the
// start of any allocation, and after each sample it does.
//
// Counts the bytes of one thread. Owned by that thread.
class SampleCountdown {
 public:
  constexpr SampleCountdown() = default;

  void Initialize(uint64_t seed, const SamplePeriod& period) {
    random_ = seed;
    Restart(period);
  }

  // Returns false if Pass need not be called.
  bool IsOn(const SamplePeriod& period) const { return (period_ | period) != 0; }

  // Passes `bytes`, which end with an allocation of `size` bytes. Returns true if that is a sample.
  // Requires that bytes without the allocation are at most distance().
  bool Pass(uint64_t bytes, size_t size, const SamplePeriod& period) {
    if (TCMALLOC_UNLIKELY(period_ != period)) {
      Restart(period);
      bytes = size;
    }
    distance_ -= static_cast<int64_t>(bytes);
    if (TCMALLOC_LIKELY(distance_ >= 0)) return false;
    Restart(period);
    return true;
  }

  // Returns the bytes up to the next sample.
  int64_t distance() const { return distance_; }

 private:
  void Restart(const SamplePeriod& period) {
    period_ = period;
    distance_ = kNoSampleDistance;
    if (period_ != 0) distance_ = DrawSampleDistance(period_, &random_);
  }

  int64_t distance_ = kNoSampleDistance;
  uint64_t period_ = 0;  // that the distance was drawn for
  uint64_t random_ = 0;
};

// Counts the bytes that no thread counts: those of large blocks, and of threads without a cache.
// Thread safe, without a lock.
class SharedSampleCountdown {
 public:
  constexpr SharedSampleCountdown() = default;

  // Makes the samples those of this seed. Called before the first one.
  void Seed(uint64_t seed) { draws_.store(seed, std::memory_order_relaxed); }

  // Passes an allocation of `size` bytes. Returns true if it is a sample.
  bool Pass(size_t size, const SamplePeriod& period) {
    const uint64_t bytes = period;
    return bytes != 0 && PassBy(size, bytes);
  }

 private:
  bool PassBy(size_t size, uint64_t period);
  int64_t Draw(uint64_t period);

  std::atomic<int64_t> left_{0};  // bytes up to the next sample
  Relaxed<uint64_t> period_ = 0;
  std::atomic<uint64_t> draws_{0};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_SAMPLE_COUNTDOWN_H_
