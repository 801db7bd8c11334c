// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A thread cache and a class of which it frees more than it allocates.

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

class ThreadCacheDrainTest : public ::testing::TestWithParam<Window> {
 protected:
  ThreadCacheDrainTest() : objects_(cache_.AllocateMany(kClass, 100 * Batch())) {
    source().ForgetCalls();
  }
  ~ThreadCacheDrainTest() override {
    cache_->CheckInvariants();
    cache_->Retire();
    EXPECT_EQ(source().objects_out(), objects_.size());
  }

  FakeBatchSource& source() { return sources_.source(kClass); }
  size_t Batch() { return source().batch(); }
  size_t Cached() { return cache_->CountObjects(kClass); }

  // Frees the oldest objects, so many for each that is allocated; 0 for none.
  void Free(size_t frees, size_t per_allocation) {
    for (size_t i = 1; i <= frees; ++i) {
      cache_.Free(objects_.front());
      objects_.erase(objects_.begin());
      if (per_allocation != 0 && i % per_allocation == 0) {
        objects_.push_back(cache_.Allocate(kClass));
      }
    }
    cache_->CheckInvariants();
  }
  // Until frees go past the caches.
  void Drain() {
    while (source().inserts_past() == 0 && objects_.size() > 50 * Batch()) Free(4, 4);
    ASSERT_GT(source().inserts_past(), 0u);
  }

  TestSources sources_{GetParam()};
  TestCache cache_{sources_};
  Objects objects_;  // in use
};

TEST_P(ThreadCacheDrainTest, ObjectsOfAClassThatShrinksGoBack) {
  Drain();
  EXPECT_LE(Cached(), 2 * Batch()) << "also those that were kept before";
  const size_t before = source().inserts_past();
  Free(40 * Batch(), 4);
  EXPECT_GE(source().inserts_past() - before, 39u);
  EXPECT_LE(Cached(), 2 * Batch());
}

TEST_P(ThreadCacheDrainTest, AClassDoesNotBeginToDrainWhileItIsSmall) {
  source().span_bytes = DrainWatch::kLeastBytes - 1;
  Free(40 * Batch(), 4);
  EXPECT_EQ(source().inserts_past(), 0u);
  source().span_bytes = DrainWatch::kLeastBytes;
  Free(20 * Batch(), 4);
  EXPECT_GT(source().inserts_past(), 0u);
}

TEST_P(ThreadCacheDrainTest, AListThatMakesRoomForOthersLeavesNoMemoryBehind) {
  constexpr size_t kSmallBudget = 4096;
  Free(5 * Batch() + 2, 0);  // a few frees into the first trial
  ASSERT_GT(cache_->full_bytes(), 0u);
  sources_.budget.SetTotal(kSmallBudget);
  sources_.budget.SetFirstShare(kSmallBudget);
  cache_.Free(cache_.Allocate(SizeClassFor(1024)));
  ASSERT_EQ(Cached(), 0u);
  const size_t used = sources_.space.arena.stats().used_bytes;
  ASSERT_NE(sources_.arrays.Allocate(2), nullptr);
  EXPECT_EQ(sources_.space.arena.stats().used_bytes, used) << "the array of chains is lost";
}

TEST_P(ThreadCacheDrainTest, AllocationsAreServedByTheFullestSpans) {
  Drain();
  const size_t before = source().fetches_past();
  Free(40 * Batch(), 4);
  EXPECT_GE(source().fetches_past() - before, 30u);
  // Objects of the source, though others were freed a moment ago.
  const Objects freed(objects_.begin(), objects_.begin() + 3);
  for (void* object : freed) cache_.Free(object);
  objects_.erase(objects_.begin(), objects_.begin() + 3);
  void* object = cache_.Allocate(kClass);
  EXPECT_EQ(std::count(freed.begin(), freed.end(), object), 0);
  objects_.push_back(object);
}

