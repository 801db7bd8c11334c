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
#include "cache/sample_pace.h"

namespace tcmalloc {

// The mean number of bytes between two samples, for all threads; 0 takes none. Any thread may
// change it at any time.
using SamplePeriod = Relaxed<uint64_t>;
inline constinit const SamplePeriod kNoSamples{0};

// The mean distance of the samples among which a block was drawn, which may be longer than the
// SamplePeriod; 0 of a block that is no sample.
using DrawnPeriod = uint64_t;

// How a block was drawn that may be no sample.
struct SampleDraw {
  bool is_sample = false;
  uint64_t period = 0;  // the mean distance of samples; 0 if there are none
};

// Returns the number of points that are expected in so many bytes, if they are `period` bytes apart
// on average; 0 if there are none.
inline float PointsIn(size_t bytes, uint64_t period) {
  return TCMALLOC_LIKELY(period == 0) ? 0 : static_cast<float>(bytes) / static_cast<float>(period);
}

// Longer than any program runs. No sum of it and a block overflows, nor does eight times it.
inline constexpr int64_t kNoSampleDistance = int64_t{1} << 59;

// Returns the natural logarithm of u / 2^53, for u in [1, 2^53]. The error is below 1e-11.
double LogOfFraction(uint64_t u);

// Draws the distance to the next sample from the exponential distribution whose mean is `period`
// bytes. Advances *random.
int64_t DrawSampleDistance(uint64_t period, uint64_t* random);

// Returns a number that differs from process to process and from call to call, from which a thread
// draws. Thread safe, without a lock; async-signal-safe.
uint64_t NewThreadSeed();
// Makes the numbers to come others than those of the parent. Called in the child of a fork.
void RenewThreadSeeds();

// Samples are the points of a Poisson process over the bytes that are allocated one after the
// other. An allocation is a sample if a point lies in it, which for a block of s bytes has the
// probability 1 - exp(-s / period). The process has no memory, so that it may begin anew after any
// allocation. After each sample it does, with the period that SamplePace then allows.
//
// Counts the bytes of one thread. Owned by that thread.
class SampleCountdown {
 public:
  constexpr SampleCountdown() = default;

  void Initialize(uint64_t seed, const SamplePeriod& period) {
    random_ = seed;
    doublings_ = 0;
    Restart(period);
  }

  // Returns false if Pass need not be called.
  bool IsOn(const SamplePeriod& period) const { return (period_ | period) != 0; }

  // Passes `bytes`, which end with an allocation of `size` bytes. Returns the period if that is a
  // sample, else 0. Requires that bytes without the allocation are at most distance().
  DrawnPeriod Pass(uint64_t bytes, size_t size, const SamplePeriod& period) {
    if (TCMALLOC_UNLIKELY(period_ != period)) return PassChange(bytes, size, period);
    distance_ -= static_cast<int64_t>(bytes);
    return TCMALLOC_LIKELY(distance_ >= 0) ? 0 : EndDistance();
  }

  // Draws the next sample anew from another seed, `passed` bytes after the last Pass. The process
  // begins there.
  void Redraw(uint64_t seed, int64_t passed) {
    random_ = seed;
    Restart(period_);
    distance_ += passed;
  }

  // Returns the bytes up to the next sample.
  int64_t distance() const { return distance_; }

 private:
  void Restart(uint64_t period);
  // Does the work of Pass when the period has changed.
  DrawnPeriod PassChange(uint64_t bytes, size_t size, const SamplePeriod& period);
  // Draws the distance after a sample and returns the period of that sample.
  DrawnPeriod EndDistance();

  int64_t distance_ = kNoSampleDistance;
  uint64_t period_ = 0;  // that the distance was drawn for, without its doublings
  uint64_t random_ = 0;
  int64_t last_sample_ns_ = 0;  // at a period to which SamplePace applies
  uint32_t doublings_ = 0;      // of the period, by SamplePace
};

// Counts the bytes that no thread counts: those of large blocks, and of threads without a cache.
// Thread safe, without a lock.
class SharedSampleCountdown {
 public:
  // Says if the period may be doubled by SamplePace.
  enum class Pace : uint8_t { kBounded, kFree };

  constexpr explicit SharedSampleCountdown(Pace pace = Pace::kBounded) : pace_(pace) {}

  // Makes the samples to come those of this seed. Called while there is one thread.
  void Seed(uint64_t seed) {
    draws_.store(seed, std::memory_order_relaxed);
    period_ = 0;
  }

  // Passes an allocation of `size` bytes.
  SampleDraw Pass(size_t size, const SamplePeriod& period) {
    const uint64_t bytes = period;
    return bytes != 0 ? PassBy(size, bytes) : SampleDraw();
  }

 private:
  // Bytes up to the next sample, and in the lowest bits how often their period was doubled, so that
  // whoever comes to the sample knows its period.
  using Left = int64_t;
  static constexpr Left kByte = 8;
  static_assert(SamplePace::kMostDoublings < kByte);

  SampleDraw PassBy(size_t size, uint64_t period);
  Left Draw(uint64_t period, uint32_t doublings);
  uint32_t NextDoublings(uint64_t period, uint32_t doublings);

  std::atomic<Left> left_{0};
  Relaxed<uint64_t> period_ = 0;  // without doublings
  Relaxed<int64_t> last_sample_ns_ = 0;
  Pace pace_;
  std::atomic<uint64_t> draws_{0};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_SAMPLE_COUNTDOWN_H_
