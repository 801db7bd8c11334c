// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/per_cpu/cpu_cache.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "fakes/one_cpu.h"
#include "unit/cache/per_cpu/test_cpu_cache.h"

namespace tcmalloc::testing {
namespace {

constexpr uint8_t k48 = kClassBySize[48];
constexpr uint8_t k64 = kClassBySize[64];
constexpr uint8_t k1024 = SmallestSizeClassFor(1024);
constexpr uint8_t k32K = SizeClassFor(size_t{32} << 10);
constexpr uint32_t kBatch = kSizeClasses[k64].batch;

// A thread whose CPU the test chooses, of which there are a few.
class CpuCacheTest : public ::testing::TestWithParam<CpuIds> {
 protected:
  static constexpr int kCpus = 3;
  static constexpr size_t kHeapBytes = size_t{16} << 20;

  void SetUp() override {
    if (Support().state != RseqState::kUsable) GTEST_SKIP() << RseqStateName(Support().state);
    TestFence::Reset();
    TestFence::real = false;
    Start(TestCpus::kAmpleBytes);
  }
  void TearDown() override {
    TestFence::Reset();
    if (!cpus_.has_value()) return;
    cpus_->cache.CheckInvariants();
    EXPECT_EQ(cpus_->ObjectsOut(), used_.size() + cpus_->CachedObjects());
    cpus_->cache.Flush();
    EXPECT_EQ(cpus_->CachedObjects(), 0u);
    EXPECT_EQ(cpus_->ObjectsOut(), used_.size());
    cpus_->cache.CheckInvariants();
    thread_.reset();
    EXPECT_EQ(cpus_->cache.stats().threads, 0u);
  }

  void Start(size_t bytes_per_cpu) {
    thread_.reset();
    cpus_.emplace(GetParam(), kCpus, bytes_per_cpu);
    thread_.emplace(*cpus_, &area_);
    ASSERT_NE(thread_->thread(), nullptr);
    Migrate(0);
  }

  void Migrate(uint32_t cpu) { (GetParam() == CpuIds::kMmCid ? area_.mm_cid : area_.cpu_id) = cpu; }
  GenerousSource& source(uint8_t c) { return cpus_->source(c); }
  size_t Count(uint8_t c) { return cpus_->cache.CountObjects(c); }

  void* Allocate(uint8_t c) {
    void* object = thread_->Allocate(c);
    if (object != nullptr) {
      EXPECT_TRUE(used_.insert(object).second) << "handed out twice";
      EXPECT_EQ(LinkWord(object), 0u);
    }
    return object;
  }
  void Free(void* object) {
    EXPECT_EQ(used_.erase(object), 1u);
    thread_->Free(object);
  }
  std::vector<void*> AllocateMany(uint8_t c, size_t count) {
    std::vector<void*> objects;
    for (size_t i = 0; i < count; ++i) objects.push_back(Allocate(c));
    return objects;
  }
  void FreeAll(const std::vector<void*>& objects) {
    for (void* object : objects) Free(object);
  }
  // Allocates so many bytes, and returns the objects page by page, in any order in each of them.
  std::vector<void*> AllocatePages(uint8_t c, size_t bytes) {
    std::vector<void*> objects = AllocateMany(c, bytes / kSizeClasses[c].size);
    std::sort(objects.begin(), objects.end());
    const auto per_page = static_cast<ptrdiff_t>(4096 / kSizeClasses[c].size);
    std::mt19937_64 random(1);
    for (auto page = objects.begin(); objects.end() - page >= per_page; page += per_page) {
      std::shuffle(page, page + per_page, random);
    }
    return objects;
  }
  // Lets the slab take in as many objects as it will.
  void FillSlab(uint8_t c, size_t count) { FreeAll(AllocateMany(c, count)); }
  // So many misses of a class of which nothing comes back.
  void Miss(uint8_t c, int count) {
    source(c).set_batch(1);
    for (int i = 0; i < count; ++i) Allocate(c);
  }

