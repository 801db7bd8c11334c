// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Objects that a thread cache gives back, and when.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "cache/per_thread/thread_cache.h"
#include "test_cache.h"

namespace tcmalloc::testing {
namespace {

using Objects = std::vector<void*>;

constexpr uint8_t kOtherClass = SizeClassFor(1024);

class ThreadCacheCollectTest : public ::testing::Test {
 protected:
  size_t Batch(uint8_t c = kClass) { return sources_.source(c).batch(); }
  size_t CachedChains(uint8_t c = kClass) { return cache_->CountObjects(c) / Batch(c); }
  size_t CachedBytes(const TestCache& cache) {
    size_t bytes = 0;
    for (size_t c = 1; c < kSizeClassCount; ++c) {
      bytes += const_cast<TestCache&>(cache)->CountObjects(static_cast<uint8_t>(c)) *
               kSizeClasses[c].size;
    }
    return bytes;
  }
  // Leaves at least `chains` full chains in the cache, by use.
  void Fill(size_t chains, uint8_t c = kClass) {
    while (CachedChains(c) < chains)
      cache_.FreeAll(cache_.AllocateMany(c, (chains + 1) * Batch(c)));
  }
  // The longest list that is not one of the full chains, for every class.
  static size_t BytesInCurrentLists() {
    size_t bytes = 0;
    for (const SizeClassInfo& info : kSizeClasses) bytes += size_t{info.batch} * info.size;
    return bytes;
  }

