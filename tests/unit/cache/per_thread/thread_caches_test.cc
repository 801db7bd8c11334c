// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/per_thread/thread_caches.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstdint>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "base/spin_lock.h"
#include "central/central_lists.h"
#include "fakes/fake_source_table.h"
#include "system/system_calls.h"
#include "test_cache.h"
#include "transfer/transfer_cache.h"

namespace tcmalloc::testing {
namespace {

class ThreadCachesTest : public ::testing::Test {
 protected:
  using Caches = ThreadCaches<FakeSourceTable<FakeBatchSource>>;

  TestSources sources_;
  Caches caches_{sources_.space.arena};
};

TEST_F(ThreadCachesTest, CreatedCachesAreClosedAndListed) {
  Caches::Cache* a = caches_.Create(sources_.context);
  Caches::Cache* b = caches_.Create(sources_.context);
  ASSERT_NE(a, nullptr);
  ASSERT_NE(b, nullptr);
  EXPECT_NE(a, b);
  EXPECT_TRUE(a->closed());
  EXPECT_EQ(caches_.stats().caches, 2u);
  size_t visited = 0;
  caches_.ForEach([&](const Caches::Cache& cache) {
    EXPECT_TRUE(&cache == a || &cache == b);
    ++visited;
  });
  EXPECT_EQ(visited, 2u);
  caches_.Destroy(a);
  caches_.Destroy(b);
  EXPECT_EQ(caches_.stats().caches, 0u);
}

TEST_F(ThreadCachesTest, KeepOnlyForgetsAllOthers) {
  Caches::Cache* kept = caches_.Create(sources_.context);
  Caches::Cache* forgotten = caches_.Create(sources_.context);
  ASSERT_NE(forgotten, nullptr);
  caches_.KeepOnly(kept);
  EXPECT_EQ(caches_.count(), 1u);
  caches_.ForEach([&](const Caches::Cache& cache) { EXPECT_EQ(&cache, kept); });
  Caches::Cache* next = caches_.Create(sources_.context);
  EXPECT_NE(next, forgotten) << "nobody reads its record, which stays as it is";
  EXPECT_EQ(caches_.count(), 2u);
  caches_.Destroy(next);
  caches_.Destroy(kept);
  caches_.KeepOnly(nullptr);
  EXPECT_EQ(caches_.count(), 0u);
}

TEST_F(ThreadCachesTest, DestroyReturnsEverything) {
  const uint8_t c = SizeClassFor(64);
  Caches::Cache* cache = caches_.Create(sources_.context);
  std::vector<void*> objects;
  cache->Close();
  for (int i = 0; i < 1000; ++i) objects.push_back(cache->AllocateSlow(c, 64));
  for (void* object : objects) cache->FreeSlow(object, c);
  EXPECT_EQ(caches_.stats().cached_bytes, sources_.ObjectsOut() * 64);
  sources_.budget.SetTotal(CacheBudget::kFirstShare);
  caches_.Destroy(cache);
  EXPECT_EQ(sources_.ObjectsOut(), 0u);
  sources_.budget.CheckInvariants();
}

TEST_F(ThreadCachesTest, RecordsAreReused) {
  caches_.Destroy(caches_.Create(sources_.context));
  const size_t used = sources_.space.arena.stats().used_bytes;
  for (int i = 0; i < 100; ++i) caches_.Destroy(caches_.Create(sources_.context));
  EXPECT_EQ(sources_.space.arena.stats().used_bytes, used);
}

// A cache that allocated and freed so many objects of 64 bytes.
class IdleCachesTest : public ThreadCachesTest {
 protected:
  static constexpr int kObjects = 4000;

  Caches::Cache* MakeFilled() {
    Caches::Cache* cache = caches_.Create(sources_.context);
    std::vector<void*> objects;
    cache->Close();
    for (int i = 0; i < kObjects; ++i) objects.push_back(cache->AllocateSlow(c_, 64));
    for (void* object : objects) cache->FreeSlow(object, c_);
    return cache;
  }