  RseqArea area_;
  std::optional<TestCpus> cpus_;
  std::optional<TestCpuThread> thread_;
  std::set<void*> used_;
};

TEST_P(CpuCacheTest, StartsWithNothing) {
  const CpuCacheStats stats = cpus_->cache.stats();
  EXPECT_EQ(stats.threads, 1u);
  EXPECT_EQ(stats.slabs, 0u);
  EXPECT_EQ(stats.cached_bytes, 0u);
  EXPECT_EQ(stats.allocated.bytes, 0u);
  EXPECT_EQ(cpus_->ObjectsOut(), 0u);
}

TEST_P(CpuCacheTest, TheFirstObjectsComeAlone) {
  AllocateMany(k64, 1 + 2 + 4 + 8);
  EXPECT_EQ(source(k64).fetches(), (std::vector<uint32_t>{1, 2, 4, 8}));
  EXPECT_EQ(cpus_->cache.stats().slabs, 1u);
  EXPECT_EQ(Count(k64), 0u);
}

TEST_P(CpuCacheTest, LaterOnesInBatches) {
  AllocateMany(k64, 10 * kBatch);
  EXPECT_EQ(source(k64).fetches().back(), kBatch);
  source(k64).ForgetCalls();
  AllocateMany(k64, kBatch);
  EXPECT_LE(source(k64).fetches().size(), 1u);
}

TEST_P(CpuCacheTest, EveryClassIsServed) {
  for (size_t i = 1; i < kSizeClassCount; ++i) {
    const auto c = static_cast<uint8_t>(i);
    const std::vector<void*> objects = AllocateMany(c, 5);
    for (void* object : objects) {
      EXPECT_EQ(cpus_->space.map->FindInUse(object)->size_class, c);
    }
    FreeAll(objects);
    EXPECT_EQ(cpus_->source(c).objects_out(), Count(c));
  }
}

TEST_P(CpuCacheTest, AThreadThatUsesOneObjectMovesToALineOfItsOwn) {
  constexpr uint8_t k24 = SizeClassFor(24);
  constexpr size_t kPairs = 4 * EventClock::kMeanInterval / 24;
  const auto use_one = [&] {
    void* object = nullptr;
    for (size_t i = 0; i < kPairs; ++i) Free(object = Allocate(k24));
    return object;
  };
  void* const foreign = Allocate(k24);
  Free(foreign);
  EXPECT_EQ(use_one(), foreign) << "the source has no line";
  source(k24).has_lines = true;
  void* const own = use_one();
  EXPECT_NE(own, foreign);
  EXPECT_EQ(use_one(), own) << "it stays there";
  EXPECT_EQ(source(k24).lines(), 1u);
  EXPECT_EQ(Count(k24) + 1, source(k24).objects_out() + 1);
}

TEST_P(CpuCacheTest, WhatWasFreedIsAllocatedFirst) {
  std::vector<void*> objects = AllocateMany(k64, 100);
  FreeAll(objects);
  const size_t slow_paths = thread_->slow_paths;
  source(k64).ForgetCalls();
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(Allocate(k64), objects.back());
    objects.pop_back();
  }
  EXPECT_EQ(thread_->slow_paths, slow_paths);
  EXPECT_EQ(source(k64).fetches().size(), 0u);
}

// The fast path for sizes below kClassBySize.size() is the assembly's, above it is TryAllocate.
TEST_P(CpuCacheTest, PairsNeedNoSlowPath) {
  for (uint8_t c : {k64, k32K}) {
    FillSlab(c, 20);
    const size_t slow_paths = thread_->slow_paths;
    for (int i = 0; i < 10; ++i) Free(Allocate(c));
    EXPECT_LE(thread_->slow_paths, slow_paths + (c == k32K ? 5 : 0)) << "the clock may expire";
  }
}

// A size that a slow path of the clock finds at hand is looked up from then on.
TEST_P(CpuCacheTest, SizesThatAreOftenAllocatedAreLookedUp) {
  constexpr size_t kLargerSize = 9000;
  for (int i = 0; i < 1000; ++i) {
    void* object = thread_->Malloc(kLargerSize);
    ASSERT_NE(object, nullptr);
    thread_->Free(object);
  }
  const uint64_t bytes = thread_->clock().allocated_bytes();
  EXPECT_EQ(bytes, 1000 * kLargerSize);
  thread_->slow_paths = 0;
  for (int i = 0; i < 1000; ++i) thread_->Free(thread_->Malloc(kLargerSize));
  EXPECT_EQ(thread_->clock().allocated_bytes(), 2 * bytes);
  EXPECT_LT(thread_->slow_paths, 3 * bytes / EventClock::kMeanInterval);
}

TEST_P(CpuCacheTest, TheClockCountsEveryAllocationOnce) {
  uint64_t bytes = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto c = static_cast<uint8_t>(1 + i * 7 % (kSizeClassCount - 1));
    Free(Allocate(c));
    bytes += kSizeClasses[c].size;
    ASSERT_EQ(thread_->clock().allocated_bytes(), bytes);
  }
  EXPECT_EQ(cpus_->cache.stats().allocated.bytes, bytes);
  thread_.reset();
  EXPECT_EQ(cpus_->cache.stats().allocated.bytes, bytes) << "also of ended threads";
}

TEST_P(CpuCacheTest, WhatFailsIsNotCounted) {
  source(k64).fail = [] { return true; };
  source(k32K).fail = [] { return true; };
  for (uint8_t c : {k64, k32K}) {
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(Allocate(c), nullptr);
  }
  EXPECT_EQ(thread_->clock().allocated_bytes(), 0u);
  source(k64).fail = nullptr;
  EXPECT_NE(Allocate(k64), nullptr);
}

// As if the window had ended at the object when the thread was opened.
TEST_P(CpuCacheTest, OpenFollowsTheWindow) {
  void* const object = Allocate(k64);
  thread_->thread()->link_limit = static_cast<int64_t>(ReferenceTo(object));
  const size_t before = thread_->slow_paths;
  Free(object);
  EXPECT_EQ(thread_->slow_paths, before + 1);
  EXPECT_EQ(thread_->thread()->link_limit, cpus_->space.codec.limit());
  Free(Allocate(k64));
  EXPECT_EQ(thread_->slow_paths, before + 1);
}

// The CPU that frees fetched nothing, so it keeps no more than its slots.
TEST_P(CpuCacheTest, OverflowReturnsBatches) {
  const std::vector<void*> objects = AllocateMany(k64, 4 * kMaxSlots[k64]);
  const size_t before = Count(k64);
  Migrate(1);
  source(k64).ForgetCalls();
  FreeAll(objects);
  EXPECT_GE(Count(k64) - before, kBatch);
  EXPECT_LE(Count(k64) - before, kMaxSlots[k64]);
  ASSERT_FALSE(source(k64).inserts().empty());
  for (uint32_t count : source(k64).inserts()) EXPECT_EQ(count, kBatch);
}

TEST_P(CpuCacheTest, WhatWasFetchedIsKept) {
  const std::vector<void*> objects = AllocateMany(k64, 4 * kMaxSlots[k64]);
  source(k64).ForgetCalls();
  FreeAll(objects);
  EXPECT_TRUE(source(k64).inserts().empty());
  EXPECT_EQ(cpus_->cache.stats().cached_bytes, Count(k64) * 64);
  const std::vector<void*> again = AllocateMany(k64, objects.size());
  EXPECT_TRUE(source(k64).fetches().empty());
  EXPECT_TRUE(std::equal(again.rbegin(), again.rend(), objects.begin())) << "the last comes first";
}

