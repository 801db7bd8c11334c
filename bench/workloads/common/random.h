// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#ifndef TCMALLOC_BENCH_WORKLOADS_COMMON_RANDOM_H_
#define TCMALLOC_BENCH_WORKLOADS_COMMON_RANDOM_H_

#include <cstddef>
#include <cstdint>

namespace tcmalloc::bench {

// xorshift64*: the same numbers on every machine and with every standard library, at a cost far
// below that of a malloc.
class Random {
 public:
  // Streams of different indices are unrelated, so that each thread draws its own.
  explicit Random(uint64_t index) : state_((index + 1) * 0x9E3779B97F4A7C15u) {
    if (state_ == 0) state_ = 1;
    for (int i = 0; i < kWarmUp; ++i) Next();
  }

  uint64_t Next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1Du;
  }

  // Uniform in [0, bound); bound is at least 1 and below 2^32.
  uint64_t Below(uint64_t bound) { return ((Next() >> 32) * bound) >> 32; }

  // Uniform in [low, high].
  size_t Between(size_t low, size_t high) { return low + Below(high - low + 1); }

  // True in this many of a hundred cases.
  bool Percent(uint64_t percent) { return Below(100) < percent; }

  // In [1, bound] and mostly small: each power of two is about as likely as the next one, which is
  // nearer to what programs ask for than a uniform choice.
  size_t SkewedUpTo(size_t bound) {
    const int bits = 64 - __builtin_clzll(bound);
    const size_t size = 1 + Below(uint64_t{1} << (1 + Below(static_cast<uint64_t>(bits))));
    return size < bound ? size : bound;
  }

 private:
  static constexpr int kWarmUp = 8;

  uint64_t state_;
};

}  // namespace tcmalloc::bench

#endif  // TCMALLOC_BENCH_WORKLOADS_COMMON_RANDOM_H_
