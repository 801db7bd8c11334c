// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/sample_weight.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "cache/sample_countdown.h"
#include "heap_profile/text_samples.h"
#include "heap_profile/whole_blocks.h"

namespace tcmalloc {
namespace {

TEST(SampleWeightTest, ProbabilityIsThatOfTheMathLibrary) {
  for (double x = 1e-9; x < 1000; x *= 1.1) {
    const double expected = -std::expm1(-x);
    ASSERT_NEAR(ProbabilityOfPoint(x) / expected, 1, 1e-11) << x;
  }
}

TEST(SampleWeightTest, SmallBlocksStandForAPeriodAndLargeOnesForThemselves) {
  EXPECT_NEAR(SampleWeight(100.0 / (512 << 10)) * 100, 512 << 10, 100);
  EXPECT_NEAR(SampleWeight(double{1 << 30} / (512 << 10)), 1, 1e-12);
}

constexpr size_t kPeriod = 16 << 10;

// A thread that allocates. Its clock looks at the countdown after an interval, as that of a cache
// does.
class SampledThread {
 public:
  explicit SampledThread(uint64_t seed) {
    countdown_.Initialize(seed, period_);
    SetInterval();
  }

  // Returns true if the block is a sample.
  bool Allocate(size_t size) {
    passed_ += static_cast<int64_t>(size);
    if (passed_ <= interval_) return false;
    const bool sample = countdown_.Pass(static_cast<uint64_t>(passed_), size, period_) != 0;
    passed_ = 0;
    SetInterval();
    return sample;
  }

 private:
  void SetInterval() { interval_ = std::min<int64_t>(countdown_.distance(), 4096); }