// A slab holds many bytes of them in its slots.
TEST_P(CpuCacheTest, OfLargerObjectsNoMoreIsKeptThanTheSlotsHold) {
  for (uint8_t c : {SizeClassFor(272), SizeClassFor(320), k1024, SizeClassFor(1280)}) {
    FillSlab(c, size_t{4} * kMaxSlots[c]);
    EXPECT_LE(Count(c), kMaxSlots[c]) << kSizeClasses[c].size;
  }
}

TEST_P(CpuCacheTest, TheBudgetBoundsWhatIsKept) {
  constexpr size_t kLimit = size_t{256} << 10;
  Start(kLimit);
  for (int round = 0; round < 3; ++round) {
    FreeAll(AllocateMany(k64, 2 * kLimit / 64));
    EXPECT_LE(Count(k64) * 64, kLimit);
    EXPECT_GT(Count(k64) * 64, kLimit / 2);
    cpus_->cache.CheckInvariants();
  }
}

TEST_P(CpuCacheTest, BatchesMakeRoomForSlotsOfOtherClasses) {
  constexpr size_t kLimit = size_t{256} << 10;
  Start(kLimit);
  FreeAll(AllocateMany(k64, 2 * kLimit / 64));
  const size_t before = Count(k64);
  FillSlab(k1024, 100);
  EXPECT_GE(Count(k1024), source(k1024).batch() - 1);
  EXPECT_LT(Count(k64), before);
  EXPECT_LE(cpus_->CachedBytes(), kLimit);
}

TEST_P(CpuCacheTest, BatchesOfAnUnusedClassGoBack) {
  FillSlab(k64, 8 * kMaxSlots[k64]);
  ASSERT_GT(Count(k64), 2u * kMaxSlots[k64]);
  Miss(k1024, 20 * 256);
  EXPECT_EQ(Count(k64), 0u);
}

TEST_P(CpuCacheTest, BatchesThatLieUnusedInAUsedClassGoBack) {
  FillSlab(k64, 8 * kMaxSlots[k64]);
  const size_t before = Count(k64);
  for (int i = 0; i < 100; ++i) FreeAll(AllocateMany(k64, 2 * kMaxSlots[k64]));
  EXPECT_LT(Count(k64), before / 2);
  EXPECT_GE(Count(k64), 2u * kMaxSlots[k64] - kBatch);
}

TEST_P(CpuCacheTest, ObjectsInBatchesAreFound) {
  const std::vector<void*> objects = AllocateMany(k64, 4 * kMaxSlots[k64]);
  for (size_t i = 0; i < objects.size(); i += 97) {
    EXPECT_FALSE(cpus_->cache.Holds(objects[i], k64));
  }
  FreeAll(objects);
  for (size_t i = 0; i < objects.size(); i += 97) {
    EXPECT_TRUE(cpus_->cache.Holds(objects[i], k64));
    EXPECT_TRUE(cpus_->cache.LooksFree(objects[i]));
  }
}

// As after a write to freed memory.
TEST_P(CpuCacheTest, BatchesAreCheckedAtTheEnd) {
  const std::vector<void*> objects = AllocateMany(k64, 4 * kMaxSlots[k64]);
  FreeAll(objects);
  size_t most = SIZE_MAX;
  cpus_->cache.CheckFreeObjects(&most);
  EXPECT_LE(most, SIZE_MAX - objects.size());
  void* const first = objects.front();
  const uint32_t mark = MarkOf(first);
  SetMark(first, 0);
  EXPECT_DEATH(cpus_->cache.CheckFreeObjects(&most), "corrupted free list");
  SetMark(first, mark);
}

// As in the child of fork, where the slots are as the kernel found them and the rest is whole.
TEST_P(CpuCacheTest, BatchesOutliveAbandonedSlots) {
  const std::vector<void*> objects = AllocateMany(k64, 4 * kMaxSlots[k64]);
  FreeAll(objects);
  const size_t before = Count(k64);
  cpus_->cache.AbandonObjects();
  EXPECT_LT(Count(k64), before);
  EXPECT_GT(Count(k64), 2u * kMaxSlots[k64]);
  cpus_->cache.CheckInvariants();
  source(k64).ForgetCalls();
  const size_t abandoned = before - Count(k64);
  AllocateMany(k64, Count(k64));
  EXPECT_TRUE(source(k64).fetches().empty());
  EXPECT_EQ(cpus_->ObjectsOut(), used_.size() + abandoned);
  thread_.reset();
  cpus_.reset();
}

TEST_P(CpuCacheTest, ArraysComeAndGoUntouched) {
  source(k64).keeps_arrays = true;
  const std::vector<void*> objects = AllocateMany(k64, 4 * kMaxSlots[k64]);
  AllocateMany(k64, Count(k64));
  Migrate(1);
  FreeAll(objects);
  const size_t kept = source(k64).arrays_kept();
  EXPECT_GT(kept, 3u);
  source(k64).ForgetCalls();
  AllocateMany(k64, objects.size());
  EXPECT_EQ(source(k64).arrays_kept(), 0u);
  EXPECT_TRUE(source(k64).fetches().empty());
  EXPECT_EQ(source(k64).arrays_out(), 0u);
}

