// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Scattered objects of classes that are not large are sorted by pages in the cache.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "cache/per_thread/page_bins.h"
#include "cache/per_thread/thread_cache.h"
#include "test_cache.h"

namespace tcmalloc::testing {
namespace {

using Objects = std::vector<void*>;

class ThreadCacheBinsTest : public ::testing::Test {
 protected:
  static constexpr uint8_t k48 = SizeClassFor(48);
  static constexpr uint8_t k64 = SizeClassFor(64);
  static constexpr uint8_t k512 = SizeClassFor(512);
  static constexpr size_t kBytes = size_t{1} << 20;
  // Chains beyond those that a class may keep.
  static constexpr size_t kMostPast = 2;

  ThreadCacheBinsTest() {
    for (uint8_t c : {k48, k64, k512}) sources_.source(c).span_bytes = kBytes;
  }
  ~ThreadCacheBinsTest() override { cache_->CheckInvariants(); }

  // Allocates so many bytes, and returns the objects in any order.
  Objects AllocateScattered(uint8_t c, size_t bytes = kBytes) {
    Objects objects = cache_.AllocateMany(c, bytes / kSizeClasses[c].size);
    std::shuffle(objects.begin(), objects.end(), std::mt19937_64(1));
    return objects;
  }
  // Frees all that is cached of the class, so that bins have most of it.
  void Scatter(uint8_t c, size_t bytes = kBytes) {
    cache_.FreeAll(AllocateScattered(c, bytes));
    cache_->CheckInvariants();
  }
  size_t past(uint8_t c) { return sources_.source(c).inserts_past(); }

  // Allocates all that the cache has of a class beyond what it keeps in any order, and returns it.
  Objects AllocateSorted(uint8_t c) {
    const size_t any_order =
        kScatterKeptBytes + size_t{2} * kSizeClasses[c].batch * kSizeClasses[c].size;
    const size_t sorted = cache_->CountObjects(c) - any_order / kSizeClasses[c].size;
    cache_.AllocateMany(c, any_order / kSizeClasses[c].size);
    return cache_.AllocateMany(c, sorted);
  }
  // Returns the number of pages that 64 objects in a row touch, on average.
  static double PagesOf64(const Objects& objects) {
    size_t pages = 0;
    size_t rows = 0;
    for (size_t i = 0; i + 64 <= objects.size(); i += 64, ++rows) {
      std::set<uintptr_t> of_row;
      for (size_t j = i; j < i + 64; ++j)
        of_row.insert(reinterpret_cast<uintptr_t>(objects[j]) / 4096);
      pages += of_row.size();
    }
    return static_cast<double>(pages) / static_cast<double>(rows);
  }

