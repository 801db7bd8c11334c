// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Objects that a thread cache takes from its source and gives to its owner.

#include "cache/per_thread/thread_cache.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "test_cache.h"

namespace tcmalloc::testing {
namespace {

using Objects = std::vector<void*>;

constexpr uint8_t kLargeClass = SizeClassFor(kMaxSmallSize);

class ThreadCacheTest : public ::testing::TestWithParam<Window> {
 protected:
  uint32_t Batch() { return sources_.source(kClass).batch(); }

  TestSources sources_{GetParam()};
  TestCache cache_{sources_};
};

TEST_P(ThreadCacheTest, ANewCacheHasNothing) {
  cache_->CheckInvariants();
  EXPECT_FALSE(cache_->closed());
  for (size_t c = 1; c < kSizeClassCount; ++c) {
    EXPECT_EQ(cache_->CountObjects(static_cast<uint8_t>(c)), 0u);
  }
  EXPECT_EQ(sources_.ObjectsOut(), 0u);
}

TEST_P(ThreadCacheTest, FetchesGrowFromAFewObjectsToABatch) {
  cache_.AllocateMany(kClass, 10 * Batch());
  const std::vector<uint32_t>& fetches = sources_.source(kClass).fetches();
  EXPECT_EQ(fetches.front(), 256 / kSizeClasses[kClass].size);
  EXPECT_EQ(fetches.back(), Batch());
  for (size_t i = 1; i < fetches.size(); ++i) {
    ASSERT_GE(fetches[i], fetches[i - 1]);
    ASSERT_LE(fetches[i], std::min(2 * fetches[i - 1], Batch()));
  }
}

TEST_P(ThreadCacheTest, TheFirstFetchIsOfAFewBytes) {
  const auto first_fetch = [this](uint8_t c) {
    cache_.Allocate(c);
    return sources_.source(c).fetches().front();
  };
  EXPECT_EQ(first_fetch(SizeClassFor(8)), 8u);
  EXPECT_EQ(first_fetch(SizeClassFor(128)), 2u);
  EXPECT_EQ(first_fetch(SizeClassFor(1024)), 1u);
}

TEST_P(ThreadCacheTest, ObjectsAreDistinctAndOfTheirClass) {
  std::set<void*> seen;
  for (size_t c = 1; c < kSizeClassCount; ++c) {
    for (void* object : cache_.AllocateMany(static_cast<uint8_t>(c), 20)) {
      ASSERT_TRUE(seen.insert(object).second);
      ASSERT_EQ(sources_.space.map->FindInUse(object)->size_class, c);
    }
    cache_->CheckInvariants();
  }
}

TEST_P(ThreadCacheTest, AnObjectInUseDoesNotLookFree) {
  for (void* object : cache_.AllocateMany(kClass, 5 * Batch())) {
    EXPECT_FALSE(sources_.space.codec.InWindow(sources_.space.codec.Next(object)));
    EXPECT_NE(sources_.space.codec.Next(object), sources_.space.codec.end);
  }
}

TEST_P(ThreadCacheTest, TheLastObjectFreedIsTheNextAllocated) {
  const Objects objects = cache_.AllocateMany(kClass, 4);
  cache_.FreeAll(objects);
  for (auto object = objects.rbegin(); object != objects.rend(); ++object) {
    EXPECT_EQ(cache_.Allocate(kClass), *object);
  }
}

// A thread learns of a window that has grown when it leaves its next slow path.
TEST(ThreadCacheWindowTest, OpenFollowsTheWindow) {
  TestSources sources{Window::kNone};
  TestCache cache{sources};
  EXPECT_FALSE(cache->TryFree(cache.Allocate(kClass)));
  sources.space.map->ExtendWindow(FakeWindow::kEndOfUserSpace);
  sources.space.codec.SetWindowLimit(FakeWindow::kEndOfUserSpace);
  void* const object = cache.Allocate(kLargeClass);
  cache->Close();
  cache->Open();
  EXPECT_TRUE(cache->TryFree(object));
  EXPECT_EQ(cache->thread()->link_limit, sources.space.codec.limit());
  cache->CheckInvariants();
}

class ThreadCacheReuseTest : public ThreadCacheTest {
 protected:
  static constexpr uint8_t k24 = SizeClassFor(24);
  static constexpr size_t kTwoEvents = 4 * EventClock::kMeanInterval;