// As a thread with lists leaves it, one of whose signal handlers left a list with a wrong length.
TEST_P(CpuCacheTest, AChainMayEndEarly) {
  AllocateMany(k64, 10 * kBatch);
  AllocateMany(k64, Count(k64));
  constexpr uint32_t kObjects = 5;
  source(k64).kept_chain = {source(k64).Fetch(kObjects).head, kObjects + 3};
  source(k64).ForgetCalls();
  AllocateMany(k64, kObjects);
  EXPECT_TRUE(source(k64).fetches().empty());
  EXPECT_EQ(Count(k64), 0u);
}

TEST_P(CpuCacheTest, WhatAChainHasBeyondItsCountGoesBack) {
  AllocateMany(k64, 10 * kBatch);
  AllocateMany(k64, Count(k64));
  constexpr uint32_t kObjects = 5;
  const size_t out = source(k64).objects_out();
  cpus_->space.counts_hold = false;
  source(k64).kept_chain = {source(k64).Fetch(kObjects).head, kObjects - 2};
  AllocateMany(k64, kObjects - 2);
  EXPECT_EQ(Count(k64), 0u);
  EXPECT_EQ(source(k64).objects_out(), out + kObjects - 2);
}

TEST_P(CpuCacheTest, WithoutArraysObjectsGoOneByOne) {
  const std::vector<void*> objects = AllocateMany(k64, 2 * kMaxSlots[k64]);
  source(k64).no_arrays = true;
  source(k64).ForgetCalls();
  FreeAll(objects);
  EXPECT_EQ(Count(k64), kMaxSlots[k64]);
  for (uint32_t count : source(k64).inserts()) EXPECT_EQ(count, 1u);
  AllocateMany(k64, kMaxSlots[k64]);
  EXPECT_EQ(Count(k64), 0u);
  for (void* object : AllocateMany(k64, 10)) EXPECT_NE(object, nullptr);
  EXPECT_EQ(Count(k64), 0u);
}

TEST_P(CpuCacheTest, OfScatteredObjectsFewAreKept) {
  constexpr size_t kKept = kScatterSharedBytes / 64;
  std::vector<void*> objects = AllocateMany(k64, kMaxSlots[k64] + kKept + 20 * kBatch);
  std::shuffle(objects.begin(), objects.end(), std::mt19937_64(1));
  const std::vector<void*> few(objects.begin(), objects.begin() + kKept);
  FreeAll(few);
  EXPECT_EQ(source(k64).inserts_past(), 0u);
  objects.erase(objects.begin(), objects.begin() + kKept);
  FreeAll(objects);
  EXPECT_GT(source(k64).inserts_past(), 10u);
}

// Those beyond the slots go to the depot until a core's own caches are full of them.
TEST_P(CpuCacheTest, OfNearObjectsACoresCachesAreKept) {
  constexpr uint8_t c = SizeClassFor(128);
  const std::vector<void*> objects = AllocatePages(c, 4 * kNearKeptBytes);
  const auto half = objects.begin() + kNearKeptBytes / 2 / 128;
  FreeAll({objects.begin(), half});
  EXPECT_EQ(source(c).inserts_past(), 0u);
  FreeAll({half, objects.end()});
  EXPECT_GT(source(c).inserts_past(), 2 * kNearKeptBytes / 128 / source(c).batch());
}

TEST_P(CpuCacheTest, PiecesOfRowsStayWhereTheyFit) {
  for (int i = 0; i < 2; ++i) FreeAll(AllocatePages(k48, 4 * kNearKeptBytes));
  EXPECT_EQ(source(k48).inserts_past(), 0u);
}

TEST_P(CpuCacheTest, PiecesOfRowsGoHomeWhereTheyDoNotFit) {
  cpus_->cache.SetBytesPerCpu(4 * kNearKeptBytes);
  FreeAll(AllocatePages(k48, 8 * kNearKeptBytes));
  EXPECT_GT(source(k48).inserts_past(), 2 * kNearKeptBytes / 48 / source(k48).batch());
  FreeAll(AllocatePages(k48, 8 * kNearKeptBytes));
  EXPECT_LE(Count(k48), kMaxSlots[k48]) << "others also";
}

TEST_P(CpuCacheTest, PiecesOfRowsStayAgainOnceFewGoHome) {
  cpus_->cache.SetBytesPerCpu(4 * kNearKeptBytes);
  for (int i = 0; i < 2; ++i) FreeAll(AllocatePages(k48, 8 * kNearKeptBytes));
  FreeAll(AllocatePages(k48, 2 * kNearKeptBytes));
  ASSERT_LE(Count(k48), kMaxSlots[k48]) << "the class outgrew the slab before";
  FreeAll(AllocatePages(k48, 2 * kNearKeptBytes));
  EXPECT_GT(Count(k48), kNearKeptBytes / 48);
}

TEST_P(CpuCacheTest, NeighboursStay) {
  std::vector<void*> objects = AllocateMany(k64, kMaxSlots[k64] + 8192);
  std::sort(objects.begin(), objects.end());
  FreeAll(objects);
  EXPECT_GT(Count(k64), 2 * kBatch);
  EXPECT_EQ(source(k64).inserts_past(), 0u);
}

// The fast path takes them in; their low bits tell when they leave the slab by another way.
TEST_P(CpuCacheTest, AddressesInsideOfObjectsAreNoticedLater) {
  const std::vector<void*> objects = thread_->AllocateMany(k64, 3 * kBatch);
  char* interior = static_cast<char*>(objects.back()) + 8;
  EXPECT_DEATH(
      {
        thread_->FreeAll({objects.begin(), objects.begin() + 4});
        thread_->Free(interior);
        cpus_->cache.Flush();
      },
      "corrupted free list");
  thread_->FreeAll(objects);
}