// The clock refuses the allocation that is interrupted; one that is not refused has read the head.
TEST_P(ThreadCacheDrainTest, WhatAHandlerTookFromTheListComesBackToIt) {
  Drain();
  constexpr int kRounds = 200;
  int seen = 0;
  for (int round = 0; round < kRounds; ++round) {
    Free(10, 0);
    // One of these fills the list now and then, which counts the room from its least again.
    for (int i = 0; i < 2; ++i) objects_.push_back(cache_.Allocate(kClass));
    ASSERT_EQ(cache_->TryAllocate(kClass, 2 * EventClock::kLongestInterval), nullptr);
    cache_->Close();
    void* const block = cache_->AllocateSlow(kClass, 64);
    cache_->Open();
    cache_.Free(block);
    cache_->UndoTryAllocate(kClass);
    objects_.push_back(cache_.Allocate(kClass));
    // An empty list gives the handler an object of another class.
    if (sources_.space.map->FindInUse(block)->size_class != kClass) continue;
    ASSERT_EQ(objects_.back(), block) << "round " << round;
    ++seen;
  }
  EXPECT_GT(seen, kRounds / 2);
}

// As keys that a program makes to look something up and remove it.
TEST_P(ThreadCacheDrainTest, TemporariesAreNoAllocations) {
  void* temporary = nullptr;
  size_t same = 0;
  size_t slow = 0;
  for (size_t i = 0; i < 30 * Batch(); ++i) {
    void* const key = cache_.Allocate(kClass);
    same += key == temporary;
    Free(2, 0);
    temporary = key;
    const size_t hits = cache_.hits;
    cache_.Free(key);
    slow += cache_.hits == hits;
  }
  EXPECT_EQ(source().inserts_past(), 0u) << "what is freed stays, as where nothing is allocated";
  if (GetParam() == Window::kAll) {
    EXPECT_LT(slow, 4 * Batch());
  }
  EXPECT_GT(same, 29 * Batch()) << "they use the same object again";
}

TEST_P(ThreadCacheDrainTest, ATemporaryComesBackToTheListOfAClassThatDrains) {
  Drain();
  size_t same = 0;
  for (size_t i = 0; i < 100; ++i) {
    Free(4, 4);
    void* const temporary = cache_.Allocate(kClass);
    cache_.Free(temporary);
    void* const next = cache_.Allocate(kClass);
    same += next == temporary;
    cache_.Free(next);
  }
  EXPECT_GT(same, 80u);
}

// All that the class frees is temporary, so that no batch would ever tell that it drains no more.
TEST_P(ThreadCacheDrainTest, TemporariesAloneEndIt) {
  if (GetParam() != Window::kAll) GTEST_SKIP() << "each free of others is slow";
  Drain();
  for (int i = 0; i < 1000; ++i) cache_.Free(cache_.Allocate(kClass));
  const size_t before = cache_.hits;
  for (int i = 0; i < 1000; ++i) cache_.Free(cache_.Allocate(kClass));
  EXPECT_GT(cache_.hits - before, 1990u);
}

// The pages of a span count together.
TEST_P(ThreadCacheDrainTest, ATemporaryMayLieInAnyPageOfASpan) {
  constexpr uint8_t kLong = SizeClassFor(832);
  ASSERT_GT(kSizeClasses[kLong].pages, 2);
  Objects objects = cache_.AllocateMany(kLong, 100 * sources_.source(kLong).batch());
  size_t next = 0;
  while (sources_.source(kLong).inserts_past() == 0) {
    for (int i = 0; i < 4; ++i) cache_.Free(objects[next++]);
    cache_.Allocate(kLong);
  }
  size_t same = 0;
  for (int i = 0; i < 200; ++i) {
    void* const temporary = cache_.Allocate(kLong);
    cache_.Free(temporary);
    void* const again = cache_.Allocate(kLong);
    same += again == temporary;
    for (int j = 0; j < 4; ++j) cache_.Free(objects[next++]);
  }
  EXPECT_GT(same, 150u);
}

