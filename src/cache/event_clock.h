// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A clock that ticks in allocated bytes.

#ifndef TCMALLOC_CACHE_EVENT_CLOCK_H_
#define TCMALLOC_CACHE_EVENT_CLOCK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/random.h"
#include "base/relaxed.h"

namespace tcmalloc {

// Counts the bytes that a thread allocates, by one subtraction per allocation. The clock expires
// now and then, and the allocation that makes it expire is a sample. The number of allocations is
// estimated from the samples.
//
// The intervals are random, so that no pattern of sizes can stay in step with them. They are
// bounded. Where the owner allows longer ones, the interval after a large block grows with the
// bytes that were counted: a thread that allocates such blocks takes the slow path less often, and
// the estimate of one that allocates few is as good.
//
// An owner whose fast path can count few bytes at once holds the rest of the interval back, and
// gives it out where the fast path has refused.
//
// Owned by one thread. Others may call the const methods, which give estimates. The owner's
// subtraction must stay one plain instruction, so the remaining bytes are not an atomic variable;
// other threads read them by one load.
class EventClock {
 public:
  static constexpr uint64_t kMeanInterval = 128 << 10;
  static constexpr uint64_t kLongestInterval = kMeanInterval / 2 + kMeanInterval;
  // The mean interval is at most this part of the bytes that were counted, or kMeanInterval, which
  // it is after any block that is not large.
  static constexpr uint64_t kGrowthShare = 64;
  static constexpr size_t kLargeBlock = 1024;

  // The longest mean interval of the clocks of threads.
  static constexpr uint64_t kLongestMean = 4 * kMeanInterval;

  constexpr EventClock() = default;

  void Initialize(uint64_t seed) {
    random_ = seed;
    NextInterval(kMeanInterval);
  }

  // Returns true if the interval has run out. Then the caller takes the slow path, which calls
  // AdvanceSlow for the same allocation.
  TCMALLOC_ALWAYS_INLINE bool Advance(size_t size) {
    remaining_ -= static_cast<int64_t>(size);
    return remaining_ < 0;
  }

  // Holds back what remains of the interval beyond `most` bytes.
  void HoldBack(int64_t most) {
    const int64_t beyond = std::max<int64_t>(remaining_ - most, 0);
    held_back_ = static_cast<int32_t>(held_back_ + beyond);
    remaining_ -= beyond;
  }
  // Gives out so much of what was held back that up to `most` bytes remain, never more. Returns
  // false if that makes no difference. A signal handler may do the same meanwhile; the interval is
  // then a little longer or shorter.
  bool GiveOut(int64_t most) {
    auto& remaining = const_cast<volatile int64_t&>(remaining_);
    const int64_t before = remaining;
    const int64_t bytes = std::min<int64_t>(held_back_, most - before);
    if (bytes <= 0) return false;
    held_back_ = static_cast<int32_t>(held_back_ - bytes);
    remaining = before + bytes;
    return true;
  }

  // Returns true if Advance would.
  bool WouldExpire(size_t size) const { return remaining_ < static_cast<int64_t>(size); }
  // Works as Advance, but leaves the clock as it is where that would return true. Returns false
  // then.
  TCMALLOC_ALWAYS_INLINE bool TryAdvance(size_t size) {
    const int64_t remaining = remaining_ - static_cast<int64_t>(size);
    if (TCMALLOC_UNLIKELY(remaining < 0)) return false;
    remaining_ = remaining;
    return true;
  }

  // Advances by an allocation of `size` bytes, which is already counted if the interval has run
  // out. Returns the bytes of the interval, with the allocation, if it had run out before or has
  // now; otherwise 0. The next interval is `longest_mean` bytes on average at most.
  uint64_t AdvanceSlow(size_t size, uint64_t longest_mean = kMeanInterval) {
    remaining_ += held_back_;
    held_back_ = 0;
    if (remaining_ >= 0 && !Advance(size)) return 0;
    const auto bytes = static_cast<uint64_t>(passed());
    counted_bytes_ = counted_bytes_ + bytes;
    counted_allocations_ = counted_allocations_ + bytes / (size == 0 ? 1 : size);
    NextInterval(size < kLargeBlock
                     ? kMeanInterval
                     : std::clamp(counted_bytes_ / kGrowthShare, kMeanInterval, longest_mean));
    return bytes;
  }

  // Returns the bytes of the interval up to now.
  int64_t passed() const { return Passed(interval_, remaining_, held_back_); }

  // Lets the interval run out after `bytes` more at the latest.
  void ExpireWithin(int64_t bytes) {
    const int64_t cut = std::max<int64_t>(remaining_ + held_back_ - bytes, 0);
    const int64_t held_back = std::clamp<int64_t>(held_back_, 0, cut);
    held_back_ = static_cast<int32_t>(held_back_ - held_back);
    remaining_ -= cut - held_back;
    interval_ = static_cast<int32_t>(interval_ - cut);
  }

  // Returns the bytes allocated since the thread began. Another thread may read an old interval and
  // the rest of a new one.
  __attribute__((no_sanitize("thread"))) uint64_t allocated_bytes() const {
    const int64_t remaining = const_cast<const volatile int64_t&>(remaining_);
    const int64_t passed = Passed(interval_, remaining, held_back_);
    return counted_bytes_ + static_cast<uint64_t>(std::max<int64_t>(passed, 0));
  }
  // Return the bytes in the intervals that ran out, and the number of allocations in them. The
  // number is an estimate.
  uint64_t counted_bytes() const { return counted_bytes_; }
  uint64_t counted_allocations() const { return counted_allocations_; }

 private:
  static int64_t Passed(int64_t interval, int64_t remaining, int64_t held_back) {
    return interval - remaining - held_back;
  }

  void NextInterval(uint64_t mean) {
    random_ = NextRandom(random_);
    interval_ = static_cast<int32_t>(mean / 2 + random_ % mean);
    remaining_ = interval_;
  }

  int64_t remaining_ = 0;
  Relaxed<int32_t> interval_ = 0;
  Relaxed<int32_t> held_back_ = 0;
  Relaxed<uint64_t> counted_bytes_ = 0;
  Relaxed<uint64_t> counted_allocations_ = 0;
  uint64_t random_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_EVENT_CLOCK_H_