  ThreadCacheReuseTest() { sources_.source(k24).has_lines = true; }

  // Allocates and frees one object until so many bytes were allocated. Returns the last one.
  void* UseOne(uint8_t c, size_t bytes) {
    void* object = nullptr;
    for (size_t done = 0; done < bytes; done += kSizeClasses[c].size) {
      object = cache_.Allocate(c);
      cache_.Free(object);
    }
    cache_->CheckInvariants();
    return object;
  }
  size_t Lines() { return sources_.source(k24).lines(); }
};

TEST_P(ThreadCacheReuseTest, ANewThreadMovesToALineOfItsOwn) {
  void* foreign = cache_.AllocateMany(k24, 100).back();
  cache_.Free(foreign);
  EXPECT_NE(UseOne(k24, kTwoEvents), foreign);
  EXPECT_EQ(Lines(), 1u);
}

TEST_P(ThreadCacheReuseTest, ItStaysThere) {
  void* own = UseOne(k24, kTwoEvents);
  EXPECT_EQ(UseOne(k24, 10 * kTwoEvents), own);
  EXPECT_EQ(Lines(), 1u);
}

TEST_P(ThreadCacheReuseTest, ItMovesAgainFromAnObjectThatCameLater) {
  const Objects others = cache_.AllocateMany(k24, 100);
  void* own = UseOne(k24, kTwoEvents);
  cache_.Free(others.back());
  EXPECT_EQ(cache_.Allocate(k24), others.back());
  cache_.Free(others.back());
  EXPECT_NE(UseOne(k24, kTwoEvents), others.back());
  EXPECT_NE(own, others.back());
  EXPECT_EQ(Lines(), 2u);
}

TEST_P(ThreadCacheReuseTest, WithoutALineItStaysWhereItIs) {
  sources_.source(k24).has_lines = false;
  void* object = UseOne(k24, 1);
  EXPECT_EQ(UseOne(k24, kTwoEvents), object);
  EXPECT_EQ(sources_.source(k24).inserts().size(), 0u);
}

TEST_P(ThreadCacheReuseTest, AnObjectOfALineOrMoreSharesNone) {
  sources_.source(kClass).has_lines = true;
  void* object = UseOne(kClass, 1);
  EXPECT_EQ(UseOne(kClass, kTwoEvents), object);
  EXPECT_EQ(sources_.source(kClass).lines(), 0u);
}

TEST_P(ThreadCacheReuseTest, AThreadThatUsesManyStaysWithThem) {
  UseOne(k24, kTwoEvents);
  const Objects objects = cache_.AllocateMany(k24, 100);
  cache_.FreeAll(objects);
  const size_t lines = Lines();
  for (size_t done = 0; done < 10 * kTwoEvents; done += 24 * objects.size()) {
    cache_.FreeAll(cache_.AllocateMany(k24, objects.size()));
  }
  cache_->CheckInvariants();
  // Each of about 40 events finds the object of the last one by a chance of 1 in 100.
  EXPECT_LE(Lines(), lines + 6);
}

INSTANTIATE_TEST_SUITE_P(Windows, ThreadCacheReuseTest,
                         ::testing::Values(Window::kAll, Window::kNone));

TEST_P(ThreadCacheTest, FreedObjectsAreAllocatedAgainWithoutTheSource) {
  const size_t count = 8 * Batch();
  for (int round = 0; round < 4; ++round) cache_.FreeAll(cache_.AllocateMany(kClass, count));
  sources_.source(kClass).ForgetCalls();
  for (int round = 0; round < 4; ++round) {
    cache_.FreeAll(cache_.AllocateMany(kClass, count));
    cache_->CheckInvariants();
  }
  EXPECT_TRUE(sources_.source(kClass).fetches().empty());
  EXPECT_TRUE(sources_.source(kClass).inserts().empty());
}

// Where the level swings by less than a batch about that at which a batch left.
TEST_P(ThreadCacheTest, FreesFindRoomOnceABatchHasLeft) {
  if (GetParam() != Window::kAll) GTEST_SKIP() << "without a window there is no fast path";
  Objects objects = cache_.AllocateMany(kClass, 6 * Batch());
  while (cache_->full_bytes() == 0) {
    ASSERT_FALSE(objects.empty());
    cache_.Free(objects.back());
    objects.pop_back();
  }
  const size_t swing = Batch() - 2;
  for (int round = 0; round < 10; ++round) {
    for (size_t i = 0; i < swing; ++i) ASSERT_TRUE(cache_.TryFree(objects[objects.size() - 1 - i]));
    objects.resize(objects.size() - swing);
    const Objects more = cache_.AllocateMany(kClass, 2 * swing);
    for (size_t i = 0; i < swing; ++i) ASSERT_TRUE(cache_.TryFree(more[i]));
    objects.insert(objects.end(), more.begin() + static_cast<long>(swing), more.end());
    cache_->CheckInvariants();
  }
}

TEST_P(ThreadCacheTest, TheOldestBatchLeavesAFullList) {
  Objects objects = cache_.AllocateMany(kClass, 6 * Batch());
  while (cache_->full_bytes() == 0) {
    ASSERT_FALSE(objects.empty());
    cache_.Free(objects.back());
    objects.pop_back();
  }
  // What was freed last comes back first, though a batch went before it.
  Objects last;
  for (size_t i = 0; i + 1 < Batch(); ++i) {
    last.push_back(objects.back());
    objects.pop_back();
    cache_.Free(last.back());
  }
  for (; !last.empty(); last.pop_back()) ASSERT_EQ(cache_.Allocate(kClass), last.back());
}

TEST_P(ThreadCacheTest, ShortChainsFromTheSourceAreFine) {
  sources_.source(kClass).most_at_once = 3;
  const Objects objects = cache_.AllocateMany(kClass, 20 * Batch());
  EXPECT_EQ(std::set<void*>(objects.begin(), objects.end()).size(), objects.size());
  cache_->CheckInvariants();
  cache_.FreeAll(objects);
  cache_->CheckInvariants();
}

TEST_P(ThreadCacheTest, WithoutMemoryItSaysSoAndGoesOnLater) {
  bool fail = true;
  sources_.source(kClass).fail = [&] { return fail; };
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(cache_.Allocate(kClass), nullptr);
    cache_->CheckInvariants();
  }
  fail = false;
  const Objects objects = cache_.AllocateMany(kClass, 3 * Batch());
  EXPECT_EQ(std::count(objects.begin(), objects.end(), nullptr), 0);
  fail = true;
  cache_.FreeAll(objects);
  EXPECT_NE(cache_.Allocate(kClass), nullptr);
}

TEST_P(ThreadCacheTest, CountsItsObjects) {
  const Objects objects = cache_.AllocateMany(kClass, 4 * Batch());
  EXPECT_EQ(cache_->CountObjects(kClass) + objects.size(), sources_.source(kClass).objects_out());
  cache_.FreeAll(objects);
  EXPECT_EQ(cache_->CountObjects(kClass), sources_.source(kClass).objects_out());
}

TEST_P(ThreadCacheTest, HoldsWhatWasFreed) {
  // More than the current list holds, and no more than the cache may keep.
  const Objects objects = cache_.AllocateMany(kClass, 3 * Batch());
  const Objects freed(objects.begin() + 3, objects.begin() + static_cast<long>(Batch()));
  cache_.FreeAll(freed);
  for (void* object : freed) {
    ASSERT_EQ(cache_->Holds(object, kClass, true), sources_.source(kClass).inserts().empty());
  }
  for (size_t i = 0; i < 3; ++i) EXPECT_FALSE(cache_->Holds(objects[i], kClass, true));
}

TEST_P(ThreadCacheTest, FlushReturnsEverything) {
  // The small class comes last, for large objects exceed the share and make the cache collect.
  for (uint8_t c : {kLargeClass, uint8_t{1}, kClass}) {
    cache_.FreeAll(cache_.AllocateMany(c, 5 * size_t{sources_.source(c).batch()}));
  }
  const Objects kept = cache_.AllocateMany(kClass, 7);
  ASSERT_GT(cache_->CountObjects(kClass), 2 * Batch()) << "there are full chains";
  cache_->Close();
  cache_->Flush();
  cache_->CheckInvariants();
  EXPECT_EQ(sources_.ObjectsOut(), kept.size());
  // It goes on as new.
  cache_->Open();
  cache_.FreeAll(kept);
  cache_.FreeAll(cache_.AllocateMany(kClass, 3 * Batch()));
  cache_->CheckInvariants();
}

TEST_P(ThreadCacheTest, FlushingLargeObjectsKeepsTheOthers) {
  for (uint8_t c : {kLargeClass, kClass}) {
    cache_.FreeAll(cache_.AllocateMany(c, 5 * size_t{sources_.source(c).batch()}));
  }
  const size_t small = cache_->CountObjects(kClass);
  ASSERT_GT(small, 0u);
  cache_->Close();
  cache_->FlushFrom(kClass + 1);
  cache_->CheckInvariants();
  EXPECT_EQ(cache_->CountObjects(kLargeClass), 0u);
  EXPECT_EQ(cache_->CountObjects(kClass), small);
  cache_->FlushFrom(kClass);
  EXPECT_EQ(sources_.ObjectsOut(), 0u);
  cache_->Open();
}

TEST_P(ThreadCacheTest, RetireReturnsEverythingAndLeavesTheBudget) {
  cache_.FreeAll(cache_.AllocateMany(kLargeClass, 10));
  cache_.FreeAll(cache_.AllocateMany(kClass, 10 * Batch()));
  ASSERT_GT(cache_->CountObjects(kClass), 2 * Batch()) << "there are full chains";
  cache_->Retire();
  EXPECT_TRUE(cache_->closed());
  EXPECT_EQ(sources_.ObjectsOut(), 0u);
  EXPECT_FALSE(cache_->share().linked());
  sources_.budget.CheckInvariants();
}

TEST_P(ThreadCacheTest, WithoutMemoryForItsStacksItReturnsChains) {
  const Objects objects = cache_.AllocateMany(kClass, 10 * Batch());
  sources_.space.metadata.exhausted = true;
  while (sources_.space.arena.Allocate(8, 8) != nullptr) {
  }
  cache_.FreeAll(objects);
  cache_->CheckInvariants();
  EXPECT_LE(cache_->CountObjects(kClass), 2 * Batch());
}

INSTANTIATE_TEST_SUITE_P(Windows, ThreadCacheTest,
                         ::testing::Values(Window::kAll, Window::kFirstBytes, Window::kNone));

class ThreadCacheFastPathTest : public ::testing::Test {
 protected:
  TestSources sources_;
  TestCache cache_{sources_};
};

TEST_F(ThreadCacheFastPathTest, ServesNearlyEverythingOnceWarm) {
  const Objects warm = cache_.AllocateMany(kClass, sources_.source(kClass).batch());
  cache_.FreeAll(warm);
  cache_.hits = 0;
  constexpr size_t kPairs = 10'000;
  for (size_t i = 0; i < kPairs; ++i) cache_.Free(cache_.Allocate(kClass));
  // The event clock sends an allocation into the slow path now and then.
  EXPECT_GT(cache_.hits, 2 * kPairs * 99 / 100);
}

TEST_F(ThreadCacheFastPathTest, AClosedCacheRefuses) {
  const Objects objects = cache_.AllocateMany(kClass, 7);
  cache_.Free(objects[0]);
  cache_->Close();
  EXPECT_TRUE(cache_->closed());
  EXPECT_EQ(cache_->thread()->size_limit, 0u);
  EXPECT_FALSE(cache_->TryFree(objects[1]));
  cache_->CheckInvariants();
  cache_->Open();
  EXPECT_FALSE(cache_->closed());
  // Nothing else was in the way.
  EXPECT_TRUE(cache_->TryFree(objects[1]));
  EXPECT_EQ(cache_.Allocate(kClass), objects[1]);
  EXPECT_EQ(cache_.Allocate(kClass), objects[0]);
}

TEST_F(ThreadCacheFastPathTest, ADefaultCacheIsClosed) {
  const auto cache = std::make_unique<TestSources::Cache>();
  EXPECT_TRUE(cache->closed());
  EXPECT_EQ(cache->thread()->size_limit, 0u);
  void* object = cache_.Allocate(kClass);
  EXPECT_FALSE(cache->TryFree(object));
  EXPECT_FALSE(cache->TryFree(nullptr));
}

TEST_F(ThreadCacheFastPathTest, TryTakeCountsNothingAndLeavesAnEmptyListAsItIs) {
  for (void* object : cache_.AllocateMany(kClass, 4)) cache_.Free(object);
  const uint64_t bytes = cache_->thread()->clock.allocated_bytes();
  std::vector<void*> taken;
  while (void* object = FastThread(cache_->thread()).lists()->TryTake(kClass)) {
    EXPECT_EQ(LinkWord(object), 0u);
    taken.push_back(object);
  }
  cache_->UndoTryAllocate(kClass);
  EXPECT_GE(taken.size(), 4u);
  EXPECT_EQ(std::set<void*>(taken.begin(), taken.end()).size(), taken.size());
  EXPECT_EQ(cache_->CountObjects(kClass), 0u);
  EXPECT_EQ(cache_->thread()->clock.allocated_bytes(), bytes);
  cache_->CheckInvariants();
  for (void* object : taken) cache_.Free(object);
  cache_->CheckInvariants();
}

#if defined(__x86_64__)
TestSources::Cache* stepped_cache = nullptr;
int steps = 0;
int flushed_step = 0;

// Gives the lists back before an instruction, as the slow path of a signal handler does.
void FlushAtStep(int) {
  if (steps++ != flushed_step || !stepped_cache->IsAtRest()) return;
  stepped_cache->Close();
  stepped_cache->Flush();
  stepped_cache->Open();
}

// Makes each instruction that follows call FlushAtStep, or ends that.
void ToggleSteps(int, siginfo_t*, void* context) {
  constexpr greg_t kTrapFlag = 0x100;
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] ^= kTrapFlag;
}