  TestSources sources_;
  TestCache cache_{sources_};
};

TEST_F(ThreadCacheBinsTest, ScatteredObjectsStay) {
  for (uint8_t c : {k48, k64, k512}) {
    Scatter(c);
    EXPECT_LE(past(c), kMostPast) << kSizeClasses[c].size;
    EXPECT_GT(cache_->CountObjects(c), kBytes / kSizeClasses[c].size * 9 / 10);
  }
}

TEST_F(ThreadCacheBinsTest, TheyComeBackPageByPage) {
  Scatter(k64);
  const Objects objects = AllocateSorted(k64);
  ASSERT_GT(objects.size(), 1000u);
  EXPECT_LT(PagesOf64(objects), 3);
  EXPECT_LE(past(k64), kMostPast);
}

TEST_F(ThreadCacheBinsTest, TheyComeBackInOrder) {
  Scatter(k48);
  const Objects objects = AllocateSorted(k48);
  size_t ascending = 0;
  for (size_t i = 1; i < objects.size(); ++i) ascending += objects[i] > objects[i - 1];
  EXPECT_GT(ascending, objects.size() * 99 / 100);
}

// To find the older half of such a list takes a walk.
TEST_F(ThreadCacheBinsTest, AFullListOfShortBatchesIsSortedWhole) {
  constexpr uint8_t kShort = SizeClassFor(1100);
  const size_t batch = kSizeClasses[kShort].batch;
  sources_.source(kShort).span_bytes = kBytes;
  const Objects objects = AllocateScattered(kShort, 6 * kBytes);
  const size_t hits = cache_.hits;
  cache_.FreeAll(objects);
  const size_t slow_frees = objects.size() - (cache_.hits - hits);
  EXPECT_LT(slow_frees, objects.size() / batch * 5 / 4) << "one for two batches, and trials";
}

// A handler took an object and freed it at the full list. What was put away before lies in the
// bins, in no chain whose count may be wrong.
TEST_F(ThreadCacheBinsTest, ObjectsStayInBinsWhereAListIsCountedAgain) {
  constexpr uint8_t kShort = SizeClassFor(1100);
  sources_.source(kShort).span_bytes = kBytes;
  Scatter(kShort, 6 * kBytes);
  Objects used = cache_.AllocateMany(kShort, kBytes / 3 / 1100);
  void* refused = nullptr;
  for (bool is_full = false; !is_full; used.pop_back()) {
    refused = used.back();
    is_full = !cache_->TryFree(refused);
  }
  const size_t kept = cache_->full_bytes();
  ASSERT_GT(kept, 0u);
  cache_.GoOnUnderHandler(refused, kShort);
  EXPECT_GE(cache_->full_bytes(), kept);
  cache_.FreeAll(used);
}

TEST_F(ThreadCacheBinsTest, AnObjectThatIsInAPageTwiceIsNoticed) {
  const Objects objects = AllocateScattered(k64);
  void* const twice = objects[objects.size() / 2];
  EXPECT_DEATH(
      {
        for (size_t i = 0; i < objects.size() * 3 / 4; ++i) cache_.Free(objects[i]);
        // The write hides that it is free.
        LinkWord(twice) = 1;
        cache_.Free(twice);
        for (size_t i = objects.size() * 3 / 4; i < objects.size(); ++i) cache_.Free(objects[i]);
      },
      "double free");
  cache_.FreeAll(objects);
}

TEST_F(ThreadCacheBinsTest, ObjectsOfALargeClassGoHome) {
  sources_.source(k64).span_bytes = kBinnedBytes + 1;
  Scatter(k64);
  EXPECT_GT(past(k64), kBytes / 2 / 64 / kSizeClasses[k64].batch);
}

TEST_F(ThreadCacheBinsTest, BeyondWhatIsSortedOfAllClassesObjectsGoHome) {
  for (uint8_t c : {k48, k64, k512}) Scatter(c, kBinnedBytes / 2);
  EXPECT_GE(cache_->full_bytes(), kBinnedBytes * 9 / 10);
  EXPECT_LT(cache_->full_bytes(), kBinnedBytes + 3 * kScatterKeptBytes);
  EXPECT_GT(past(k512), kMostPast);
}

TEST_F(ThreadCacheBinsTest, OfAClassThatShrinksAllGoesHome) {
  const Objects objects = AllocateScattered(k64);
  const auto half = objects.begin() + static_cast<ptrdiff_t>(objects.size() / 2);
  sources_.source(k64).span_bytes = kBinnedBytes + 1;
  cache_.FreeAll({objects.begin(), half});
  sources_.source(k64).span_bytes = kBytes;
  cache_.FreeAll({half, objects.end()});
  EXPECT_LE(cache_->full_bytes(), kScatterKeptBytes + kSizeClasses[k64].batch * 64);
  cache_.AllocateMany(k64, cache_->CountObjects(k64) + 1);
  Scatter(k64);
  EXPECT_GT(cache_->full_bytes(), kBytes / 2) << "a miss ends that";
}

TEST_F(ThreadCacheBinsTest, AThreadThatOnlyFreesSortsNothing) {
  TestCache other(sources_);
  Objects objects = other.AllocateMany(k64, kBytes / 64);
  std::shuffle(objects.begin(), objects.end(), std::mt19937_64(1));
  cache_.FreeAll(objects);
  EXPECT_LE(cache_->CountObjects(k64), kSizeClasses[k64].batch);
}

TEST_F(ThreadCacheBinsTest, NoMoreChainsStayThanTheThreadMissed) {
  TestCache other(sources_);
  Objects objects = other.AllocateMany(k64, kBytes / 64);
  const Objects own = AllocateScattered(k64, kBytes / 4);
  objects.insert(objects.end(), own.begin(), own.end());
  std::shuffle(objects.begin(), objects.end(), std::mt19937_64(1));
  cache_.FreeAll(objects);
  EXPECT_LE(cache_->CountObjects(k64), own.size() + size_t{3} * kSizeClasses[k64].batch);
}

// The chain of a batch must hold a page.
TEST_F(ThreadCacheBinsTest, SmallBatchesGoHome) {
  sources_.source(k64).set_batch(16);
  Scatter(k64);
  constexpr size_t kInChain = 32;  // half of the longest list
  EXPECT_GT(past(k64), kBytes / 2 / 64 / kInChain);
}

TEST_F(ThreadCacheBinsTest, WithoutMemoryForBinsObjectsGoHome) {
  const Objects objects = AllocateScattered(k64);
  size_t freed = 0;
  while (cache_->full_bytes() < kScatterKeptBytes) cache_.Free(objects[freed++]);
  sources_.space.ExhaustMetadata();
  while (freed < objects.size()) cache_.Free(objects[freed++]);
  EXPECT_GT(past(k64), 0u);
}

TEST_F(ThreadCacheBinsTest, AFlushReturnsAll) {
  Scatter(k64);
  cache_->Close();
  cache_->Flush();
  EXPECT_EQ(cache_->CountObjects(k64), 0u);
  EXPECT_EQ(cache_->full_bytes(), 0u);
  cache_->CheckInvariants();
  cache_->Open();
  Scatter(k64);
}

TEST_F(ThreadCacheBinsTest, AFlushGivesTheBinsBack) {
  const auto scatter_and_flush = [this] {
    Scatter(k64);
    cache_->Close();
    cache_->Flush();
    cache_->Open();
    return sources_.space.arena.stats().used_bytes;
  };
  const size_t once = scatter_and_flush();
  EXPECT_EQ(scatter_and_flush(), once);
}

// Two regions want each bin.
TEST_F(ThreadCacheBinsTest, WhatFindsItsBinTakenGoesHome) {
  Scatter(k64, 2 * PageBins::kBins * PageBins::RegionBytes(64));
  EXPECT_GT(past(k64), 2 * kMostPast);
  cache_->Close();
  cache_->Flush();
  cache_->Open();
  EXPECT_EQ(sources_.ObjectsOut(), 0u);
}

TEST_F(ThreadCacheBinsTest, OtherThreadsTakeWhatAnIdleOneHas) {
  Scatter(k64);
  const size_t before = cache_->full_bytes();
  cache_->ReleaseIdle(false);
  cache_->ReleaseIdle(false);
  EXPECT_LE(cache_->full_bytes(), before / 2 + 4096);
  EXPECT_GT(cache_->full_bytes(), before / 4);
  cache_->CheckInvariants();
  cache_->ReleaseFull();
  EXPECT_EQ(cache_->full_bytes(), 0u);
}

TEST_F(ThreadCacheBinsTest, AThreadThatFillsBinsIsNotIdle) {
  const Objects objects = AllocateScattered(k64);
  size_t freed = 0;
  while (freed < objects.size() / 2) cache_.Free(objects[freed++]);
  cache_->ReleaseIdle(false);
  while (freed < objects.size()) cache_.Free(objects[freed++]);
  const size_t before = cache_->full_bytes();
  cache_->ReleaseIdle(false);
  EXPECT_EQ(cache_->full_bytes(), before);
}

// A flush gives back the bins that others are about to count.
TEST_F(ThreadCacheBinsTest, TheOwnerMayFlushWhileOthersTake) {
  constexpr int kRounds = 1000;
  std::atomic<bool> stop = false;
  std::thread taker([&] {
    while (!stop) cache_->ReleaseFull();
  });
  for (int round = 0; round < kRounds; ++round) {
    cache_.FreeAll(AllocateScattered(k64, kBytes / 4));
    cache_->Close();
    cache_->Flush();
    cache_->Open();
  }
  stop = true;
  taker.join();
}

TEST_F(ThreadCacheBinsTest, ACollectionReturnsWhatWasNotUsed) {
  Scatter(k64);
  cache_->Close();
  cache_->Collect();
  cache_->Collect();
  cache_->Open();
  EXPECT_EQ(cache_->full_bytes(), 0u);
}

TEST_F(ThreadCacheBinsTest, OtherClassesGetTheRoom) {
  sources_.budget.SetTotal(2 * kBytes);
  Scatter(k64);
  ASSERT_GT(cache_->full_bytes(), kBytes / 2);
  const uint8_t other = SizeClassFor(256);
  for (int i = 0; i < 4; ++i) cache_.FreeAll(cache_.AllocateMany(other, 4 * kBytes / 256));
  cache_->CheckInvariants();
  EXPECT_LE(cache_->CountBytes(), 2 * kBytes + kBytes / 2);
}

TEST_F(ThreadCacheBinsTest, AnIdleClassMakesWay) {
  for (int i = 0; i < 2; ++i) Scatter(k64);
  cache_->MakeWay();
  EXPECT_GT(cache_->full_bytes(), 0u) << "some came back since the last call";
  cache_->MakeWay();
  EXPECT_EQ(cache_->full_bytes(), 0u);
}

TEST_F(ThreadCacheBinsTest, WhatIsKeptGoesInPieces) {
  Scatter(k64);
  const size_t kept = cache_->full_bytes();
  ASSERT_GT(kept, kBytes / 2);
  cache_->ReturnSome(kBytes / 8);
  const size_t left = cache_->full_bytes();
  EXPECT_LT(left, kept);
  EXPECT_GE(left, kept - kBytes / 4);
  while (cache_->full_bytes() > 0) cache_->ReturnSome(kBytes / 8);
  cache_->CheckInvariants();
}

TEST_F(ThreadCacheBinsTest, ObjectsInBinsAreHeld) {
  const Objects objects = AllocateScattered(k64);
  cache_.FreeAll(objects);
  for (size_t i = 0; i < objects.size() * 3 / 4; i += 97) {
    EXPECT_TRUE(cache_->Holds(objects[i], k64, true)) << i;
    EXPECT_TRUE(cache_->Holds(objects[i], k64, false)) << i;
  }
  EXPECT_FALSE(cache_->Holds(cache_.Allocate(k64), k64, true));
}

TEST_F(ThreadCacheBinsTest, ObjectsInBinsAreChecked) {
  const Objects objects = AllocateScattered(k64);
  cache_.FreeAll(objects);
  void* const sorted = objects[objects.size() / 2];
  const uint64_t link = LinkWord(sorted);
  LinkWord(sorted) = 0x4141414141414141;
  size_t most = SIZE_MAX;
  EXPECT_DEATH(cache_->CheckFreeObjects(&most), "corrupted|overwritten|free list");
  LinkWord(sorted) = link;
}

TEST_F(ThreadCacheBinsTest, ALinkThatWasOverwrittenIsNoticed) {
  const Objects objects = AllocateScattered(k64);
  cache_.FreeAll(objects);
  void* const sorted = objects[objects.size() / 2];
  const uint64_t link = LinkWord(sorted);
  LinkWord(sorted) = 0x4141414141414141;
  EXPECT_DEATH(cache_.AllocateMany(k64, objects.size()), "corrupted free list");
  LinkWord(sorted) = link;
}

TEST_F(ThreadCacheBinsTest, MisplacedObjectsAreNoticed) {
  const Objects objects = AllocateScattered(k64);
  EXPECT_DEATH(
      {
        for (size_t i = 0; i < objects.size(); ++i) {
          const bool is_inside = i == objects.size() / 2;
          cache_.Free(static_cast<char*>(objects[i]) + (is_inside ? 8 : 0));
        }
      },
      "corrupted|free list|inside");
  cache_.FreeAll(objects);
}

// Each object comes back once.
TEST_F(ThreadCacheBinsTest, RandomAllocationsAndFrees) {
  std::mt19937_64 random(7);
  Objects live;
  std::set<void*> known;
  for (int round = 0; round < 60; ++round) {
    const uint8_t c = round % 3 == 0 ? k48 : k64;
    const size_t most = random() % (2 * kBytes / 64);
    live = cache_.AllocateMany(c, most);
    known = {live.begin(), live.end()};
    ASSERT_EQ(known.size(), live.size()) << "handed out twice";
    std::shuffle(live.begin(), live.end(), random);
    sources_.source(c).span_bytes = random() % (2 * kBinnedBytes);
    if (round % 7 == 0) cache_->ReleaseIdle(false);
    cache_.FreeAll(live);
    cache_->CheckInvariants();
  }
}

}  // namespace
}  // namespace tcmalloc::testing