  const SamplePeriod period_ = kPeriod;
  SampleCountdown countdown_;
  int64_t passed_ = 0;
  int64_t interval_ = 0;
};

// A block of `size` bytes that becomes `grown` long where it is, if that is not 0.
struct Block {
  size_t size;
  size_t grown = 0;
};

// Returns the n-th of some numbers that are spread evenly over [0, 1).
double Spread(int n) { return std::fmod(n * 0.6180339887498949, 1); }

size_t Between(double low, double high, int n) {
  return static_cast<size_t>(low * std::pow(high / low, Spread(n)));
}

struct Mix {
  const char* name;
  Block (*block)(int n);
};

constexpr Mix kMixes[] = {
    {"of 8 bytes", [](int) { return Block{8}; }},
    {"of 1 to 64 bytes", [](int n) { return Block{1 + static_cast<size_t>(n) % 64}; }},
    {"of 1000 and 10 bytes", [](int n) { return Block{n % 3 == 0 ? size_t{1000} : 10}; }},
    {"of all orders of magnitude", [](int n) { return Block{Between(8, 1e5, n)}; }},
    {"of a period", [](int) { return Block{kPeriod}; }},
    {"around a period", [](int n) { return Block{Between(4e3, 6e4, n)}; }},
    {"of many periods", [](int n) { return Block{Between(5e4, 2e6, n)}; }},
    {"small, and few large", [](int n) { return Block{n % 1000 == 7 ? size_t{300'000} : 50}; }},
    {"that grow in place", [](int n) { return Block{Between(500, 5e3, n), Between(6e3, 4e4, n)}; }},
    {"of which some grow", [](int n) { return Block{3000, n % 2 == 0 ? size_t{9000} : 0}; }},
};

// What is known of the blocks, or estimated from samples.
struct Sums {
  double objects = 0;
  double bytes = 0;
};

struct Outcome {
  Sums known, estimated, variance;
};

// Allocates some megabytes in four threads by turns.
Outcome Estimate(const Mix& mix, uint64_t seed) {
  constexpr double kBytes = 4e6;
  std::vector<SampledThread> threads;
  for (uint64_t i = 0; i < 4; ++i) threads.emplace_back(seed * 4 + i + 1);
  Outcome outcome;
  for (int n = 0; outcome.known.bytes < kBytes || n < 200; ++n) {
    SampledThread& thread = threads[static_cast<size_t>(n) % 4];
    const Block block = mix.block(n);
    bool sample = thread.Allocate(block.size);
    // What was no sample has another chance with the bytes that it gains.
    if (block.grown != 0 && !sample) sample = thread.Allocate(block.grown - block.size);
    const auto size = static_cast<double>(block.grown != 0 ? block.grown : block.size);
    const double weight = SampleWeight(size / double{kPeriod});
    outcome.known.objects += 1;
    outcome.known.bytes += size;
    outcome.variance.objects += weight - 1;
    outcome.variance.bytes += size * size * (weight - 1);
    if (!sample) continue;
    outcome.estimated.objects += weight;
    outcome.estimated.bytes += weight * size;
  }
  return outcome;
}

// The estimates of bytes and objects are off by their standard deviations: seldom by more than
// three of them, and on average by none. The seeds are always the same.
TEST(SampleWeightTest, EstimatesOfManyMixesAreWithinTheirBounds) {
  constexpr int kSeeds = 30;
  int far = 0;
  for (const Mix& mix : kMixes) {
    Sums sum;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      const Outcome outcome = Estimate(mix, seed);
      const double objects =
          (outcome.estimated.objects - outcome.known.objects) / std::sqrt(outcome.variance.objects);
      const double bytes =
          (outcome.estimated.bytes - outcome.known.bytes) / std::sqrt(outcome.variance.bytes);
      for (const double off : {objects, bytes}) far += std::abs(off) > 3 ? 1 : 0;
      sum.objects += objects;
      sum.bytes += bytes;
    }
    EXPECT_LT(std::abs(sum.objects), 3 * std::sqrt(kSeeds)) << "objects " << mix.name;
    EXPECT_LT(std::abs(sum.bytes), 3 * std::sqrt(kSeeds)) << "bytes " << mix.name;
  }
  // One in 370 is expected.
  EXPECT_LE(far, 6) << "of " << 2 * kSeeds * std::size(kMixes);
}

// What a reader of gperftools' texts makes of samples: it multiplies by the weight of a sample of
// this size at the period that the text names.
double ReadAsText(const std::vector<Sample>& samples, double period) {
  TextSamples texts(static_cast<uint64_t>(period));
  double blocks = 0;
  for (const Sample& sample : samples) {
    const StackRecord record = texts.RecordOf(sample);
    EXPECT_EQ(record.bytes, record.count * sample.requested);
    blocks += static_cast<double>(record.count) *
              SampleWeight(static_cast<double>(sample.requested) / period);
  }
  return blocks;
}

TEST(TextSamplesTest, SamplesOfTheNamedPeriodCountOnce) {
  for (const uint64_t size : {1, 1000, 100'000, 10'000'000}) {
    TextSamples texts(512 << 10);
    const auto points = static_cast<float>(static_cast<double>(size) / (512 << 10));
    const Sample sample{.requested = size, .allocated = size, .weight = SampleWeight(points)};
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(texts.RecordOf(sample).count, 1u) << size;
  }
}

TEST(TextSamplesTest, SamplesOfAnotherPeriodKeepTheirWeight) {
  constexpr double kNamed = 2 << 20;
  for (const double drawn : {kNamed * 32, kNamed * 2, kNamed / 3}) {
    for (const uint64_t size : {100, 100'000, 5'000'000}) {
      const double weight = SampleWeight(static_cast<double>(size) / drawn);
      const std::vector<Sample> samples(500,
                                        {.requested = size, .allocated = size, .weight = weight});
      const double one = SampleWeight(static_cast<double>(size) / kNamed);
      EXPECT_NEAR(ReadAsText(samples, kNamed), 500 * weight, one) << size << " of " << drawn;
    }
  }
}

TEST(WholeBlocksTest, TheSumIsRight) {
  WholeBlocks blocks;
  int64_t sum = 0;
  for (int i = 0; i < 1000; ++i) sum += blocks.Round(1.582);
  EXPECT_EQ(sum, 1582);
}

}  // namespace
}  // namespace tcmalloc