TEST_F(ThreadCacheFastPathTest, AHandlerMayFlushBeforeAnyInstructionOfTryTake) {
  stepped_cache = cache_.operator->();
  signal(SIGTRAP, FlushAtStep);
  struct sigaction toggle = {};
  toggle.sa_sigaction = ToggleSteps;
  toggle.sa_flags = SA_SIGINFO;
  sigaction(SIGUSR1, &toggle, nullptr);
  FastLists* lists = FastThread(cache_->thread()).lists();
  for (flushed_step = 0; flushed_step <= steps; ++flushed_step) {
    cache_.FreeAll(cache_.AllocateMany(kClass, 8));
    steps = 0;
    raise(SIGUSR1);
    void* object = lists->TryTake(kClass);
    raise(SIGUSR1);
    if (object == nullptr) cache_->UndoTryAllocate(kClass);
    // The room may be wrong where it is not counted by one instruction, and the next refill sets it
    // right. No object may be in two places.
    Objects objects = cache_.AllocateMany(kClass, 20);
    if (object != nullptr) objects.push_back(object);
    ASSERT_EQ(std::set<void*>(objects.begin(), objects.end()).size(), objects.size())
        << flushed_step;
    cache_.FreeAll(objects);
  }
  EXPECT_GT(steps, 10);
  signal(SIGTRAP, SIG_DFL);
  signal(SIGUSR1, SIG_DFL);
}

