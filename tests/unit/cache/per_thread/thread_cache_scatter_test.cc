// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Full chains of objects that lie far apart go to their spans.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "cache/per_thread/thread_cache.h"
#include "test_cache.h"

namespace tcmalloc::testing {
namespace {

using Objects = std::vector<void*>;

constexpr uint8_t k64 = SizeClassFor(64);
constexpr uint8_t k4K = SizeClassFor(4096);
constexpr size_t kBytes = size_t{1} << 20;

class ThreadCacheScatterTest : public ::testing::Test {
 protected:
  // Allocates so many bytes and frees them in order or at random.
  void SwingOnce(uint8_t c, bool random, size_t bytes = kBytes) {
    Objects objects = cache_.AllocateMany(c, bytes / kSizeClasses[c].size);
    std::sort(objects.begin(), objects.end());
    if (random) std::shuffle(objects.begin(), objects.end(), std::mt19937_64(1));
    for (void* object : objects) cache_.Free(object);
    cache_->CheckInvariants();
  }
  size_t past(uint8_t c) { return sources_.source(c).inserts_past(); }

  TestSources sources_;
  TestCache cache_{sources_};
};

TEST_F(ThreadCacheScatterTest, NeighboursStay) {
  SwingOnce(k64, false);
  EXPECT_EQ(past(k64), 0u);
  EXPECT_GT(cache_->full_bytes(), kBytes / 2);
}

TEST_F(ThreadCacheScatterTest, ScatteredObjectsGoPastTheCaches) {
  SwingOnce(k64, true);
  EXPECT_GT(past(k64), kBytes / 2 / 64 / kSizeClasses[k64].batch);
  EXPECT_LE(cache_->full_bytes(), kScatterKeptBytes + kSizeClasses[k64].batch * 64);
}

TEST_F(ThreadCacheScatterTest, WhatACoreReachesStays) {
  SwingOnce(k64, true, kScatterKeptBytes);
  EXPECT_EQ(past(k64), 0u);
  EXPECT_GT(cache_->full_bytes(), kScatterKeptBytes / 2);
}

TEST_F(ThreadCacheScatterTest, NothingIsRemembered) {
  SwingOnce(k64, true);
  const size_t before = past(k64);
  SwingOnce(k64, false);
  EXPECT_LE(past(k64), before + 1);  // what was left of the first swing
  EXPECT_GT(cache_->full_bytes(), 0u);
}

TEST_F(ThreadCacheScatterTest, LargeObjectsStay) {
  SwingOnce(k4K, true);
  EXPECT_EQ(past(k4K), 0u);
  EXPECT_GT(cache_->full_bytes(), 0u);
}

}  // namespace
}  // namespace tcmalloc::testing