TEST_P(CpuCacheTest, ObjectsInASlabAreFoundThere) {
  const std::vector<void*> objects = AllocateMany(k64, 50);
  for (void* object : objects) EXPECT_FALSE(cpus_->cache.Holds(object, k64));
  FreeAll(objects);
  EXPECT_TRUE(cpus_->cache.Holds(objects.back(), k64));
  size_t held = 0;
  for (void* object : objects) held += cpus_->cache.Holds(object, k64) ? 1 : 0;
  EXPECT_LE(held, Count(k64));
  EXPECT_FALSE(cpus_->cache.Holds(objects.back(), k1024));
  EXPECT_FALSE(cpus_->cache.Holds(nullptr, k64));
}

TEST_P(CpuCacheTest, ObjectsInSlabsBearTheMark) {
  const std::vector<void*> objects = AllocateMany(k64, 2);
  const Span* span = cpus_->space.map->FindInUse(objects[1]);
  EXPECT_EQ(Count(k64), 1u) << "a part of what was fetched";
  FreeAll(objects);
  size_t held = 0;
  for (size_t offset = 0; offset < span->bytes(); offset += 64) {
    const char* object = span->start() + offset;
    if (!cpus_->cache.Holds(object, k64)) continue;
    EXPECT_TRUE(cpus_->cache.LooksFree(const_cast<char*>(object)));
    ++held;
  }
  EXPECT_EQ(held, Count(k64));
  EXPECT_EQ(held, 3u);
}

TEST_P(CpuCacheTest, ObjectsOfOneCpuAreNotThoseOfAnother) {
  FillSlab(k64, 100);
  const size_t here = Count(k64);
  Migrate(1);
  source(k64).ForgetCalls();
  void* object = Allocate(k64);
  EXPECT_EQ(source(k64).fetches(), std::vector<uint32_t>{1});
  EXPECT_EQ(cpus_->cache.stats().slabs, 2u);
  Migrate(0);
  Free(object);
  EXPECT_EQ(cpus_->ObjectsOut(), Count(k64));
  EXPECT_GE(Count(k64), here);
}

// A chain that arrives on another CPU than the one for which it was fetched.
TEST_P(CpuCacheTest, ARefillMayMigrate) {
  AllocateMany(k64, 2 * kBatch);
  for (uint32_t cpu = 0; cpu < 20; ++cpu) {
    source(k64).fail = [&] {
      Migrate((cpu + 1) % kCpus);
      return false;
    };
    Migrate(cpu % kCpus);
    AllocateMany(k64, kBatch);
    cpus_->cache.CheckInvariants();
    ASSERT_EQ(cpus_->ObjectsOut(), used_.size() + Count(k64));
  }
  EXPECT_EQ(cpus_->cache.stats().slabs, 3u);
  EXPECT_EQ(source(k64).inserts().size(), 0u) << "everything found room";
}

TEST_P(CpuCacheTest, AChainLongerThanTheCapacityFindsRoom) {
  source(k64).more = 100;
  Allocate(k64);
  EXPECT_EQ(Count(k64), 100u);
  EXPECT_EQ(source(k64).inserts().size(), 0u);
}

TEST_P(CpuCacheTest, WhatFindsNoRoomGoesBack) {
  Start(size_t{64} << 10);
  source(k1024).more = 100;
  Allocate(k1024);
  EXPECT_EQ(Count(k1024), 64u);
  EXPECT_EQ(source(k1024).objects_out(), 65u);
  // A batch is not more than a piece here, so it goes back as one chain.
  EXPECT_EQ(source(k1024).inserts(), std::vector<uint32_t>{100 - 64});
}

TEST_P(CpuCacheTest, WithoutAnyBudgetObjectsPassThrough) {
  Start(0);
  for (uint8_t c : {k64, k1024, k32K}) {
    FreeAll(AllocateMany(c, 100));
    EXPECT_EQ(Count(c), 0u);
    EXPECT_EQ(source(c).objects_out(), 0u);
    for (uint32_t wanted : source(c).fetches()) EXPECT_EQ(wanted, 1u);
  }
}

TEST_P(CpuCacheTest, TheBudgetBoundsWhatASlabHolds) {
  constexpr size_t kLimit = size_t{200} << 10;
  Start(kLimit);
  size_t most = 0;
  for (int round = 0; round < 50; ++round) {
    for (size_t i = 1; i < kSizeClassCount; i += 5) {
      FillSlab(static_cast<uint8_t>(i), 1 + (size_t{64} << 10) / kSizeClasses[i].size);
      most = std::max(most, cpus_->CachedBytes());
      ASSERT_LE(most, 2 * kLimit) << "with what it may have of others";
    }
    cpus_->cache.CheckInvariants();
  }
  EXPECT_GT(most, kLimit / 2);
}

TEST_P(CpuCacheTest, FlushReturnsWhatAllSlabsHold) {
  for (uint32_t cpu = 0; cpu < kCpus; ++cpu) {
    Migrate(cpu);
    for (uint8_t c : {k64, k1024, k32K}) FillSlab(c, 20);
  }
  EXPECT_GT(cpus_->CachedObjects(), 0u);
  FillSlab(k64, kMaxSlots[k64]);
  EXPECT_GT(Count(k64), kBatch);
  const int fences = TestFence::calls;
  cpus_->cache.Flush();
  EXPECT_EQ(cpus_->CachedObjects(), 0u);
  EXPECT_EQ(cpus_->ObjectsOut(), 0u);
  EXPECT_EQ(TestFence::calls - fences, 2 * kCpus);
  for (uint32_t count : source(k64).inserts()) EXPECT_LE(count, kBatch);
  source(k64).ForgetCalls();
  Allocate(k64);
  EXPECT_EQ(source(k64).fetches(), std::vector<uint32_t>{1}) << "capacities begin anew";
}

