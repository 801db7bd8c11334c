// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What leaves a full current list, and what stays.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/per_thread/thread_cache.h"
#include "test_cache.h"

namespace tcmalloc::testing {
namespace {

class ThreadCacheOverflowTest : public ::testing::Test {
 protected:
  static constexpr uint8_t kLong = SizeClassFor(64);
  static constexpr uint8_t kShort = SizeClassFor(4096);
  static constexpr size_t kBatches = 20;
  static constexpr size_t kMostInList = 64;
  static constexpr size_t kMostListBytes = size_t{1} << 20;

  size_t Batch(uint8_t c) { return sources_.source(c).batch(); }
  size_t Full(uint8_t c) { return cache_->full_bytes() / kSizeClasses[c].size; }
  size_t Listed(uint8_t c) { return cache_->CountObjects(c) - Full(c); }
  void Allocate(uint8_t c, size_t count) {
    for (size_t i = 0; i < count; ++i) used_.push_back(cache_.Allocate(c));
  }
  void Free(size_t count) {
    for (; count > 0; --count) {
      cache_.Free(used_.back());
      used_.pop_back();
    }
    cache_->CheckInvariants();
  }
  // Frees another one at a full list, under a handler, and expects that none is lost.
  void FreeUnderHandler(uint8_t c) {
    void* const refused = used_.back();
    used_.pop_back();
    cache_.FreeUnderHandler(refused, c);
    EXPECT_EQ(cache_->CountObjects(c) + used_.size(), sources_.ObjectsOut());
  }
  // Allocates until the list of long batches is empty. Returns their length.
  size_t AllocateAllListed() {
    Allocate(kLong, kBatches * Batch(kLong));
    Allocate(kLong, Listed(kLong));
    return Batch(kLong);
  }
  // Frees until a full chain is kept, which is when the longest list overflows.
  void FreeToFirstOverflow() {
    while (cache_->full_bytes() == 0) Free(1);
  }

