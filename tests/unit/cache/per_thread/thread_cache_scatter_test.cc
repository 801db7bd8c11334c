// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Full chains of objects that lie far apart go to their spans, and of large objects where there are
// many; so do those of near ones out of order, where a core's own caches are full of others.

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

constexpr uint8_t k48 = SizeClassFor(48);
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
  // Allocates so many bytes, and frees each page of them in another order than that of addresses.
  void SwingPages(uint8_t c, size_t bytes) {
    Objects objects = cache_.AllocateMany(c, bytes / kSizeClasses[c].size);
    std::sort(objects.begin(), objects.end());
    const auto page = static_cast<ptrdiff_t>(4096 / kSizeClasses[c].size);
    for (auto from = objects.begin(); objects.end() - from >= page; from += page) {
      std::shuffle(from, from + page, std::mt19937_64(1));
    }
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

TEST_F(ThreadCacheScatterTest, NothingStaysInAnyOrderAfterALongRun) {
  SwingOnce(k64, true, 2 * kScatterRunBytes);
  EXPECT_EQ(cache_->full_bytes(), 0u);

  const size_t before = past(k64);
  SwingOnce(k64, true, kScatterKeptBytes);
  EXPECT_EQ(past(k64), before) << "a miss ends the run";
  EXPECT_GT(cache_->full_bytes(), kScatterKeptBytes / 2);
}

// However many chains of a class have kScatterKeptBytes.
TEST_F(ThreadCacheScatterTest, NothingStaysOfAnySizeAfterALongRun) {
  for (const size_t size : {32, 48, 100, 200, 500, 1000}) {
    SwingOnce(SizeClassFor(size), true, 3 * kScatterRunBytes);
    EXPECT_EQ(cache_->full_bytes(), 0u) << size;
  }
}

// Each of the objects that the list holds may be all that its span lacks.
TEST_F(ThreadCacheScatterTest, TheListIsShortInALongRun) {
  Objects objects = cache_.AllocateMany(k64, 2 * kScatterRunBytes / 64);
  std::shuffle(objects.begin(), objects.end(), std::mt19937_64(1));
  size_t freed = 0;
  while (cache_->full_bytes() == 0) cache_.Free(objects[freed++]);
  while (cache_->full_bytes() > 0) cache_.Free(objects[freed++]);
  for (; freed < objects.size(); ++freed) {
    cache_.Free(objects[freed]);
    ASSERT_LE(cache_->CountObjects(k64), kScatterListObjects) << freed;
  }
}

TEST_F(ThreadCacheScatterTest, ALongRunTakesNoNeighboursWithIt) {
  SwingOnce(k64, false, kBytes + 3 * kScatterRunBytes);
  Objects objects = cache_.AllocateMany(k64, (kBytes + 2 * kScatterRunBytes) / 64);
  std::sort(objects.begin(), objects.end());
  const auto scattered = objects.begin() + kBytes / 64;
  std::shuffle(scattered, objects.end(), std::mt19937_64(1));
  cache_.FreeAll(objects);
  EXPECT_GT(cache_->full_bytes(), kBytes / 2);
  EXPECT_LT(cache_->full_bytes(), kBytes + kScatterRunBytes);
}

TEST_F(ThreadCacheScatterTest, NeighboursStayInALongRun) {
  SwingOnce(k64, true, 2 * kScatterRunBytes);
  Objects objects = cache_.AllocateMany(k64, kBytes / 64);
  SwingOnce(k64, true, 2 * kScatterRunBytes);
  ASSERT_EQ(cache_->full_bytes(), 0u);
  std::sort(objects.begin(), objects.end());
  const size_t before = past(k64);
  cache_.FreeAll(objects);
  EXPECT_LE(past(k64), before + 2) << "what was left of the run";
  EXPECT_GT(cache_->full_bytes(), kBytes / 2);
}

TEST_F(ThreadCacheScatterTest, WhatACoreReachesStays) {
  SwingOnce(k64, true, kScatterKeptBytes);
  EXPECT_EQ(past(k64), 0u);
  EXPECT_GT(cache_->full_bytes(), kScatterKeptBytes / 2);
}

// Full chains and the list alike. Other caches would keep their spans.
TEST_F(ThreadCacheScatterTest, WhatIsScatteredAndNotNeededGoesHome) {
  for (const size_t bytes : {size_t{kScatterKeptBytes}, size_t{3} * kScatterRunBytes}) {
    SwingOnce(k48, true, bytes);
    sources_.source(k48).ForgetCalls();
    const size_t before = past(k48);
    for (int i = 0; i < 3; ++i) cache_.Collect();
    EXPECT_EQ(cache_->CountObjects(k48), 0u) << bytes;
    EXPECT_EQ(sources_.source(k48).inserts().size(), past(k48) - before) << bytes;
  }
}

TEST_F(ThreadCacheScatterTest, NeighboursThatAreNotNeededGoToTheCaches) {
  SwingOnce(k48, false);
  for (int i = 0; i < 3; ++i) cache_.Collect();
  EXPECT_EQ(cache_->CountObjects(k48), 0u);
  EXPECT_EQ(past(k48), 0u);
}

TEST_F(ThreadCacheScatterTest, NearObjectsThatACoreReachesStay) {
  for (uint8_t c : {k64, SizeClassFor(128), SizeClassFor(448)}) {
    SwingPages(c, kNearKeptBytes / 2);
    EXPECT_EQ(past(c), 0u) << kSizeClasses[c].size;
    EXPECT_GT(cache_->full_bytes(), kNearKeptBytes / 4);
    cache_->Flush();
  }
}

TEST_F(ThreadCacheScatterTest, MoreNearObjectsGoHome) {
  for (uint8_t c : {k64, SizeClassFor(128), SizeClassFor(448)}) {
    SwingPages(c, 4 * kNearKeptBytes);
    EXPECT_GT(past(c), 2 * kNearKeptBytes / kSizeClasses[c].size / kSizeClasses[c].batch);
    EXPECT_LE(cache_->full_bytes(), kNearKeptBytes + kSizeClasses[c].batch * kSizeClasses[c].size);
    cache_->Flush();
  }
}

TEST_F(ThreadCacheScatterTest, LessStaysInAnyOrderWhereOtherClassesKeepMuch) {
  SwingOnce(k48, false, 2 * kNearKeptBytes);
  const auto others = cache_->full_bytes();
  ASSERT_GE(others, kNearKeptBytes);
  SwingOnce(k64, true);
  EXPECT_GT(past(k64), 0u);
  EXPECT_GE(cache_->full_bytes() - others, kScatterKeptBesideMuch);
  EXPECT_LE(cache_->full_bytes() - others, kScatterKeptBesideMuch + kSizeClasses[k64].batch * 64);
}

// What other classes keep is in a core's caches as well.
TEST_F(ThreadCacheScatterTest, NearObjectsGoHomeWhereOtherClassesKeepMuch) {
  SwingOnce(k64, false, 2 * kNearKeptBytes);
  ASSERT_GE(cache_->full_bytes(), kNearKeptBytes);
  const uint8_t c = SizeClassFor(128);
  SwingPages(c, kNearKeptBytes / 2);
  EXPECT_GT(past(c), 0u);
}

TEST_F(ThreadCacheScatterTest, SmallNearObjectsStay) {
  SwingPages(k48, 4 * kNearKeptBytes);
  EXPECT_EQ(past(k48), 0u);
}

TEST_F(ThreadCacheScatterTest, RowsStayInAClassThatOutgrowsTheCache) {
  sources_.budget.SetTotal(4 * kNearKeptBytes);
  SwingPages(k48, 8 * kNearKeptBytes);
  ASSERT_GT(past(k48), 0u);
  SwingOnce(k48, false, 3 * kNearKeptBytes);
  EXPECT_GT(cache_->full_bytes(), 2 * kNearKeptBytes);
}

TEST_F(ThreadCacheScatterTest, PiecesOfRowsGoHomeWhereTheyDoNotFit) {
  sources_.budget.SetTotal(4 * kNearKeptBytes);
  SwingPages(k48, 8 * kNearKeptBytes);
  EXPECT_GT(past(k48), 2 * kNearKeptBytes / 48 / kSizeClasses[k48].batch) << "those that do not";
  SwingPages(k48, 8 * kNearKeptBytes);
  EXPECT_LE(cache_->full_bytes(), kNearKeptBytes + kSizeClasses[k48].batch * 48) << "others also";
}

TEST_F(ThreadCacheScatterTest, PiecesOfRowsGoHomeWhereTheyAreMany) {
  SwingPages(k48, 2 * kPiecesKeptBytes);
  EXPECT_GT(cache_->full_bytes(), kPiecesKeptBytes / 2);
  SwingPages(k48, 2 * kPiecesKeptBytes);
  EXPECT_LE(cache_->full_bytes(), kNearKeptBytes + kSizeClasses[k48].batch * 48);
}

TEST_F(ThreadCacheScatterTest, PiecesOfRowsStayAgainOnceFewGoHome) {
  SwingPages(k48, 2 * kPiecesKeptBytes);
  SwingPages(k48, 2 * kPiecesKeptBytes);
  SwingPages(k48, 2 * kNearKeptBytes);
  ASSERT_LT(cache_->full_bytes(), 3 * kNearKeptBytes / 2) << "the class outgrew the cache before";
  const size_t before = past(k48);
  SwingPages(k48, 2 * kNearKeptBytes);
  EXPECT_LE(past(k48), before + 2) << "what was left of the swing before";
  EXPECT_GT(cache_->full_bytes(), 3 * kNearKeptBytes / 2);
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

TEST_F(ThreadCacheScatterTest, OfLargeObjectsOfManyClassesEachKeepsFew) {
  SwingOnce(k64, false, 2 * kOtherClassesBytes);
  size_t most = cache_->full_bytes();
  ASSERT_GE(most, size_t{kOtherClassesBytes});
  for (size_t size : {size_t{4096}, size_t{16384}, size_t{kMaxSmallSize}}) {
    const uint8_t c = SizeClassFor(size);
    SwingOnce(c, false, 4 * kBytes);
    most += kScatterKeptBytes + kSizeClasses[c].batch * size;
    EXPECT_GT(past(c), 0u) << size;
    EXPECT_LE(cache_->full_bytes(), most) << size;
  }
}

TEST_F(ThreadCacheScatterTest, OneClassOfLargeObjectsStays) {
  for (int i = 0; i < 3; ++i) SwingOnce(k4K, false, 8 * kBytes);
  EXPECT_EQ(past(k4K), 0u);
  EXPECT_GT(cache_->full_bytes(), 4 * kBytes);
}

TEST_F(ThreadCacheScatterTest, ObjectsOfOtherSizesStayBesideManyClasses) {
  SwingOnce(k4K, false, 4 * kBytes);
  for (size_t size : {size_t{64}, size_t{kScatterMostSize}}) {
    const uint8_t c = SizeClassFor(size);
    SwingOnce(c, false, 2 * kBytes);
    EXPECT_EQ(past(c), 0u) << size;
    EXPECT_GT(cache_->CountObjects(c) * kSizeClasses[c].size, kBytes / 2) << size;
  }
}

}  // namespace
}  // namespace tcmalloc::testing