TEST_P(CpuCacheTest, ReleaseReturnsWhatOneSlabHolds) {
  TestCpus::Cache& cache = cpus_->cache;
  FreeAll(AllocateMany(k64, 100));
  const size_t cached = cpus_->CachedBytes();
  EXPECT_GE(cached, 100u * 64);
  EXPECT_EQ(cache.Release(-1), 0u);
  EXPECT_EQ(cache.Release(INT_MAX), 0u);
  EXPECT_EQ(cpus_->CachedBytes(), cached);
  size_t released = 0;
  for (int id = 0; id < 4096; ++id) released += cache.Release(id);
  EXPECT_EQ(released, cached);
  EXPECT_EQ(cpus_->CachedObjects(), 0u);
}

TEST_P(CpuCacheTest, FlushingWhatWasNeverUsedIsFree) {
  cpus_->cache.Flush();
  EXPECT_EQ(TestFence::calls, 0);
  EXPECT_EQ(cpus_->cache.stats().slabs, 0u);
}

TEST_P(CpuCacheTest, UnusedClassesShrink) {
  FillSlab(k1024, 200);
  EXPECT_GT(Count(k1024), 100u);
  Miss(k64, 20 * 256);
  EXPECT_EQ(Count(k1024), 0u);
}

TEST_P(CpuCacheTest, UnusedClassesShrinkWhereNothingIsMissed) {
  FillSlab(k1024, 200);
  FillSlab(k32K, 2);
  const size_t before = Count(k1024);
  const size_t fetches = source(k32K).fetches().size();
  const size_t slow_paths = thread_->slow_paths;
  // A tick may be a few slow paths, because the clock holds a part of its interval back.
  while (Count(k1024) >= before) {
    ASSERT_LT(thread_->slow_paths - slow_paths, size_t{20} * 256 * 16);
    FreeAll(AllocateMany(k32K, 2));
  }
  EXPECT_EQ(source(k32K).fetches().size(), fetches);
}

// What the source keeps of them goes as well, because the heap grows.
TEST_P(CpuCacheTest, ObjectsOfIdleClassesMakeWay) {
  FillSlab(k1024, 200);
  FillSlab(k32K, 4);
  cpus_->cache.MakeWay(kHeapBytes);
  EXPECT_GT(Count(k1024), 100u) << "it missed";
  Free(Allocate(k32K));
  Miss(k32K, 8);
  cpus_->cache.MakeWay(kHeapBytes);
  EXPECT_EQ(Count(k1024), 0u);
  EXPECT_EQ(source(k1024).objects_out(), 0u);
  EXPECT_EQ(source(k1024).most_kept, 0u) << "they pass by what the source keeps";
  FillSlab(k1024, 200);
  EXPECT_GT(Count(k1024), 100u) << "the slab is open";
}

TEST_P(CpuCacheTest, ObjectsOfIdleClassesMakeWayOnEveryCpu) {
  FillSlab(k1024, 200);
  Migrate(1);
  FillSlab(k64, 2 * kBatch);
  for (int i = 0; i < 2; ++i) cpus_->cache.MakeWay(kHeapBytes);
  EXPECT_EQ(Count(k1024), 0u);
  EXPECT_GT(Count(k64), 0u) << "which are few bytes";
}

TEST_P(CpuCacheTest, OfBusySlabsIdleClassesAreReleased) {
  FillSlab(k1024, 200);
  for (int i = 0; i < 2; ++i) {
    Miss(k64, 8);
    cpus_->cache.ReleaseIdle(kHeapBytes);
  }
  EXPECT_EQ(Count(k1024), 0u);
  EXPECT_EQ(source(k1024).most_kept, 0u);
}

TEST_P(CpuCacheTest, WithoutFencesIdleClassesStay) {
  FillSlab(k1024, 200);
  const size_t before = Count(k1024);
  TestFence::refused = INT32_MAX;
  for (int i = 0; i < 3; ++i) cpus_->cache.MakeWay(kHeapBytes);
  EXPECT_EQ(Count(k1024), before);
  TestFence::refused = 0;
  cpus_->cache.MakeWay(kHeapBytes);
  EXPECT_EQ(Count(k1024), 0u);
}

TEST_P(CpuCacheTest, SlotsHoldMoreInALargeHeap) {
  const auto fill = [this] {
    for (uint32_t kib = 8; kib <= 256; kib *= 2) FillSlab(SizeClassFor(size_t{kib} << 10), 64);
    return cpus_->CachedBytes();
  };
  EXPECT_LE(fill(), size_t{4} << 20);
  cpus_->cache.MakeWay(size_t{24} << 20);
  EXPECT_LE(fill(), size_t{6} << 20);
  EXPECT_GT(cpus_->CachedBytes(), size_t{4} << 20);
  cpus_->cache.ReleaseIdle(size_t{1} << 30);
  EXPECT_LE(fill(), TestCpus::kAmpleBytes / 2);
  EXPECT_GT(cpus_->CachedBytes(), size_t{6} << 20);
}

TEST_P(CpuCacheTest, SlabsShareWhatTheHeapAllows) {
  for (uint32_t cpu : {0, 1}) {
    Migrate(cpu);
    FillSlab(k32K, 64);
  }
  cpus_->cache.MakeWay(size_t{32} << 20);
  Migrate(0);
  for (uint32_t kib = 8; kib <= 256; kib *= 2) FillSlab(SizeClassFor(size_t{kib} << 10), 64);
  cpus_->cache.Release(1);
  EXPECT_LE(cpus_->CachedBytes(), size_t{4} << 20);
}

