// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_STRESS_API_RANDOM_H_
#define TCMALLOC_TESTS_STRESS_API_RANDOM_H_

#include <cstddef>
#include <cstdint>

namespace tcmalloc::testing {

__extension__ using UInt128 = unsigned __int128;

// A repeatable generator (a Weyl sequence through a mixer): one seed, one sequence, everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15u;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
  }

  // In [0, limit); limit is not 0.
  std::size_t Below(std::size_t limit) {
    return static_cast<std::size_t>((static_cast<UInt128>(Next()) * limit) >> 64);
  }

  // In [low, high].
  std::size_t Between(std::size_t low, std::size_t high) { return low + Below(high - low + 1); }

  // In [low, high], every power of two equally likely.
  std::size_t Logarithmic(std::size_t low, std::size_t high) {
    const int low_bits = 63 - __builtin_clzll(low);
    const int high_bits = 63 - __builtin_clzll(high);
    const auto bits =
        Between(static_cast<std::size_t>(low_bits), static_cast<std::size_t>(high_bits));
    const std::size_t value = (std::size_t{1} << bits) + Below(std::size_t{1} << bits);
    return value < low ? low : value > high ? high : value;
  }

  bool Percent(unsigned percent) { return Below(100) < percent; }
  bool OneIn(std::size_t count) { return Below(count) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_API_RANDOM_H_
