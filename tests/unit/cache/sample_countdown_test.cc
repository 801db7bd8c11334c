// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/sample_countdown.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

#include "cache/sample_pace.h"
#include "fakes/set_clock.h"

namespace tcmalloc {
namespace {

using testing::SetClock;

TEST(SampleCountdownTest, LogarithmIsThatOfTheMathLibrary) {
  constexpr double kScale = 9007199254740992.0;  // 2^53
  for (uint64_t u = 1; u < uint64_t{1} << 53; u = u * 3 / 2 + 1) {
    ASSERT_NEAR(LogOfFraction(u), std::log(static_cast<double>(u) / kScale), 1e-10) << u;
  }
  EXPECT_EQ(LogOfFraction(uint64_t{1} << 53), 0);
}

// Sorts distances into classes of equal probability. With 63 degrees of freedom, chi-square is
// above 120 once in a hundred thousand seeds.
TEST(SampleCountdownTest, DistancesAreExponential) {
  constexpr uint64_t kPeriod = 512 << 10;
  constexpr size_t kClasses = 64;
  constexpr int kDraws = 200'000;
  for (uint64_t random : {1, 17, 12345}) {
    int counts[kClasses] = {};
    for (int i = 0; i < kDraws; ++i) {
      const auto distance = static_cast<double>(DrawSampleDistance(kPeriod, &random));
      const double probability = -std::expm1(-distance / double{kPeriod});
      ++counts[std::min(static_cast<size_t>(probability * kClasses), kClasses - 1)];
    }
    constexpr double kExpected = double{kDraws} / kClasses;
    double chi_square = 0;
    for (const int count : counts)
      chi_square += (count - kExpected) * (count - kExpected) / kExpected;
    EXPECT_LT(chi_square, 120);
  }
}

// Counts the samples among `blocks` allocations of `size` bytes, in intervals as a clock has them.
int CountSamples(SampleCountdown& countdown, size_t size, int blocks, const SamplePeriod& period) {
  int samples = 0;
  int64_t passed = 0;
  int64_t most = std::min<int64_t>(countdown.distance(), 100'000);
  for (int i = 0; i < blocks; ++i) {
    passed += static_cast<int64_t>(size);
    if (passed <= most) continue;
    if (countdown.Pass(static_cast<uint64_t>(passed), size, period) != 0) ++samples;
    passed = 0;
    most = std::min<int64_t>(countdown.distance(), 100'000);
  }
  return samples;
}

// The number of samples is within five sigma of what the probability of each block says.
TEST(SampleCountdownTest, EachBlockHasItsProbability) {
  const SamplePeriod period = 65536;
  for (const size_t size : {8, 100, 4096, 50'000, 65'536, 300'000, 1'000'000}) {
    SampleCountdown countdown;
    countdown.Initialize(size, period);
    const int blocks = static_cast<int>(std::min<size_t>(200'000'000 / size, 3'000'000)) + 10'000;
    const double probability = -std::expm1(-static_cast<double>(size) / 65536);
    const double expected = probability * blocks;
    const double sigma = std::sqrt(expected * (1 - probability));
    EXPECT_NEAR(CountSamples(countdown, size, blocks, period), expected, 5 * sigma + 1) << size;
  }
}

TEST(SampleCountdownTest, APeriodOfZeroTakesNoSamples) {
  SamplePeriod period = 0;
  SampleCountdown countdown;
  countdown.Initialize(1, period);
  EXPECT_FALSE(countdown.IsOn(period));
  EXPECT_EQ(countdown.distance(), kNoSampleDistance);
  period = 1000;
  EXPECT_TRUE(countdown.IsOn(period));
  EXPECT_GT(CountSamples(countdown, 100, 100'000, period), 0);
  period = 0;
  // The thread was on until now, and follows at its next interval.
  EXPECT_TRUE(countdown.IsOn(period));
  EXPECT_EQ(CountSamples(countdown, 100, 100'000, period), 0);
  EXPECT_FALSE(countdown.IsOn(period));
}

// Allocations between a change and the end of the interval have had their chance at the old period,
// once.
TEST(SampleCountdownTest, EstimatesAreUnbiasedHoweverOftenThePeriodChanges) {
  constexpr size_t kPeriods[] = {20'000, 50'000};
  constexpr int kBlocks = 1'000'000;
  for (const size_t size : {64, 5'000, 40'000}) {
    SamplePeriod period = kPeriods[0];
    SampleCountdown countdown;
    countdown.Initialize(size, period);
    double estimate = 0;
    double variance = 0;
    int64_t passed = 0;
    int64_t most = std::min<int64_t>(countdown.distance(), 100'000);
    for (int i = 0; i < kBlocks; ++i) {
      // A change comes some blocks before the interval ends, at the latest.
      if (i % 10 == 0) period = kPeriods[i / 10 % 2];
      passed += static_cast<int64_t>(size);
      if (passed <= most) continue;
      const DrawnPeriod drawn = countdown.Pass(static_cast<uint64_t>(passed), size, period);
      passed = 0;
      most = std::min<int64_t>(countdown.distance(), 100'000);
      if (drawn == 0) continue;
      const double probability =
          -std::expm1(-static_cast<double>(size) / static_cast<double>(drawn));
      estimate += 1 / probability;
      variance += (1 - probability) / (probability * probability);
    }
    EXPECT_NEAR(estimate, kBlocks, 5 * std::sqrt(variance)) << size;
  }
}

// Whoever draws anew within an interval has blocks before that with the chance of the old point,
// and blocks after it with that of the new one.
TEST(SampleCountdownTest, SamplesDrawnAnewBeginAfterWhatHasPassed) {
  constexpr int kRounds = 200'000;
  constexpr size_t kSize = 1000;
  constexpr int64_t kPassed = 10'000;
  const SamplePeriod period = 5'000;
  SampleCountdown countdown;
  int samples = 0;
  for (uint64_t seed = 0; seed < kRounds; ++seed) {
    countdown.Initialize(~seed, period);
    countdown.Redraw(seed, kPassed);
    EXPECT_GE(countdown.distance(), kPassed);
    samples += countdown.distance() < kPassed + int64_t{kSize} ? 1 : 0;
  }
  const double expected = -std::expm1(-0.2) * kRounds;
  EXPECT_NEAR(samples, expected, 5 * std::sqrt(expected));
}

// What a program sees that allocates blocks of one size, each of which takes it `block_ns`.
struct Paced {
  int samples = 0;
  double estimate = 0;  // of the number of blocks
  double variance = 0;
  int64_t elapsed_ns = 0;
};

Paced AllocatePaced(size_t size, int64_t block_ns, int blocks, const SamplePeriod& period) {
  const SetClock clock;
  SharedSampleCountdown countdown;
  countdown.Seed(size);
  Paced paced;
  for (int i = 0; i < blocks; ++i) {
    SetClock::Pass(block_ns);
    const SampleDraw draw = countdown.Pass(size, period);
    const double probability =
        -std::expm1(-static_cast<double>(size) / static_cast<double>(draw.period));
    paced.variance += 1 / probability - 1;
    if (!draw.is_sample) continue;
    paced.samples += 1;
    paced.estimate += 1 / probability;
  }
  paced.elapsed_ns = block_ns * blocks;
  return paced;
}

constexpr int kDefaultBlocks = 2'000'000;

TEST(SamplePaceTest, SamplesAtTheDefaultPeriodComeNoFasterThanTheirPace) {
  const SamplePeriod period = kDefaultSamplePeriod;
  // Blocks that nobody touches: one is a sample in 2 microseconds otherwise.
  const Paced paced = AllocatePaced(128 << 10, 125, kDefaultBlocks, period);
  EXPECT_LT(paced.samples, paced.elapsed_ns / (SamplePace::kShortGap / 2));
  EXPECT_GT(paced.samples, paced.elapsed_ns / (SamplePace::kShortGap * 4));
  EXPECT_NEAR(paced.estimate, kDefaultBlocks, 5 * std::sqrt(paced.variance));
}

TEST(SamplePaceTest, AProgramThatTouchesItsBlocksHasTheDefaultPeriod) {
  const SamplePeriod period = kDefaultSamplePeriod;
  const Paced paced = AllocatePaced(128 << 10, 50'000, kDefaultBlocks, period);
  const double expected = -std::expm1(-1.0 / 16) * kDefaultBlocks;
  EXPECT_GT(paced.samples, 0.9 * expected);
  EXPECT_NEAR(paced.estimate, kDefaultBlocks, 5 * std::sqrt(paced.variance));
}

TEST(SamplePaceTest, APeriodThatSomebodySetStays) {
  const SamplePeriod period = kDefaultSamplePeriod / 2;
  const Paced paced = AllocatePaced(128 << 10, 1, kDefaultBlocks, period);
  const double expected = -std::expm1(-1.0 / 8) * kDefaultBlocks;
  EXPECT_NEAR(paced.samples, expected, 5 * std::sqrt(expected));
}

TEST(SamplePaceTest, OneSlowSampleEndsAPeriodThatWasDoubledOften) {
  uint32_t doublings = 0;
  for (int i = 0; i < 10; ++i) doublings = SamplePace::Next(doublings, 1000);
  EXPECT_EQ(doublings, SamplePace::kMostDoublings);
  EXPECT_EQ(SamplePace::Next(doublings, SamplePace::kShortGap), doublings);
  EXPECT_EQ(SamplePace::Next(doublings, SamplePace::kShortGap << SamplePace::kMostDoublings), 0u);
}

// Also within one program whose pace changes, and in a thread's own countdown.
TEST(SamplePaceTest, EstimatesOfThreadsAreUnbiasedWhileTheirPaceChanges) {
  const SetClock clock;
  const SamplePeriod period = kDefaultSamplePeriod;
  constexpr size_t kSize = 256 << 10;
  SampleCountdown countdown;
  countdown.Initialize(7, period);
  double estimate = 0;
  double variance = 0;
  int changes = 0;
  DrawnPeriod last = 0;
  for (int i = 0; i < kDefaultBlocks; ++i) {
    SetClock::Pass(i % 10'000 < 5'000 ? 100 : 20'000);
    const DrawnPeriod drawn = countdown.Pass(kSize, kSize, period);
    if (drawn == 0) continue;
    changes += drawn != last ? 1 : 0;
    last = drawn;
    const double probability = -std::expm1(-double{kSize} / static_cast<double>(drawn));
    estimate += 1 / probability;
    variance += (1 - probability) / (probability * probability);
  }
  EXPECT_GT(changes, 100);
  EXPECT_NEAR(estimate, kDefaultBlocks, 5 * std::sqrt(variance));
}

TEST(SharedSampleCountdownTest, ThreadsTogetherTakeAsManyAsOneWould) {
  constexpr int kThreads = 4;
  constexpr int kBlocks = 100'000;
  constexpr size_t kSize = 1000;
  const SamplePeriod period = 100'000;
  SharedSampleCountdown countdown;
  std::vector<int> samples(kThreads);
  std::vector<std::thread> threads;
  for (int& count : samples) {
    threads.emplace_back([&] {
      for (int i = 0; i < kBlocks; ++i) count += countdown.Pass(kSize, period).is_sample ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  int sum = 0;
  for (const int count : samples) sum += count;
  const double expected = -std::expm1(-0.01) * kThreads * kBlocks;
  EXPECT_NEAR(sum, expected, 5 * std::sqrt(expected));
}

TEST(SharedSampleCountdownTest, SeedsChooseTheSamples) {
  const SamplePeriod period = 100'000;
  const auto samples_of = [&](uint64_t seed) {
    SharedSampleCountdown countdown;
    countdown.Seed(seed);
    std::vector<bool> samples;
    for (int i = 0; i < 10'000; ++i) samples.push_back(countdown.Pass(1000, period).is_sample);
    return samples;
  };
  EXPECT_EQ(samples_of(1), samples_of(1));
  EXPECT_NE(samples_of(1), samples_of(1'000'000));
}

TEST(SharedSampleCountdownTest, AnotherSeedDrawsTheNextSampleAnew) {
  const SamplePeriod period = 100'000;
  std::set<int> first_samples;
  for (uint64_t seed = 1; seed < 20; ++seed) {
    SharedSampleCountdown countdown;
    countdown.Seed(1);
    countdown.Pass(1, period);
    countdown.Seed(seed * 1'000'000);
    int blocks = 0;
    while (!countdown.Pass(100, period).is_sample) ++blocks;
    first_samples.insert(blocks);
  }
  EXPECT_GT(first_samples.size(), 10u);
}

TEST(SharedSampleCountdownTest, APeriodOfZeroTakesNoSamples) {
  const SamplePeriod period = 0;
  SharedSampleCountdown countdown;
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(countdown.Pass(size_t{1} << 40, period).is_sample);
}

}  // namespace
}  // namespace tcmalloc