TestCache* used_cache = nullptr;
int used_step = 0;

// Uses the cache before an instruction.
void AllocateAndFreeAtStep(int) {
  if (steps++ == used_step) used_cache->Free(used_cache->Allocate(kClass));
}

// While the class drains what such a handler frees leaves, so its allocation changes the room for
// good.
TEST_F(ThreadCacheFastPathTest, AHandlerMayUseAClassThatDrainsBeforeAnyInstructionOfUndoTryFree) {
  const size_t batch = sources_.source(kClass).batch();
  const Objects objects = cache_.AllocateMany(kClass, 100 * batch);
  size_t next = 0;
  // Frees the oldest, and allocates one for good.
  const auto free_some = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) cache_.Free(objects[next++]);
    cache_.Allocate(kClass);
  };
  while (sources_.source(kClass).inserts_past() == 0 && next < 90 * batch) free_some(4);
  ASSERT_LT(next, 90 * batch);
  used_cache = &cache_;
  signal(SIGTRAP, AllocateAndFreeAtStep);
  struct sigaction toggle = {};
  toggle.sa_sigaction = ToggleSteps;
  toggle.sa_flags = SA_SIGINFO;
  sigaction(SIGUSR1, &toggle, nullptr);
  for (used_step = 0; used_step <= steps; ++used_step) {
    free_some(4);
    void* const object = objects[next++];
    ASSERT_FALSE(cache_->TryFree(object)) << "the class drains";
    steps = 0;
    raise(SIGUSR1);
    cache_->UndoTryFree(object);
    raise(SIGUSR1);
    cache_.FreeSlow(object);
    cache_->CheckInvariants();
  }
  EXPECT_GT(steps, 10);
  signal(SIGTRAP, SIG_DFL);
  signal(SIGUSR1, SIG_DFL);
}
#endif