TEST_P(ThreadCacheDrainTest, WhatIsFreedLaterIsNoTemporary) {
  Drain();
  int same = 0;
  for (int i = 0; i < 50; ++i) {
    void* const object = cache_.Allocate(kClass);
    Free(20, 0);
    cache_.Free(object);
    objects_.push_back(cache_.Allocate(kClass));
    same += objects_.back() == object;
    Free(20, 0);
  }
  EXPECT_LT(same, 5);
}

// What was allocated before the list was counted last is not cancelled a second time.
TEST_P(ThreadCacheDrainTest, AnObjectOfTheListThatWasCountedLeaves) {
  Drain();
  for (int i = 0; i < 20; ++i) {
    void* const object = cache_.Allocate(kClass);
    Free(Batch(), 0);
    cache_.Free(object);
    cache_->CheckInvariants();
    Free(8, 4);
  }
}

// A handler that finds the list empty gets objects of another class, kMostStrays times for one
// list.
TEST_P(ThreadCacheDrainTest, HandlersThatFindTheListEmptyDoNotAddUp) {
  const Objects more = cache_.AllocateMany(kClass, 100 * Batch());
  objects_.insert(objects_.end(), more.begin(), more.end());
  Drain();
  for (int i = 0; i < 150; ++i) {
    Free(Batch(), 0);  // so many that the class goes on to drain
    while (void* object = cache_->TryAllocate(kClass, 64)) objects_.push_back(object);
    cache_->Close();
    void* const of_handler = cache_->AllocateSlow(kClass, 64);
    cache_->Open();
    cache_.Free(of_handler);
    cache_->UndoTryAllocate(kClass);
    objects_.push_back(cache_.Allocate(kClass));
  }
}

// Handlers take several objects while an allocation is under way, and free them in reverse order.
TEST_P(ThreadCacheDrainTest, WhatHandlersTookComesBackAmongTemporaries) {
  std::mt19937_64 random(12345);
  std::shuffle(objects_.begin(), objects_.end(), random);
  Drain();
  Objects young;
  int seen = 0;
  for (int round = 0; round < 600 && objects_.size() > 40; ++round) {
    for (uint64_t i = random() % 12; i > 0; --i) {
      const uint64_t what = random() % 4;
      if (what == 0) {
        young.push_back(cache_.Allocate(kClass));
      } else if (what == 1 && !young.empty()) {
        std::swap(young[random() % young.size()], young.back());
        cache_.Free(young.back());
        young.pop_back();
      } else if (objects_.size() > 40) {
        Free(3, 0);
      }
    }
    if (young.size() > 20) {
      objects_.insert(objects_.begin(), young.begin(), young.end());
      young.clear();
    }
    ASSERT_EQ(cache_->TryAllocate(kClass, 2 * EventClock::kLongestInterval), nullptr);
    Objects of_handler;
    bool all_of_class = true;
    for (uint64_t i = random() % 4 + 1; i > 0; --i) {
      cache_->Close();
      of_handler.push_back(cache_->AllocateSlow(kClass, 64));
      cache_->Open();
      all_of_class &= sources_.space.map->FindInUse(of_handler.back())->size_class == kClass;
    }
    std::for_each(of_handler.rbegin(), of_handler.rend(), [this](void* o) { cache_.Free(o); });
    cache_->UndoTryAllocate(kClass);
    young.push_back(cache_.Allocate(kClass));
    // An empty list gives the handler objects of another class.
    if (!all_of_class) continue;
    ASSERT_EQ(young.back(), of_handler.front()) << "round " << round;
    ++seen;
  }
  EXPECT_GT(seen, 100);
  objects_.insert(objects_.end(), young.begin(), young.end());
}

TEST_P(ThreadCacheDrainTest, FreesAloneAreKeptAsEver) {
  Free(99 * Batch(), 0);
  EXPECT_EQ(source().inserts_past(), 0u);
  EXPECT_GE(Cached(), 90 * Batch());
}

TEST_P(ThreadCacheDrainTest, AsManyAllocationsAsFreesAreKeptAsEver) {
  Free(50 * Batch(), 0);
  Free(40 * Batch(), 1);
  EXPECT_EQ(source().inserts_past(), 0u);
}

