// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/suspects.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

namespace tcmalloc {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr uint32_t kLeak = 1;
constexpr uint32_t kSteady = 2;

// Samples of a program in simulated time.
class Program {
 public:
  explicit Program(unsigned seed) : random_(seed) {}

  std::mt19937& random() { return random_; }
  // Allocates a sample of a stack now; it stands for one block.
  AgedSample Make(uint32_t stack) const {
    return {.stack = stack, .time_ns = now_, .blocks = 1, .bytes = 100};
  }
  void Pass(double seconds) { now_ += static_cast<int64_t>(seconds * double{kSecondNs}); }
  int64_t now() const { return now_; }

  static std::vector<Suspect> Suspects(std::vector<AgedSample> live, int64_t now) {
    std::vector<Suspect> suspects(100);
    suspects.resize(
        FindSuspects(live.data(), live.size(), 0, now, suspects.data(), suspects.size()));
    return suspects;
  }

 private:
  std::mt19937 random_;
  int64_t now_ = 0;
};

// A block each second that stays, among short-lived ones of a million a second, of which one in a
// thousand is sampled.
TEST(SuspectsTest, NamesALeakOfOneBlockASecondWithinFifteenMinutes) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Program program(seed);
    std::vector<AgedSample> leaked;
    std::deque<AgedSample> others;
    for (int second = 0; second < 15 * 60; ++second) {
      // One in twenty blocks of the leak is a sample.
      if (program.random()() % 20 == 0) leaked.push_back(program.Make(kLeak));
      for (int i = 0; i < 1000; ++i) others.push_back(program.Make(kSteady));
      while (others.size() > 3000) others.pop_front();
      program.Pass(1);
    }
    std::vector<AgedSample> live(others.begin(), others.end());
    live.insert(live.end(), leaked.begin(), leaked.end());
    const std::vector<Suspect> suspects = Program::Suspects(live, program.now());
    ASSERT_EQ(suspects.size(), 1u) << seed;
    EXPECT_EQ(suspects[0].stack, kLeak);
    EXPECT_EQ(suspects[0].samples, leaked.size());
    EXPECT_GT(suspects[0].confidence, 0.3);
    EXPECT_NEAR(suspects[0].bytes_per_minute, static_cast<double>(leaked.size()) * 100 / 15, 1);
    EXPECT_GT(suspects[0].oldest_ns, 11 * 60 * kSecondNs);
  }
}

TEST(SuspectsTest, SteadyProgramsHaveNone) {
  enum Kind { kFullCache, kDropsOldest, kDropsAny, kRequests, kRefilled, kKinds };
  for (int kind = 0; kind < kKinds; ++kind) {
    for (unsigned seed = 0; seed < 20; ++seed) {
      Program program(seed);
      std::deque<AgedSample> live;
      for (int second = 0; second < 60 * 60; ++second) {
        for (int i = 0; i < 10; ++i) {
          switch (kind) {
            case kFullCache:
              if (live.size() < 3000) live.push_back(program.Make(kSteady));
              break;
            case kDropsOldest:
              live.push_back(program.Make(kSteady));
              if (live.size() > 3000) live.pop_front();
              break;
            case kDropsAny:
              if (live.size() < 3000) {
                live.push_back(program.Make(kSteady));
              } else {
                live[program.random()() % live.size()] = program.Make(kSteady);
              }
              break;
            case kRequests:
              live.push_back(program.Make(kSteady));
              if (live.size() > 20) live.pop_front();
              break;
            default:
              if (second % 300 == 0) live.clear();
              live.push_back(program.Make(kSteady));
              break;
          }
        }
        program.Pass(1);
        // After the first fifteen minutes, at any time.
        if (second >= 900 && second % 60 == 0) {
          const std::vector<AgedSample> now(live.begin(), live.end());
          ASSERT_TRUE(Program::Suspects(now, program.now()).empty()) << kind << " at " << second;
        }
      }
    }
  }
}

TEST(SuspectsTest, FewSamplesProveNothing) {
  Program program(1);
  std::vector<AgedSample> live;
  for (int i = 0; i < 7; ++i) {
    live.push_back(program.Make(kLeak));
    program.Pass(60);
  }
  EXPECT_TRUE(Program::Suspects(live, program.now()).empty());
  EXPECT_TRUE(Program::Suspects({}, 100).empty());
  EXPECT_TRUE(Program::Suspects(live, 0).empty());
}

}  // namespace
}  // namespace tcmalloc