// Whichever CPU uses them: nobody else asks, as long as every CPU is busy.
TEST_P(CpuCacheTest, SourcesReturnWhatIsNotNeeded) {
  FillSlab(k1024, 200);
  FillSlab(k32K, 1);
  EXPECT_EQ(source(k1024).collections(), 0u);
  constexpr int kSweeps = 20;
  Miss(k64, kSweeps * 256);
  for (const uint8_t c : {k64, k1024, k32K}) {
    EXPECT_GE(source(c).collections(), 2u);
    EXPECT_LE(source(c).collections(), kSweeps / 2) << "one sweep does not ask all of them";
  }
  EXPECT_EQ(source(kClassBySize[128]).collections(), 0u) << "which nobody used";
}

TEST_P(CpuCacheTest, IdleSlabsAreDrained) {
  FillSlab(k1024, 200);
  Migrate(1);
  // Each sweep visits one slab. The second visit to an idle one finds no misses since the first.
  int sweeps = 0;
  for (; Count(k1024) > 0 && sweeps <= 2 * kCpus; ++sweeps) Miss(k64, 256);
  EXPECT_EQ(Count(k1024), 0u);
  EXPECT_LE(sweeps, 2 * kCpus);
  EXPECT_GT(sweeps, 1);
  Migrate(0);
  FillSlab(k1024, 200);
  EXPECT_GT(Count(k1024), 100u) << "a drained slab is as good as new";
}

TEST_P(CpuCacheTest, BusySlabsAreNotDrained) {
  FillSlab(k64, 2 * kBatch);
  FillSlab(k1024, 10);
  const size_t before = Count(k64);
  ASSERT_GT(before, 0u);
  for (int i = 0; i < 2 * kCpus; ++i) {
    Migrate(1);
    Miss(k32K, 256);
    Migrate(0);
    // A class in use keeps its capacity.
    Miss(k32K, 1);
    ASSERT_EQ(Count(k64), before);
  }
}

// A CPU that finds everything in its slab misses nothing.
TEST_P(CpuCacheTest, SlabsThatServeAreNotDrained) {
  FillSlab(k1024, 200);
  ASSERT_GT(Count(k1024), 100u);
  for (int i = 0; i < 20; ++i) {
    Migrate(1);
    Miss(k64, 256);
    Migrate(0);
    const size_t slow_paths = thread_->slow_paths;
    AllocateMany(k1024, 2);
    ASSERT_LE(thread_->slow_paths, slow_paths + 1) << "the clock may expire";
    ASSERT_GT(Count(k1024), 0u);
  }
}

TEST_P(CpuCacheTest, BudgetMovesFromIdleCpusToBusyOnes) {
  constexpr size_t kLimit = size_t{256} << 10;
  Start(kLimit);
  for (uint32_t cpu = 1; cpu < kCpus; ++cpu) {
    Migrate(cpu);
    FillSlab(k64, 100);
  }
  Migrate(0);
  size_t most = 0;
  for (int round = 0; round < 500; ++round) {
    const std::vector<void*> small = AllocateMany(k1024, 200);
    FreeAll(AllocateMany(SizeClassFor(2048), 100));
    FreeAll(small);
    most = std::max(most, cpus_->CachedBytes());
  }
  EXPECT_GT(most, kLimit * 5 / 4);
  EXPECT_LE(most, 2 * kLimit);
}

// A kernel that begins to refuse fences.
TEST_P(CpuCacheTest, WithoutFencesUnusedSlabsStayUnused) {
  TestFence::refused = INT32_MAX;
  FreeAll(AllocateMany(k64, 1000));
  EXPECT_EQ(cpus_->cache.stats().slabs, 0u);
  EXPECT_EQ(cpus_->ObjectsOut(), 0u);
  cpus_->cache.Flush();
  TestFence::refused = 0;
  FillSlab(k64, 1000);
  EXPECT_EQ(cpus_->cache.stats().slabs, 1u);
  EXPECT_GT(Count(k64), 0u);
}

TEST_P(CpuCacheTest, WithoutFencesNothingIsFlushed) {
  FillSlab(k64, 100);
  const size_t before = Count(k64);
  TestFence::refused = INT32_MAX;
  cpus_->cache.Flush();
  EXPECT_EQ(Count(k64), before);
  cpus_->cache.CheckInvariants();
  FillSlab(k64, 100);
}

TEST_P(CpuCacheTest, BatchesNeedNoFence) {
  FillSlab(k64, size_t{8} * kMaxSlots[k64]);
  const size_t before = cpus_->CachedBytes();
  TestFence::refused = INT32_MAX;
  const size_t released = cpus_->cache.Release(0);
  EXPECT_EQ(cpus_->CachedBytes(), before - released);
  EXPECT_LE(Count(k64), kMaxSlots[k64]);
  EXPECT_GT(Count(k64), 0u) << "nothing else goes back";
  cpus_->cache.CheckInvariants();
}

// They may be many. CheckFreeObjects passes by a slab whose lock somebody holds.
TEST_P(CpuCacheTest, BatchesGoBackWithoutTheLock) {
  FillSlab(k64, size_t{8} * kMaxSlots[k64]);
  int arrays = 0;
  source(k64).on_array = [&] {
    ++arrays;
    size_t most = SIZE_MAX;
    cpus_->cache.CheckFreeObjects(&most);
    EXPECT_LT(most, SIZE_MAX);
  };
  cpus_->cache.Flush();
  source(k64).on_array = nullptr;
  EXPECT_GT(arrays, 8);
}