// Of what was freed last nothing is allocated, while most of the spans' room is free.
TEST_P(ThreadCacheDrainTest, ASparseClassGoesOnForAsLongAsItDrained) {
  Drain();
  Free(8 * Batch(), 4);
  source().sparse = true;
  const size_t drained = source().inserts_past();
  Free(4 * Batch(), 1);
  EXPECT_GE(source().inserts_past() - drained, 3u);
  Free(40 * Batch(), 1);
  const size_t past = source().inserts_past();
  EXPECT_LE(past - drained, 2 * drained) << "a heap that stays sparse does not pay for ever";
  Free(10 * Batch(), 1);
  EXPECT_EQ(source().inserts_past(), past);
}

TEST_P(ThreadCacheDrainTest, AClassThatIsNotSparseKeepsAgain) {
  Drain();
  Free(8 * Batch(), 4);
  Free(2 * Batch(), 1);
  const size_t past = source().inserts_past();
  Free(10 * Batch(), 1);
  EXPECT_EQ(source().inserts_past(), past);
}

TEST_P(ThreadCacheDrainTest, AClassThatGrowsAgainDrainsNoLonger) {
  Drain();
  const Objects more = cache_.AllocateMany(kClass, 10 * Batch());
  objects_.insert(objects_.end(), more.begin(), more.end());
  const size_t past = source().inserts_past() + source().fetches_past();
  Free(10 * Batch(), 1);
  EXPECT_EQ(source().inserts_past() + source().fetches_past(), past);
}

TEST_P(ThreadCacheDrainTest, WhoStopsAllocatingKeepsAgain) {
  Drain();
  Free(20 * Batch(), 0);
  const size_t past = source().inserts_past();
  Free(10 * Batch(), 0);
  EXPECT_EQ(source().inserts_past(), past);
  EXPECT_GE(Cached(), 10 * Batch());
}

TEST_P(ThreadCacheDrainTest, WithoutMemoryTheLastFreedServe) {
  Drain();
  Free(Batch() / 2, 0);
  const size_t cached = Cached();
  source().fail = [] { return true; };
  size_t served = 0;
  while (void* object = cache_.Allocate(kClass)) {
    objects_.push_back(object);
    ++served;
  }
  EXPECT_EQ(served, cached);
  source().fail = nullptr;
}

TEST_P(ThreadCacheDrainTest, WhatLeavesIsFoundByTheSearchForADoubleFree) {
  Drain();
  void* object = objects_.front();
  Free(1, 0);
  EXPECT_TRUE(cache_->Holds(object, kClass, true));
  EXPECT_FALSE(cache_->Holds(objects_.front(), kClass, true));
}

TEST_P(ThreadCacheDrainTest, AFlushReturnsAll) {
  Drain();
  Free(3, 0);
  EXPECT_GT(Cached(), 0u);
  cache_->Close();
  cache_->Flush();
  cache_->Open();
  EXPECT_EQ(Cached(), 0u);
}

TEST_P(ThreadCacheDrainTest, CollectionsReturnAllThatLiesUnused) {
  Drain();
  Free(3, 0);
  EXPECT_GT(Cached(), 0u);
  for (int i = 0; i < 3; ++i) cache_.Collect();
  EXPECT_EQ(Cached(), 0u);
}

TEST_P(ThreadCacheDrainTest, CollectionsDoNotEndIt) {
  Drain();
  source().sparse = true;
  const size_t before = source().inserts_past();
  for (int i = 0; i < 10; ++i) {
    Free(2 * Batch(), 4);
    cache_.Collect();
  }
  EXPECT_GE(source().inserts_past() - before, 19u);
}

INSTANTIATE_TEST_SUITE_P(Windows, ThreadCacheDrainTest,
                         ::testing::Values(Window::kAll, Window::kFirstBytes, Window::kNone));

}  // namespace
}  // namespace tcmalloc::testing