// As for the slow path of a signal handler that interrupts a fast path between its writes.
class InterruptedFastPathTest : public ThreadCacheFastPathTest {
 protected:
  // Leaves the list empty.
  void SetUp() override {
    used_ = cache_.AllocateMany(kClass, 5)[0];
    cache_.AllocateMany(kClass, cache_->CountObjects(kClass));
  }
  void* AllocateInHandler() {
    cache_->Close();
    void* object = cache_->AllocateSlow(kClass, 64);
    cache_->Open();
    return object;
  }
  uint8_t ClassOf(const void* object) const {
    return sources_.space.map->FindInUse(object)->size_class;
  }

  void* used_ = nullptr;
};

TEST_F(InterruptedFastPathTest, AnEmptyListStaysAsItIs) {
  ASSERT_EQ(cache_->TryAllocate(kClass, 64), nullptr);
  void* object = AllocateInHandler();
  ASSERT_NE(object, nullptr);
  EXPECT_GT(ClassOf(object), kClass) << "a free must not put it into the list";
  EXPECT_EQ(LinkWord(object), 0u);
  cache_.Free(object);
  cache_->UndoTryAllocate(kClass);
  EXPECT_EQ(cache_->CountObjects(kClass), 0u);
  cache_->CheckInvariants();
}

