// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/reuse_watch.h"

#include <gtest/gtest.h>

namespace tcmalloc::testing {
namespace {

alignas(64) char cache_lines[3][64];

TEST(ReuseWatchTest, TheFirstObjectCounts) {
  ReuseWatch watch;
  EXPECT_TRUE(watch.IsStuckAt(cache_lines[0]));
}

TEST(ReuseWatchTest, LaterOnlyTheSameTwiceRunning) {
  ReuseWatch watch;
  watch.IsStuckAt(cache_lines[0]);
  EXPECT_FALSE(watch.IsStuckAt(cache_lines[1]));
  EXPECT_FALSE(watch.IsStuckAt(cache_lines[0]));
  EXPECT_TRUE(watch.IsStuckAt(cache_lines[0]));
  EXPECT_TRUE(watch.IsStuckAt(cache_lines[0]));
  EXPECT_FALSE(watch.IsStuckAt(cache_lines[0] + 8));
}

TEST(ReuseWatchTest, InItsOwnLineAThreadMayStay) {
  ReuseWatch watch;
  watch.MoveTo(cache_lines[1]);
  EXPECT_FALSE(watch.IsStuckAt(cache_lines[1]));
  EXPECT_FALSE(watch.IsStuckAt(cache_lines[1] + 56));
  EXPECT_FALSE(watch.IsStuckAt(cache_lines[1] + 56));
  EXPECT_TRUE(watch.IsStuckAt(cache_lines[2]));
}

}  // namespace
}  // namespace tcmalloc::testing