  TestSources sources_;
  TestCache cache_{sources_};
  std::vector<void*> used_;
};

TEST_F(ThreadCacheOverflowTest, TheFirstOverflowLeavesABatch) {
  Allocate(kLong, kBatches * Batch(kLong));
  FreeToFirstOverflow();
  EXPECT_EQ(Full(kLong), Batch(kLong));
  EXPECT_EQ(Listed(kLong), Batch(kLong) + 1);
}

TEST_F(ThreadCacheOverflowTest, FreesInARowPutWholeListsAway) {
  const size_t batch = Batch(kLong);
  Allocate(kLong, kBatches * batch);
  FreeToFirstOverflow();
  Free(batch);
  EXPECT_EQ(Full(kLong), 3 * batch);
  EXPECT_EQ(Listed(kLong), 1u);
  Free(batch);
  EXPECT_EQ(Full(kLong), 4 * batch);
  EXPECT_EQ(Listed(kLong), 1u);
}

TEST_F(ThreadCacheOverflowTest, HalfOfALongListOfShortBatchesLeavesAtEachOverflow) {
  ASSERT_LT(2 * Batch(kShort), kMostInList);
  Allocate(kShort, kBatches * Batch(kShort));
  FreeToFirstOverflow();
  for (size_t overflows = 1; overflows <= 3; ++overflows) {
    EXPECT_EQ(Full(kShort), overflows * kMostInList / 2);
    EXPECT_EQ(Listed(kShort), kMostInList / 2 + 1);
    Free(kMostInList / 2);
  }
}

TEST_F(ThreadCacheOverflowTest, AListHoldsTwoBatchesOrABoundedNumberOfBytes) {
  for (const size_t size : {5000, 8192, 16384, 32768, 65536, 131072, 262144}) {
    TestSources sources;
    TestCache cache(sources);
    const uint8_t c = SizeClassFor(size);
    const size_t batch = sources.source(c).batch();
    std::vector<void*> used = cache.AllocateMany(c, 100 * batch);
    size_t longest = 0;
    for (; cache->full_bytes() == 0; used.pop_back()) {
      longest = cache->CountObjects(c);
      cache.Free(used.back());
    }
    EXPECT_GE(longest, 2 * batch) << size;
    EXPECT_LE(longest, std::max({2 * batch, std::min(kMostInList, kMostListBytes / size)})) << size;
    EXPECT_GT(2 * longest, std::min(kMostInList, kMostListBytes / size)) << size;
    cache.FreeAll(used);
  }
}

// The batches of a long list count as those that are kept.
TEST_F(ThreadCacheOverflowTest, AListIsNoLongerThanWhatTheThreadMissed) {
  TestCache other(sources_);
  const size_t batch = Batch(kShort);
  used_ = other.AllocateMany(kShort, kBatches * batch);
  Allocate(kShort, 2 * batch);
  Free(used_.size());
  const size_t misses = sources_.source(kShort).fetches().size();
  EXPECT_LE(cache_->CountObjects(kShort), 3 * batch) << misses;
}

// Where other classes keep much, objects of this size go home when the list is full, and pages of
// short lists serve all of them.
TEST_F(ThreadCacheOverflowTest, ListsStayShortWhereObjectsAreWorthMoreAsPages) {
  constexpr uint8_t kOther = SizeClassFor(2048);
  Allocate(kShort, kBatches * Batch(kShort));
  Allocate(kOther, kOtherClassesBytes / 1024);
  Free(kOtherClassesBytes / 1024);
  ASSERT_GE(cache_->full_bytes(), size_t{kOtherClassesBytes});
  Free(kBatches * Batch(kShort));
  const std::vector<uint32_t>& inserts = sources_.source(kShort).inserts();
  EXPECT_GT(inserts.size(), kBatches / 4);
  for (const uint32_t count : inserts) EXPECT_EQ(count, Batch(kShort));
}

// Nobody can take the lists of an idle thread, however its share is cut.
TEST_F(ThreadCacheOverflowTest, LongListsOfAllThreadsAreBounded) {
  constexpr size_t kTotal = size_t{4} << 20;
  sources_.budget.SetTotal(kTotal);
  std::vector<std::unique_ptr<TestCache>> idle;
  size_t longest = 0;
  size_t beyond_two = 0;
  for (int i = 0; i < 20; ++i) {
    TestCache& cache = *idle.emplace_back(std::make_unique<TestCache>(sources_));
    cache.FreeAll(cache.AllocateMany(kShort, kBatches * Batch(kShort)));
    cache->ReleaseFull();
    longest = std::max(longest, cache->CountObjects(kShort));
    beyond_two += std::max(cache->CountObjects(kShort), 2 * Batch(kShort)) - 2 * Batch(kShort);
    cache->CheckInvariants();
  }
  EXPECT_GT(longest, 2 * Batch(kShort));
  EXPECT_LE(beyond_two * kSizeClasses[kShort].size, kTotal / 4);
  EXPECT_LE(idle.back()->operator->()->CountObjects(kShort), 2 * Batch(kShort));
  idle.clear();
  EXPECT_TRUE(sources_.budget.HasRoomForLongLists(kTotal / 4))
      << "the threads that ended have none";
}

TEST_F(ThreadCacheOverflowTest, ALongListGoesBackInBatches) {
  const size_t batch = Batch(kShort);
  Allocate(kShort, kBatches * batch);
  FreeToFirstOverflow();
  Free(kMostInList / 2);
  cache_->Close();
  cache_->Flush();
  cache_->Open();
  for (const uint32_t count : sources_.source(kShort).inserts()) EXPECT_LE(count, batch);
  EXPECT_EQ(sources_.ObjectsOut(), used_.size());
}

// One that a handler made shorter than its count says.
TEST_F(ThreadCacheOverflowTest, ALongListThatEndsSoonerIsCountedAgain) {
  Allocate(kShort, kBatches * Batch(kShort));
  FreeToFirstOverflow();
  Free(kMostInList / 2 - 1);
  ASSERT_EQ(Listed(kShort), kMostInList);
  FreeUnderHandler(kShort);
}

// A level that swings by less than a batch about any point costs no slow path, wherever the frees
// before it ended.
TEST_F(ThreadCacheOverflowTest, AListThatWasEmptyHoldsTwoBatchesAgain) {
  const size_t batch = Batch(kLong);
  Allocate(kLong, kBatches * batch);
  FreeToFirstOverflow();
  Free(2 * batch);
  Allocate(kLong, 2);
  Free(batch / 2);
  const size_t full = Full(kLong);
  EXPECT_GT(Listed(kLong), batch);
  const size_t hits = cache_.hits;
  for (int swing = 0; swing < 10; ++swing) {
    Allocate(kLong, batch - 1);
    Free(batch - 1);
  }
  // The byte clock takes the slow path now and then.
  EXPECT_GT(cache_.hits - hits, 20 * (batch - 1) - 5);
  EXPECT_EQ(Full(kLong), full);
}

// Nobody has to look for the middle of a list of two, which costs a step for each object.
TEST_F(ThreadCacheOverflowTest, ALongBatchIsSetAsideAndComesBack) {
  const size_t batch = AllocateAllListed();
  Free(batch + 1);
  EXPECT_EQ(Listed(kLong), batch + 1);
  const size_t hits = cache_.hits;
  Allocate(kLong, batch + 1);
  // The byte clock takes the slow path now and then.
  EXPECT_GT(cache_.hits, hits + batch - 5);
  EXPECT_EQ(Listed(kLong), 0u);
  EXPECT_EQ(Full(kLong), 0u);
}

TEST_F(ThreadCacheOverflowTest, ABatchSetAsideGoesWithTheList) {
  const size_t batch = AllocateAllListed();
  Free(batch + 1);
  cache_->Close();
  cache_->Flush();
  cache_->Open();
  cache_->CheckInvariants();
  EXPECT_EQ(sources_.ObjectsOut(), used_.size());
}

TEST_F(ThreadCacheOverflowTest, AnUnusedBatchSetAsideGoesBack) {
  const size_t batch = AllocateAllListed();
  Free(batch + 1);
  Allocate(kLong, 1);
  ASSERT_EQ(Listed(kLong), batch);
  for (int i = 0; i < 3; ++i) cache_.Collect();
  cache_->CheckInvariants();
  EXPECT_EQ(Listed(kLong), 0u);
}

TEST_F(ThreadCacheOverflowTest, ABatchSetAsideIsFoundByTheSearchForADoubleFree) {
  const size_t batch = AllocateAllListed();
  const std::vector<void*> freed(used_.end() - static_cast<ptrdiff_t>(batch) - 1, used_.end());
  Free(batch + 1);
  for (void* object : freed) EXPECT_TRUE(cache_->Holds(object, kLong, true));
}

// A handler that took an object and freed it finds a list full that is short of one.
TEST_F(ThreadCacheOverflowTest, ABatchThatAHandlerSetAsideIsCountedAgain) {
  const size_t batch = AllocateAllListed();
  Free(batch);
  FreeUnderHandler(kLong);
}

// A cache that keeps less bytes than before would take more slow paths.
TEST_F(ThreadCacheOverflowTest, WhatLeavesWholeIsKept) {
  const size_t batch = Batch(kLong);
  Allocate(kLong, kBatches * batch);
  const size_t fetches = sources_.source(kLong).fetches().size();
  for (int swing = 0; swing < 5; ++swing) {
    Free(kBatches * batch / 2);
    Allocate(kLong, kBatches * batch / 2);
  }
  EXPECT_LE(sources_.source(kLong).fetches().size(), fetches + 1);
}

}  // namespace
}  // namespace tcmalloc::testing