TEST_F(InterruptedFastPathTest, ARoomThatStaysWrongIsSetRight) {
  ASSERT_EQ(cache_->TryAllocate(kClass, 64), nullptr);
  constexpr int kPatience = 1000;
  int beside = 0;
  while (beside < kPatience && ClassOf(AllocateInHandler()) != kClass) ++beside;
  EXPECT_GT(beside, 10);
  EXPECT_LT(beside, kPatience);
  cache_->CheckInvariants();
}

// Handlers that interrupted free at its refusal, each of which left the room of a list one too low.
TEST_F(InterruptedFastPathTest, AListThatEndsEarlyLeavesWithItsOwnLength) {
  const size_t batch = sources_.source(kClass).batch();
  Objects objects = cache_.AllocateMany(kClass, 6 * batch);
  const auto free_one = [&] {
    ASSERT_FALSE(objects.empty());
    cache_.Free(objects.back());
    objects.pop_back();
  };
  while (cache_->full_bytes() == 0) free_one();
  // The list may hold two batches now.
  const Objects more = cache_.AllocateMany(kClass, batch);
  objects.insert(objects.end(), more.begin(), more.end());
  void* const last = objects.back();
  free_one();
  for (size_t i = 0; i < batch + 3; ++i) ASSERT_FALSE(cache_->TryFree(last));
  sources_.source(kClass).ForgetCalls();
  for (size_t i = 0; i < batch; ++i) free_one();
  cache_->CheckInvariants();
  EXPECT_EQ(sources_.source(kClass).inserts().size(), 1u);
}