  const uint8_t c_ = SizeClassFor(64);
};

TEST_F(IdleCachesTest, ACacheThatWasIdleGivesUpHalfEachTime) {
  Caches::Cache* cache = MakeFilled();
  const size_t before = cache->CountObjects(c_);
  const size_t batch = kSizeClasses[c_].batch;
  caches_.ReleaseIdle(1, nullptr);
  EXPECT_EQ(cache->CountObjects(c_), before) << "it was in use since";
  caches_.ReleaseIdle(1, nullptr);
  EXPECT_LE(cache->CountObjects(c_), before / 2 + 2 * batch);
  EXPECT_GE(cache->CountObjects(c_), before / 2 - batch);
  for (int i = 0; i < 20; ++i) caches_.ReleaseIdle(1, nullptr);
  EXPECT_LE(cache->CountObjects(c_), 2 * batch);
  EXPECT_EQ(sources_.ObjectsOut(), cache->CountObjects(c_));
  cache->CheckInvariants();
  caches_.Destroy(cache);
}

TEST_F(IdleCachesTest, TheRunningThreadsCacheGivesUpWithoutAFence) {
  Caches::Cache* cache = MakeFilled();
  system_calls.membarrier = [](int, unsigned, int) {
    ADD_FAILURE() << "no other thread is concerned";
    return -1;
  };
  for (int i = 0; i < 20; ++i) caches_.ReleaseIdle(1, cache);
  system_calls = real_system_calls;
  EXPECT_LE(cache->CountObjects(c_), 2 * kSizeClasses[c_].batch);
  caches_.Destroy(cache);
}

TEST_F(IdleCachesTest, ACacheInUseGivesUpNothing) {
  Caches::Cache* cache = MakeFilled();
  caches_.ReleaseIdle(1, nullptr);
  for (int i = 0; i < 20; ++i) {
    std::vector<void*> objects;
    for (int j = 0; j < 500; ++j) objects.push_back(cache->AllocateSlow(c_, 64));
    for (void* object : objects) cache->FreeSlow(object, c_);
    const size_t before = cache->CountObjects(c_);
    caches_.ReleaseIdle(1, nullptr);
    EXPECT_EQ(cache->CountObjects(c_), before);
  }
  caches_.Destroy(cache);
}

TEST_F(IdleCachesTest, CachesAreVisitedInTurn) {
  std::vector<Caches::Cache*> caches;
  for (int i = 0; i < 10; ++i) caches.push_back(MakeFilled());
  const size_t before = caches[0]->CountObjects(c_);
  for (int i = 0; i < 5; ++i) caches_.ReleaseIdle(4, nullptr);
  for (Caches::Cache* cache : caches) {
    EXPECT_LT(cache->CountObjects(c_), before);
    caches_.Destroy(cache);
  }
}

// Caches whose shares others took, of threads that are idle as long as the test says.
class OverdrawnCachesTest : public IdleCachesTest {
 protected:
  // Returns true if a cache still holds more than its share.
  bool Look(int64_t most = INT64_MAX, const Caches::Cache* own = nullptr) {
    OverdraftLook look{.now = now_, .most = most};
    caches_.ReturnOverdrafts(SIZE_MAX, own, &look);
    return look.is_any_overdrawn;
  }
  void PassIdleTime() { now_ += OverdraftLook::kIdleNs; }

  // Makes a cache that was seen when its owner fell idle.
  Caches::Cache* MakeOverdrawn(int64_t share = CacheBudget::kLeastShare) {
    Caches::Cache* cache = MakeFilled();
    cache->share().bytes = share;
    EXPECT_TRUE(Look());
    PassIdleTime();
    return cache;
  }
  void Destroy(Caches::Cache* cache) {
    cache->CheckInvariants();
    caches_.Destroy(cache);
  }