  TestSources sources_;
  TestCache cache_{sources_};
};

TEST_F(ThreadCacheCollectTest, OverflowReturnsWholeBatches) {
  TestCache other(sources_);
  const Objects objects = other.AllocateMany(kClass, 100 * Batch());
  Fill(2);
  sources_.source(kClass).ForgetCalls();
  cache_.FreeAll(objects);
  cache_->CheckInvariants();
  EXPECT_LT(CachedChains(), 50u);
  ASSERT_FALSE(sources_.source(kClass).inserts().empty());
  for (uint32_t count : sources_.source(kClass).inserts()) EXPECT_EQ(count, Batch());
}

TEST_F(ThreadCacheCollectTest, AClassThatOnlyFreesKeepsHalfABatch) {
  TestCache other(sources_);
  const Objects objects = other.AllocateMany(kClass, 10 * Batch());
  sources_.source(kClass).ForgetCalls();
  for (void* object : objects) {
    cache_.Free(object);
    ASSERT_LE(cache_->CountObjects(kClass), Batch() / 2);
  }
  cache_->CheckInvariants();
  for (uint32_t count : sources_.source(kClass).inserts()) EXPECT_EQ(count, Batch() / 2);
}

TEST_F(ThreadCacheCollectTest, AClassThatOnlyFreedMayAllocate) {
  TestCache other(sources_);
  cache_.FreeAll(other.AllocateMany(kClass, 10 * Batch()));
  Fill(4);
  EXPECT_GE(CachedChains(), 4u);
  cache_->CheckInvariants();
}

TEST_F(ThreadCacheCollectTest, CollectReturnsAnEighthOfWhatWasNotUsed) {
  Fill(20);
  cache_.FreeAll(cache_.AllocateMany(kClass, cache_->CountObjects(kClass)));
  cache_.Collect();
  const size_t before = CachedChains();
  ASSERT_GE(before, 16u);
  const size_t used = before / 4;
  cache_.FreeAll(cache_.AllocateMany(kClass, used * Batch()));
  sources_.source(kClass).ForgetCalls();
  cache_.Collect();
  const std::vector<uint32_t>& inserts = sources_.source(kClass).inserts();
  const auto whole = std::count(inserts.begin(), inserts.end(), Batch());
  EXPECT_NEAR(static_cast<double>(whole), static_cast<double>(before - used) / 8, 1);
  cache_->CheckInvariants();
}

TEST_F(ThreadCacheCollectTest, CollectReturnsAllOfAnIdleClass) {
  Fill(20);
  cache_.Collect();
  const size_t before = sources_.ObjectsOut();
  cache_.Collect();
  EXPECT_LE(sources_.ObjectsOut(), before / 2 + Batch());
}

// Of large objects each class has had few by the time that others had many.
TEST_F(ThreadCacheCollectTest, CollectionsWaitForATurnOfEachClassInUse) {
  std::vector<std::pair<uint8_t, Objects>> used;
  const auto allocate_of_each = [&](size_t count) {
    for (uint8_t c = SizeClassFor(64 << 10); c < kSizeClassCount; ++c) {
      used.emplace_back(c, cache_.AllocateMany(c, count));
    }
  };
  allocate_of_each(1);
  Fill(20);
  cache_.Collect();
  allocate_of_each(12);
  EXPECT_GE(CachedChains(), 19u) << "all of them were in use";
  allocate_of_each(12);
  EXPECT_LE(CachedChains(), 2u) << "what is in the list";
  for (const auto& [c, objects] : used) cache_.FreeAll(objects);
}

TEST_F(ThreadCacheCollectTest, CollectionsDoNotWaitForClassesThatWereNotInUse) {
  for (uint8_t c = SizeClassFor(64 << 10); c < kSizeClassCount; ++c) {
    cache_.FreeAll(cache_.AllocateMany(c, 1));
  }
  Fill(20);
  for (int i = 0; i < 2; ++i) cache_.Collect();
  const Objects used = cache_.AllocateMany(kSizeClassCount - 1, 200);
  EXPECT_LE(CachedChains(), 2u) << "what is in the list";
  cache_.FreeAll(used);
}

TEST_F(ThreadCacheCollectTest, CollectLeavesWhatWasUsed) {
  Fill(20);
  cache_.Collect();
  const size_t before = CachedChains();
  const Objects all = cache_.AllocateMany(kClass, cache_->CountObjects(kClass));
  cache_.FreeAll(all);
  sources_.source(kClass).ForgetCalls();
  cache_.Collect();
  EXPECT_GE(CachedChains() + 1, before);
  EXPECT_TRUE(sources_.source(kClass).inserts().empty());
}

TEST_F(ThreadCacheCollectTest, AClassThatWasNotNeededMakesWay) {
  const auto fewest = static_cast<size_t>(kManyIdleBytes) / kSizeClasses[kOtherClass].size;
  Fill(fewest / Batch(kOtherClass) + 3, kOtherClass);
  Fill(3);
  cache_.FreeAll(cache_.AllocateMany(kOtherClass, cache_->CountObjects(kOtherClass)));
  const size_t before = CachedChains(kOtherClass);
  cache_->MakeWay();
  EXPECT_EQ(CachedChains(kOtherClass), before) << "they were needed just now";
  const size_t few = CachedChains();
  cache_->MakeWay();
  cache_->CheckInvariants();
  EXPECT_LE(CachedChains(kOtherClass), 2u) << "what is in the list";
  EXPECT_EQ(CachedChains(), few) << "they hold little";
}

TEST_F(ThreadCacheCollectTest, AnIdleCacheGivesEverythingBack) {
  Fill(20);
  Fill(3, kOtherClass);
  const Objects kept = cache_.AllocateMany(kClass, 5);
  for (int i = 0; i < 32; ++i) {
    cache_.Collect();
    cache_->CheckInvariants();
  }
  EXPECT_EQ(sources_.ObjectsOut(), kept.size());
  cache_.FreeAll(kept);
}

TEST_F(ThreadCacheCollectTest, AShortIdleListGoesBackToo) {
  cache_.FreeAll(cache_.AllocateMany(kClass, 3));
  for (int i = 0; i < 3; ++i) cache_.Collect();
  EXPECT_EQ(cache_->CountObjects(kClass), 0u);
  EXPECT_EQ(sources_.ObjectsOut(), 0u);
}

TEST_F(ThreadCacheCollectTest, AListWhoseHeadComesBackNowAndThenStays) {
  Objects objects = cache_.AllocateMany(kClass, 8);
  for (int i = 0; i < 4; ++i) {
    cache_.Free(objects.back());
    objects.pop_back();
    cache_.Collect();
    cache_.FreeAll(cache_.AllocateMany(kClass, 1));
    cache_.Collect();
    EXPECT_GT(cache_->CountObjects(kClass), 0u);
  }
  cache_.FreeAll(objects);
}

TEST_F(ThreadCacheCollectTest, AListInUseOfASparseClassGoesBack) {
  Objects objects = cache_.AllocateMany(kClass, 3 * Batch());
  for (const bool sparse : {false, true}) {
    sources_.source(kClass).sparse = sparse;
    // The list has another head at each collection.
    for (int i = 0; i < 3; ++i) {
      cache_.Free(objects.back());
      objects.pop_back();
      cache_.Collect();
      cache_->CheckInvariants();
    }
    EXPECT_EQ(cache_->CountObjects(kClass) == 0, sparse);
  }
  // It is no class out of use that would start slowly again.
  sources_.source(kClass).ForgetCalls();
  objects.push_back(cache_.Allocate(kClass));
  ASSERT_FALSE(sources_.source(kClass).fetches().empty());
  EXPECT_EQ(sources_.source(kClass).fetches().back(), Batch());
  cache_.FreeAll(objects);
}

// As for the slow path of a signal handler that interrupts a fast path between its writes.
TEST_F(ThreadCacheCollectTest, AListInUseByAFastPathStays) {
  const Objects objects = cache_.AllocateMany(kClass, 4);
  cache_.Free(objects[0]);
  cache_.Free(objects[1]);
  // Begins, and is refused after it has changed the room.
  LinkWord(objects[2]) = sources_.space.codec.Encode(ReferenceTo(objects[0]));
  ASSERT_FALSE(cache_->TryFree(objects[2]));
  sources_.source(kClass).ForgetCalls();
  for (int i = 0; i < 3; ++i) cache_.Collect();
  cache_->Close();
  cache_->Flush();
  cache_->Park();
  cache_->Rejoin();
  cache_->Open();
  EXPECT_TRUE(sources_.source(kClass).inserts().empty());
  cache_->UndoTryFree(objects[2]);
  LinkWord(objects[2]) = 0;
  EXPECT_EQ(cache_.Allocate(kClass), objects[1]);
  EXPECT_EQ(cache_.Allocate(kClass), objects[0]);
  cache_->CheckInvariants();
}

TEST_F(ThreadCacheCollectTest, AClassStartsSlowlyAgainAfterItWentBack) {
  cache_.FreeAll(cache_.AllocateMany(kClass, Batch()));
  for (int i = 0; i < 3; ++i) cache_.Collect();
  ASSERT_EQ(sources_.ObjectsOut(), 0u);
  sources_.source(kClass).ForgetCalls();
  cache_.Free(cache_.Allocate(kClass));
  EXPECT_EQ(sources_.source(kClass).fetches(),
            std::vector<uint32_t>{256 / kSizeClasses[kClass].size});
}

TEST_F(ThreadCacheCollectTest, TheBudgetBoundsWhatIsCached) {
  constexpr size_t kTotal = size_t{4} * CacheBudget::kFirstShare;
  sources_.budget.SetTotal(kTotal);
  TestCache other(sources_);
  for (uint8_t c : {kClass, kOtherClass, SizeClassFor(16), SizeClassFor(8192)}) {
    for (int round = 0; round < 3; ++round) {
      const size_t count = 4 * kTotal / kSizeClasses[c].size;
      const Objects objects = cache_.AllocateMany(c, count);
      cache_.FreeAll(objects);
      other.FreeAll(cache_.AllocateMany(c, count));
      cache_->CheckInvariants();
      ASSERT_LE(CachedBytes(cache_) + CachedBytes(other), kTotal + 2 * BytesInCurrentLists());
    }
  }
  sources_.budget.CheckInvariants();
}

TEST_F(ThreadCacheCollectTest, AClassGivesUpWhatAnotherOneNeeds) {
  constexpr size_t kTotal = size_t{16} * CacheBudget::kFirstShare;
  sources_.budget.SetTotal(kTotal);
  for (int round = 0; round < 10; ++round) {
    cache_.FreeAll(cache_.AllocateMany(kClass, 2 * kTotal / kSizeClasses[kClass].size));
  }
  const size_t before = CachedChains();
  ASSERT_GT(CachedBytes(cache_), kTotal - kTotal / 8);
  const Objects objects = cache_.AllocateMany(kOtherClass, Batch(kOtherClass));
  EXPECT_LT(CachedChains(), before);
  EXPECT_GT(CachedChains(), before / 2);
  EXPECT_LE(CachedBytes(cache_), kTotal);
  cache_.FreeAll(objects);
  cache_->CheckInvariants();
}

TEST_F(ThreadCacheCollectTest, AnActiveCacheGrowsAtTheCostOfAnIdleOne) {
  constexpr size_t kTotal = size_t{16} * CacheBudget::kFirstShare;
  sources_.budget.SetTotal(kTotal);
  TestCache other(sources_);
  const auto use = [&](TestCache& cache) {
    for (int round = 0; round < 10; ++round) {
      cache.FreeAll(cache.AllocateMany(kClass, kTotal / 64));
    }
  };
  use(other);
  const int64_t idle_before = other->share().limit();
  EXPECT_GT(idle_before, CacheBudget::kFirstShare);
  use(cache_);
  EXPECT_LT(other->share().limit(), idle_before);
  EXPECT_GT(cache_->share().limit(), CacheBudget::kFirstShare);
  sources_.budget.CheckInvariants();
}

TEST_F(ThreadCacheCollectTest, ObjectsFreedByAnotherThreadAreConserved) {
  TestCache consumer(sources_);
  for (int round = 0; round < 50; ++round) {
    consumer.FreeAll(cache_.AllocateMany(kClass, 7 * Batch()));
    cache_->CheckInvariants();
    consumer->CheckInvariants();
    ASSERT_EQ(sources_.ObjectsOut(), cache_->CountObjects(kClass) + consumer->CountObjects(kClass));
  }
  cache_->Retire();
  consumer->Retire();
  EXPECT_EQ(sources_.ObjectsOut(), 0u);
}

}  // namespace
}  // namespace tcmalloc::testing