// Whose list is full and holds a batch, because the budget leaves no room for a second one.
class InterruptedFullListTest : public InterruptedFastPathTest {
 protected:
  static constexpr uint8_t k16K = SizeClassFor(16384);

  void SetUp() override {
    InterruptedFastPathTest::SetUp();
    sources_.budget.SetTotal(CacheBudget::kFirstShare);
    batch_ = sources_.source(k16K).batch();
    objects_ = cache_.AllocateMany(k16K, 2 * batch_);
    for (; cache_->CountObjects(k16K) < batch_; objects_.pop_back()) cache_.Free(objects_.back());
    sources_.source(k16K).ForgetCalls();
  }
  const std::vector<uint32_t>& inserts() { return sources_.source(k16K).inserts(); }

  Objects objects_;
  uint32_t batch_ = 0;
};

TEST_F(InterruptedFullListTest, ItLeavesAsABatchWhereItsRoomIsBelowZero) {
  ASSERT_FALSE(cache_->TryFree(objects_[0]));
  cache_.Free(objects_[1]);
  EXPECT_EQ(inserts(), std::vector<uint32_t>{batch_});
}

// Where the handler takes a block from the list and frees it, which finds no room either.
TEST_F(InterruptedFullListTest, ItLeavesWithItsOwnLength) {
  ASSERT_FALSE(cache_->TryFree(objects_[0]));
  void* const block = cache_->TryAllocate(k16K, 0);
  ASSERT_NE(block, nullptr);
  cache_.Free(block);
  cache_.FreeRefused(objects_[0]);
  EXPECT_EQ(inserts(), std::vector<uint32_t>{batch_ - 1});
  cache_->CheckInvariants();
}

// Of so many objects that nobody counts what leaves it. The first list that is put away holds two
// batches, and after the next one the class would begin to drain. Two handlers come in a row.
TEST_F(InterruptedFastPathTest, AFullListThatAHandlerPutAwayIsCorrected) {
  const size_t batch = sources_.source(kClass).batch();
  sources_.space.counts_hold = false;
  Objects objects = cache_.AllocateMany(kClass, 8 * batch);
  const auto next = [&objects] {
    void* const object = objects.back();
    objects.pop_back();
    return object;
  };
  for (int round = 0; round < 2; ++round) {
    const size_t full = cache_->full_bytes();
    while (cache_->full_bytes() == full) cache_.Free(next());
    void* const freed = next();
    size_t frees = 0;
    while (cache_->TryFree(objects.back())) {
      next();
      ++frees;
    }
    ASSERT_GT(frees, 0u);
    cache_->UndoTryFree(objects.back());
    ASSERT_FALSE(cache_->TryFree(freed));
    void* const block = cache_->TryAllocate(kClass, 0);
    ASSERT_NE(block, nullptr);
    cache_.Free(block);
    EXPECT_GT(cache_->full_bytes(), full) << "the handler's free puts a batch away";
    cache_.Free(cache_.Allocate(kClass));
    cache_.FreeRefused(freed);
    cache_->CheckInvariants();
  }
  sources_.source(kClass).ForgetCalls();
  while (sources_.source(kClass).fetches().empty()) {
    objects.push_back(cache_.Allocate(kClass));
    cache_->CheckInvariants();
  }
}