 private:
  uint64_t now_ = OverdraftLook::kIdleNs;
};

TEST_F(OverdrawnCachesTest, WhatFitsTheShareStays) {
  Caches::Cache* cache = MakeFilled();
  const size_t before = cache->CountBytes();
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(Look());
    PassIdleTime();
  }
  EXPECT_EQ(cache->CountBytes(), before);
  Destroy(cache);
}

TEST_F(OverdrawnCachesTest, AnIdleOneReturnsWhatIsMoreThanItsShare) {
  constexpr size_t kShare = kObjects * 64 / 2;
  Caches::Cache* cache = MakeOverdrawn(kShare);
  EXPECT_FALSE(Look());
  EXPECT_LE(cache->CountBytes(), kShare);
  EXPECT_GE(cache->CountBytes(), kShare - 3 * size_t{kSizeClasses[c_].batch} * 64);
  Destroy(cache);
}

TEST_F(OverdrawnCachesTest, AnActiveOneIsLeftAlone) {
  Caches::Cache* cache = MakeOverdrawn();
  for (int i = 0; i < 3; ++i) {
    std::vector<void*> objects;
    for (int j = 0; j < 500; ++j) objects.push_back(cache->AllocateSlow(c_, 64));
    cache->share().bytes = INT32_MAX;
    for (void* object : objects) cache->FreeSlow(object, c_);
    cache->share().bytes = CacheBudget::kLeastShare;
    const size_t before = cache->CountBytes();
    EXPECT_TRUE(Look());
    EXPECT_TRUE(Look());
    EXPECT_EQ(cache->CountBytes(), before);
    PassIdleTime();
  }
  EXPECT_FALSE(Look());
  EXPECT_EQ(cache->full_bytes(), 0u);
  Destroy(cache);
}

TEST_F(OverdrawnCachesTest, TheRunningThreadsOneIsLeftAlone) {
  Caches::Cache* cache = MakeOverdrawn();
  const size_t before = cache->CountBytes();
  EXPECT_FALSE(Look(INT64_MAX, cache)) << "it returns what is too much itself";
  EXPECT_EQ(cache->CountBytes(), before);
  Destroy(cache);
}

TEST_F(OverdrawnCachesTest, ABoundLeavesTheRestToTheNextLook) {
  Caches::Cache* cache = MakeOverdrawn();
  const size_t before = cache->CountBytes();
  constexpr int64_t kMost = 16 << 10;
  EXPECT_TRUE(Look(kMost));
  const size_t returned = before - cache->CountBytes();
  EXPECT_GE(returned, size_t{kMost});
  EXPECT_LT(returned, kMost + size_t{kSizeClasses[c_].batch} * 64);
  EXPECT_FALSE(Look());
  EXPECT_EQ(cache->full_bytes(), 0u);
  Destroy(cache);
}

TEST_F(IdleCachesTest, FullChainsCanBeTakenFromAllCaches) {
  Caches::Cache* a = MakeFilled();
  Caches::Cache* b = MakeFilled();
  caches_.ReleaseFull();
  EXPECT_LE(sources_.ObjectsOut(), 2 * 2 * kSizeClasses[c_].batch);
  a->CheckInvariants();
  b->CheckInvariants();
  caches_.Destroy(a);
  caches_.Destroy(b);
}

TEST_F(ThreadCachesTest, TotalsOutliveTheCaches) {
  const uint8_t c = SizeClassFor(64);
  Caches::Cache* cache = caches_.Create(sources_.context);
  cache->Close();
  constexpr uint64_t kCount = 100'000;
  for (uint64_t i = 0; i < kCount; ++i) cache->FreeSlow(cache->AllocateSlow(c, 64), c);
  const ThreadCachesStats before = caches_.stats();
  EXPECT_EQ(before.allocated.bytes, kCount * 64);
  caches_.Destroy(cache);
  EXPECT_EQ(caches_.stats().allocated.bytes, before.allocated.bytes);
  EXPECT_EQ(caches_.stats().allocated.allocations(), before.allocated.allocations());
}

TEST_F(ThreadCachesTest, AllocationsOfShortLivedThreadsAreEstimated) {
  const uint8_t c = SizeClassFor(64);
  constexpr uint64_t kThreads = 100;
  constexpr uint64_t kCount = 3 * EventClock::kMeanInterval / 2 / 64;
  for (uint64_t thread = 0; thread < kThreads; ++thread) {
    Caches::Cache* cache = caches_.Create(sources_.context);
    cache->Close();
    for (uint64_t i = 0; i < kCount; ++i) cache->FreeSlow(cache->AllocateSlow(c, 64), c);
    caches_.Destroy(cache);
  }
  EXPECT_NEAR(static_cast<double>(caches_.stats().allocated.allocations()), kThreads * kCount,
              kThreads * kCount / 100.0);
}

// Caches whose threads end with a few objects of 64 bytes.
class SpareCachesTest : public ThreadCachesTest {
 protected:
  static constexpr int kObjects = 100;

  // Ends threads that lived at the same time.
  void EndThreads(int threads) {
    std::vector<Caches::Cache*> living;
    for (int i = 0; i < threads; ++i) living.push_back(caches_.Create(sources_.context));
    for (Caches::Cache* cache : living) {
      std::vector<void*> objects;
      for (int i = 0; i < kObjects; ++i) objects.push_back(cache->AllocateSlow(c_, 64));
      for (void* object : objects) cache->FreeSlow(object, c_);
    }
    for (Caches::Cache* cache : living) caches_.Destroy(cache);
  }