TEST_P(CpuCacheTest, ASlabThatCannotBeReopenedIsPassedBy) {
  FillSlab(k64, 100);
  // Of two fences the second is refused.
  TestFence::on_call = [] { TestFence::refused = INT32_MAX; };
  cpus_->cache.Flush();
  cpus_->cache.CheckInvariants();
  EXPECT_EQ(cpus_->ObjectsOut(), 0u);
  FillSlab(k64, 1000);
  EXPECT_EQ(Count(k64), 0u);
  EXPECT_EQ(cpus_->ObjectsOut(), 0u);
  TestFence::on_call = nullptr;
  TestFence::refused = 0;
  FillSlab(k64, 1000);
  EXPECT_GT(Count(k64), 0u) << "whoever misses it opens it again";
}

TEST_P(CpuCacheTest, AClosedThreadIsServedBySlowPathsAlone) {
  FillSlab(k64, 100);
  CpuThread* thread = thread_->thread();
  cpus_->cache.Close(thread);
  int asked = 0;
  static int* counter;
  counter = &asked;
  EXPECT_EQ(thread->allocate(64, thread->name(),
                             [](size_t) -> void* {
                               ++*counter;
                               return nullptr;
                             }),
            nullptr);
  EXPECT_EQ(asked, 1);
  cpus_->cache.Open(thread);
  EXPECT_NE(Allocate(k64), nullptr);
}

TEST_P(CpuCacheTest, ThreadsShareSlabs) {
  RseqArea area = area_;
  TestCpuThread other(*cpus_, &area);
  EXPECT_EQ(cpus_->cache.stats().threads, 2u);
  const std::vector<void*> objects = AllocateMany(k64, 10);
  FreeAll(objects);
  void* object = other.Allocate(k64);
  EXPECT_EQ(object, objects.back());
  other.Free(object);
}

TEST_P(CpuCacheTest, RecordsAreReused) {
  {
    TestCpuThread other(*cpus_);
  }
  const size_t used = cpus_->space.arena.stats().used_bytes;
  for (int i = 0; i < 100; ++i) TestCpuThread other(*cpus_);
  EXPECT_EQ(cpus_->space.arena.stats().used_bytes, used);
}

TEST_P(CpuCacheTest, WithoutMemoryNobodyJoins) {
  cpus_->space.metadata.exhausted = true;
  while (cpus_->space.arena.Allocate(8, 8) != nullptr) {
  }
  EXPECT_EQ(cpus_->cache.Join(), nullptr);
  EXPECT_EQ(cpus_->cache.stats().threads, 1u);
}

TEST_P(CpuCacheTest, ACacheThatWasNotInitializedIsEmpty) {
  TestCpus::Cache cache(cpus_->space.arena);
  EXPECT_FALSE(cache.initialized());
  EXPECT_EQ(cache.CountObjects(k64), 0u);
  EXPECT_FALSE(cache.Holds(&cache, k64));
  EXPECT_EQ(cache.stats().slabs, 0u);
  cache.Flush();
  cache.CheckInvariants();
  cache.AbandonObjects();
}

INSTANTIATE_TEST_SUITE_P(Ids, CpuCacheTest, ::testing::Values(CpuIds::kMmCid, CpuIds::kCpuId),
                         [](const auto& ids) {
                           return ids.param == CpuIds::kMmCid ? "MmCid" : "CpuId";
                         });

// On the CPUs of this machine.
class RealCpusTest : public ::testing::TestWithParam<CpuIds> {
 protected:
  void SetUp() override {
    if (!Has(GetParam())) GTEST_SKIP() << RseqStateName(Support().state);
    TestFence::Reset();
    ASSERT_EQ(sched_getaffinity(0, sizeof(usable_), &usable_), 0);
  }
  void TearDown() override { sched_setaffinity(0, sizeof(usable_), &usable_); }

  cpu_set_t usable_;
};

TEST_P(RealCpusTest, AThreadMigratesBetweenOperations) {
  TestCpus cpus(GetParam());
  {
    TestCpuThread thread(cpus);
    std::vector<void*> used;
    for (int round = 0; round < 100; ++round) {
      for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (!CPU_ISSET(cpu, &usable_)) continue;
        ASSERT_TRUE(RunOnCpu(cpu));
        for (uint8_t c : {k64, k1024, k32K}) {
          for (int i = 0; i < 7; ++i) used.push_back(thread.Allocate(c));
          for (int i = 0; i < (round < 50 ? 5 : 9) && !used.empty(); ++i) {
            thread.Free(used.front());
            used.erase(used.begin());
          }
        }
        ASSERT_EQ(cpus.ObjectsOut(), used.size() + cpus.CachedObjects());
      }
      cpus.cache.CheckInvariants();
    }
    EXPECT_EQ(std::set<void*>(used.begin(), used.end()).size(), used.size());
    thread.FreeAll(used);
  }
  const size_t slabs = cpus.cache.stats().slabs;
  if (GetParam() == CpuIds::kCpuId) {
    EXPECT_EQ(slabs, static_cast<size_t>(CPU_COUNT(&usable_)));
  } else {
    EXPECT_LE(slabs, static_cast<size_t>(CPU_COUNT(&usable_)));
  }
  cpus.cache.Flush();
  EXPECT_EQ(cpus.ObjectsOut(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Ids, RealCpusTest, ::testing::Values(CpuIds::kMmCid, CpuIds::kCpuId),
                         [](const auto& ids) {
                           return ids.param == CpuIds::kMmCid ? "MmCid" : "CpuId";
                         });

}  // namespace
}  // namespace tcmalloc::testing
