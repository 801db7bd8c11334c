// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "upkeep/large_reports.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace tcmalloc::testing {
namespace {

TEST(LargeReportsTest, ThereAreNoneWithoutAThreshold) {
  LargeReports reports;
  EXPECT_FALSE(reports.IsDue(SIZE_MAX / 2));
  for (const int64_t none : {int64_t{0}, int64_t{-1}, INT64_MIN}) {
    reports.set_threshold(none);
    EXPECT_FALSE(reports.IsDue(SIZE_MAX / 2)) << none;
  }
}

TEST(LargeReportsTest, EachRaisesTheThresholdByAnEighth) {
  LargeReports reports;
  reports.set_threshold(8000);
  EXPECT_FALSE(reports.IsDue(7999));
  EXPECT_TRUE(reports.IsDue(8000));
  EXPECT_FALSE(reports.IsDue(8999));
  EXPECT_TRUE(reports.IsDue(9000));
  EXPECT_FALSE(reports.IsDue(9000));
  EXPECT_TRUE(reports.IsDue(SIZE_MAX / 2));
}

TEST(LargeReportsTest, OfThreadsThatAskAtOnceOneReports) {
  constexpr int kThreads = 4;
  constexpr int kBlocks = 10'000;
  LargeReports reports;
  reports.set_threshold(1 << 20);
  std::atomic<int> made{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kBlocks; ++i) made += reports.IsDue(1 << 20) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
}

}  // namespace
}  // namespace tcmalloc::testing