// Where the handler has moved the thread to its other front end.
TEST_F(InterruptedFastPathTest, ItIsUndoneOnACacheThatWasParked) {
  ASSERT_EQ(cache_->TryAllocate(kClass, 64), nullptr);
  cache_->Park();
  cache_->UndoTryAllocate(kClass);
  cache_->CheckInvariants();
  // Now the list was flushed as well, and there is nothing left to undo.
  cache_->Flush();
  cache_->UndoTryAllocate(kClass);
  cache_->UndoTryFree(used_);
  cache_->CheckInvariants();
  cache_->Rejoin();
  cache_->Open();
}

TEST_F(ThreadCacheFastPathTest, TheEventClockInterruptsTheFastPath) {
  cache_.FreeAll(cache_.AllocateMany(kClass, sources_.source(kClass).batch()));
  size_t refused = 0;
  constexpr size_t kPairs = 100'000;
  for (size_t i = 0; i < kPairs; ++i) {
    void* object = cache_->TryAllocate(kClass, kSizeClasses[kClass].size);
    if (object == nullptr) {
      ++refused;
      cache_->UndoTryAllocate(kClass);
      cache_->Close();
      object = cache_->AllocateSlow(kClass, kSizeClasses[kClass].size);
      cache_->Open();
    }
    ASSERT_NE(object, nullptr);
    cache_.Free(object);
  }
  const auto bytes = static_cast<double>(kPairs * kSizeClasses[kClass].size);
  EXPECT_NEAR(static_cast<double>(refused), bytes / EventClock::kMeanInterval,
              bytes / EventClock::kMeanInterval / 2);
  EXPECT_GE(cache_->clock().allocated_bytes(), kPairs * kSizeClasses[kClass].size);
}

class ThreadCacheDeathTest : public ThreadCacheFastPathTest {
 protected:
  static std::string Corrupted(const void* object) {
    std::ostringstream message;
    message << "tcmalloc: corrupted free list: object at " << object << " \\("
            << kSizeClasses[kClass].size << " bytes\\)";
    return message.str();
  }
};

TEST_F(ThreadCacheDeathTest, AnOverwrittenObjectIsNotHandedOut) {
  for (uint64_t value : {uint64_t{0}, uint64_t{1}, UINT64_MAX, uint64_t{0x4141414141414141}}) {
    const Objects objects = cache_.AllocateMany(kClass, 4);
    cache_.FreeAll(objects);
    LinkWord(objects[3]) = value;
    EXPECT_EQ(cache_->TryAllocate(kClass, 64), nullptr);
    cache_->UndoTryAllocate(kClass);
    EXPECT_DEATH(cache_.Allocate(kClass), Corrupted(objects[3]));
    sources_.space.codec.Link(objects[3], ReferenceTo(objects[2]));
  }
}

TEST_F(ThreadCacheDeathTest, AnOverwrittenObjectIsNoticedWhenItIsReached) {
  const Objects objects = cache_.AllocateMany(kClass, 4);
  cache_.FreeAll(objects);
  LinkWord(objects[1]) = 0x4141414141414141;
  EXPECT_EQ(cache_.Allocate(kClass), objects[3]);
  EXPECT_EQ(cache_.Allocate(kClass), objects[2]);
  EXPECT_DEATH(cache_.Allocate(kClass), Corrupted(objects[1]));
  sources_.space.codec.Link(objects[1], ReferenceTo(objects[0]));
}

}  // namespace
}  // namespace tcmalloc::testing