  const uint8_t c_ = SizeClassFor(64);
};

TEST_F(SpareCachesTest, TheNextThreadGetsWhatTheLastOneLeft) {
  EndThreads(1);
  EXPECT_EQ(caches_.count(), 0u);
  EXPECT_EQ(caches_.spare_count(), 1u);
  const size_t left = caches_.stats().cached_bytes;
  EXPECT_EQ(left, sources_.ObjectsOut() * 64);
  EXPECT_GE(left, kObjects * 64u);
  sources_.source(c_).ForgetCalls();
  Caches::Cache* next = caches_.Create(sources_.context);
  EXPECT_EQ(caches_.count(), 1u);
  EXPECT_EQ(next->CountBytes(), left);
  next->Open();
  for (int i = 0; i < 50; ++i) EXPECT_NE(next->TryAllocate(c_, 64), nullptr);
  EXPECT_TRUE(sources_.source(c_).fetches().empty());
  next->CheckInvariants();
  sources_.budget.CheckInvariants();
  caches_.Destroy(next);
}

TEST_F(SpareCachesTest, ItIsClosedAndNamesNothingOfTheLastThread) {
  Caches::Cache* cache = caches_.Create(sources_.context);
  cache->Open();
  GateSeat* const seat = reinterpret_cast<GateSeat*>(8);
  cache->thread()->seat = seat;
  cache->thread()->other = cache->thread();
  caches_.Destroy(cache);
  EXPECT_TRUE(cache->closed());
  ASSERT_EQ(caches_.Create(sources_.context), cache);
  EXPECT_TRUE(cache->closed());
  EXPECT_EQ(cache->thread()->seat, nullptr);
  EXPECT_EQ(cache->thread()->other, nullptr);
  caches_.Destroy(cache);
}

TEST_F(SpareCachesTest, ThoseThatNobodyNeedsGoBackByHalves) {
  EndThreads(16);
  ASSERT_EQ(caches_.spare_count(), 16u);
  caches_.ReleaseIdle(0, nullptr);
  EXPECT_EQ(caches_.spare_count(), 16u) << "there were none before";
  for (const size_t left : {8u, 4u, 2u, 1u, 0u}) {
    caches_.ReleaseIdle(0, nullptr);
    EXPECT_EQ(caches_.spare_count(), left);
    sources_.budget.CheckInvariants();
  }
  EXPECT_EQ(sources_.ObjectsOut(), 0u);
}

TEST_F(SpareCachesTest, ThoseThatComeAndGoStay) {
  for (int i = 0; i < 10; ++i) {
    EndThreads(8);
    caches_.ReleaseIdle(0, nullptr);
    EXPECT_EQ(caches_.spare_count(), 8u);
  }
}

TEST_F(SpareCachesTest, AllGoBackOnDemand) {
  EndThreads(16);
  caches_.ReleaseFull();
  EXPECT_EQ(caches_.spare_count(), 0u);
  EXPECT_EQ(caches_.stats().cached_bytes, 0u);
  EXPECT_EQ(sources_.ObjectsOut(), 0u);
  sources_.budget.CheckInvariants();
}

TEST_F(SpareCachesTest, TheyHoldASixteenthOfTheTotal) {
  constexpr size_t kTotal = 64 * CacheBudget::kFirstShare;
  sources_.budget.SetTotal(kTotal);
  EndThreads(16);
  EXPECT_EQ(caches_.spare_count(), 4u);
  EXPECT_LE(caches_.stats().cached_bytes, kTotal / 16);
  sources_.budget.CheckInvariants();
}

// Of what is more than a sixteenth the full chains go, and the lists stay.
TEST_F(SpareCachesTest, ALargeCacheKeepsItsLists) {
  sources_.budget.SetTotal(16 * CacheBudget::kFirstShare);
  Caches::Cache* cache = caches_.Create(sources_.context);
  std::vector<void*> objects;
  for (int i = 0; i < 10'000; ++i) objects.push_back(cache->AllocateSlow(c_, 64));
  for (void* object : objects) cache->FreeSlow(object, c_);
  ASSERT_GT(cache->CountBytes(), size_t{CacheBudget::kFirstShare});
  caches_.Destroy(cache);
  EXPECT_EQ(caches_.spare_count(), 1u);
  EXPECT_EQ(cache->full_bytes(), 0u);
  EXPECT_GT(cache->CountBytes(), 0u);
  sources_.budget.CheckInvariants();
}

TEST_F(SpareCachesTest, TheChildOfForkForgetsThem) {
  EndThreads(2);
  caches_.KeepOnly(nullptr);
  sources_.budget.KeepOnly(nullptr);
  EXPECT_EQ(caches_.spare_count(), 0u);
  EXPECT_EQ(caches_.count(), 0u);
  Caches::Cache* cache = caches_.Create(sources_.context);
  EXPECT_EQ(cache->CountBytes(), 0u);
  sources_.budget.CheckInvariants();
  caches_.Destroy(cache);
}

TEST_F(ThreadCachesTest, WithoutMemoryThereIsNone) {
  sources_.space.metadata.exhausted = true;
  while (sources_.space.arena.Allocate(8, 8) != nullptr) {
  }
  EXPECT_EQ(caches_.Create(sources_.context), nullptr);
  EXPECT_EQ(caches_.stats().caches, 0u);
}

// The whole way down to spans: caches over transfer caches over central lists.
struct Stack {
  using Central = CentralLists<FakeSpanSource>;
  using Transfer = TransferCache<Central>;
  using Cache = ThreadCache<FakeSourceTable<Transfer>>;

  Stack() {
    for (size_t i = 1; i < kSizeClassCount; ++i) {
      const auto c = static_cast<uint8_t>(i);
      centrals[c].Initialize(c, space.spans, *space.map, space.codec, space.arena);
      transfers.at(c).Initialize(centrals[c], arrays, space.codec, kSizeClasses[c].batch, 16);
    }
    budget.SetTotal(size_t{16} << 20);
    context = {&transfers, &space.codec, space.map.get(), &arrays, &budget};
  }

  void ExpectNothingOut() {
    caches.ReleaseFull();
    for (size_t c = 1; c < kSizeClassCount; ++c) {
      transfers.at(c).CheckInvariants();
      transfers.at(c).Drain();
      centrals[c].CheckInvariants();
      EXPECT_EQ(centrals[c].stats().allocated_objects, 0u);
      // Spans that no object was ever taken of may stay.
      EXPECT_EQ(centrals[c].stats().free_objects, 0u);
    }
  }

  ObjectSpace space;
  ChainArrays arrays{space.arena};
  CacheBudget budget;
  std::unique_ptr<Central[]> centrals = std::make_unique<Central[]>(kSizeClassCount);
  FakeSourceTable<Transfer> transfers;
  Cache::Context context;
  ThreadCaches<FakeSourceTable<Transfer>> caches{space.arena};
};

class ThreadCachesThreadsTest : public ::testing::Test {
 protected:
  static constexpr int kThreads = 4;

  void* Allocate(Stack::Cache* cache, uint8_t c) {
    const size_t size = kSizeClasses[c].size;
    if (void* object = cache->TryAllocate(c, size)) return object;
    cache->UndoTryAllocate(c);
    cache->Close();
    void* object = cache->AllocateSlow(c, size);
    cache->Open();
    return object;
  }

  void Free(Stack::Cache* cache, void* object, uint8_t c) {
    if (IsBelow(ReferenceTo(object), cache->thread()->address_limit)) {
      if (cache->TryFree(object)) return;
      cache->UndoTryFree(object);
    }
    cache->Close();
    cache->FreeSlow(object, c);
    cache->Open();
  }

  template <typename F>
  static void RunThreads(F f) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back(f, static_cast<uint64_t>(i) + 1);
    for (std::thread& thread : threads) thread.join();
  }

  Stack stack_;
};

struct Block {
  void* object;
  uint8_t size_class;
};

// Each thread frees what its neighbour allocated.
TEST_F(ThreadCachesThreadsTest, ObjectsMoveBetweenThreads) {
  constexpr int kRounds = 30;
  std::vector<std::vector<Block>> handed(kThreads);
  std::barrier round_ends(kThreads);
  RunThreads([&](uint64_t thread) {
    std::mt19937_64 random(thread);
    Stack::Cache* cache = stack_.caches.Create(stack_.context);
    const size_t mine = thread - 1;
    for (int round = 0; round < kRounds; ++round) {
      for (int i = 0; i < 500; ++i) {
        const auto c = SizeClassFor(random() % (random() % 8 == 0 ? 32768 : 512));
        void* object = Allocate(cache, c);
        ASSERT_NE(object, nullptr);
        *static_cast<uint64_t*>(object) = thread;
        handed[mine].push_back({object, c});
      }
      round_ends.arrive_and_wait();
      std::vector<Block>& others = handed[(mine + 1) % kThreads];
      for (const Block& block : others) {
        ASSERT_EQ(*static_cast<uint64_t*>(block.object), (mine + 1) % kThreads + 1);
        Free(cache, block.object, block.size_class);
      }
      others.clear();
      cache->CheckInvariants();
      round_ends.arrive_and_wait();
    }
    stack_.caches.Destroy(cache);
  });
  stack_.budget.CheckInvariants();
  stack_.ExpectNothingOut();
}

// One more thread takes chains from the caches of all others.
TEST_F(ThreadCachesThreadsTest, ChainsAreTakenFromCachesInUse) {
  std::atomic<int> running{kThreads};
  std::thread taker([&] {
    for (int i = 0; running.load() > 0; ++i) {
      if (i % 4 == 0) {
        stack_.caches.ReleaseFull();
      } else {
        stack_.caches.ReleaseIdle(2, nullptr);
      }
    }
  });
  RunThreads([&](uint64_t thread) {
    std::mt19937_64 random(thread);
    Stack::Cache* cache = stack_.caches.Create(stack_.context);
    std::vector<Block> blocks;
    for (int i = 0; i < 50'000; ++i) {
      const auto c = SizeClassFor(random() % 256);
      if (blocks.size() < 2000 && random() % 2 == 0) {
        void* object = Allocate(cache, c);
        ASSERT_NE(object, nullptr);
        *static_cast<uint64_t*>(object) = thread;
        blocks.push_back({object, c});
      } else if (!blocks.empty()) {
        std::swap(blocks[random() % blocks.size()], blocks.back());
        const Block block = blocks.back();
        blocks.pop_back();
        ASSERT_EQ(*static_cast<uint64_t*>(block.object), thread);
        Free(cache, block.object, block.size_class);
      }
    }
    for (const Block& block : blocks) Free(cache, block.object, block.size_class);
    stack_.caches.Destroy(cache);
    --running;
  });
  taker.join();
  stack_.budget.CheckInvariants();
  stack_.ExpectNothingOut();
}

TEST_F(ThreadCachesThreadsTest, CachesComeAndGo) {
  RunThreads([&](uint64_t thread) {
    std::mt19937_64 random(thread);
    for (int round = 0; round < 200; ++round) {
      Stack::Cache* cache = stack_.caches.Create(stack_.context);
      std::vector<Block> blocks;
      for (int i = 0; i < 100; ++i) {
        const auto c = SizeClassFor(random() % 2048);
        blocks.push_back({Allocate(cache, c), c});
      }
      for (const Block& block : blocks) Free(cache, block.object, block.size_class);
      stack_.caches.Destroy(cache);
    }
  });
  EXPECT_EQ(stack_.caches.stats().caches, 0u);
  stack_.ExpectNothingOut();
}

// Hits share nothing: full chains move under a lock that is the cache's own. Now and then a thread
// happens to look as if it used one object only, and gets another list.
TEST_F(ThreadCachesThreadsTest, SteadyStateSharesNothing) {
  constexpr size_t kObjects = 300;
  constexpr int kRounds = 200;
  const auto fetches = [&] {
    size_t sum = 0;
    for (size_t c = 1; c < kSizeClassCount; ++c) {
      const TransferStats stats = stack_.transfers.at(c).stats();
      sum += stats.hits + stats.misses;
    }
    return sum;
  };
  size_t before = 0;
  size_t after = 0;
  std::barrier warm(kThreads, [&]() noexcept { before = fetches(); });
  std::barrier done(kThreads, [&]() noexcept { after = fetches(); });
  RunThreads([&](uint64_t) {
    Stack::Cache* cache = stack_.caches.Create(stack_.context);
    std::vector<void*> objects(kObjects);
    const auto round = [&](uint8_t c) {
      for (void*& object : objects) object = Allocate(cache, c);
      for (void* object : objects) Free(cache, object, c);
    };
    for (int i = 0; i < 10; ++i) {
      for (size_t size : {16, 64, 512}) round(SizeClassFor(size));
    }
    warm.arrive_and_wait();
    for (int i = 0; i < kRounds; ++i) {
      for (size_t size : {16, 64, 512}) round(SizeClassFor(size));
    }
    done.arrive_and_wait();
    stack_.caches.Destroy(cache);
  });
  EXPECT_GT(before, 0u);
  EXPECT_LE(after, before + 2 * kThreads);
}

}  // namespace
}  // namespace tcmalloc::testing
