// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The process's heap, in a program whose malloc is another one. The tests share it: what they take
// they give back.

#include "heap/heap.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <barrier>
#include <cstdint>
#include <set>
#include <thread>
#include <type_traits>
#include <vector>

#include "fakes/current_cache.h"

namespace tcmalloc::testing {
namespace {

static_assert(std::is_trivially_destructible_v<Heap>);

// The first use of the heap in this program, by several threads at once.
TEST(HeapTest, ThreadsInitializeItOnce) {
  EXPECT_FALSE(heap.initialized());
  constexpr int kThreads = 4;
  std::barrier start(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      start.arrive_and_wait();
      heap.EnsureInitialized();
      EXPECT_TRUE(heap.initialized());
      EXPECT_NE(heap.page_map().window(), nullptr);
      EXPECT_EQ(heap.codec().key * heap.codec().inverse, 1u);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const LinkCodec before = heap.codec();
  heap.EnsureInitialized();
  EXPECT_EQ(heap.codec().key, before.key);
}

size_t ClassesMade() {
  size_t classes = 0;
  heap.lists().ForEach([&classes](uint8_t, Transfer&, Central&) { ++classes; });
  return classes;
}

class InitializedHeapTest : public ::testing::Test {
 protected:
  InitializedHeapTest() { heap.EnsureInitialized(); }
};

TEST_F(InitializedHeapTest, TheEndOfListsIsAWordOfZero) {
  EXPECT_EQ(LinkWord(ObjectAt(heap.codec().end)), 0u);
}

// Has to be the first one that might use a class.
TEST_F(InitializedHeapTest, NoClassHasListsUntilItIsUsed) {
  LeaveSlowPath(EnterSlowPath());
  heap.Shed(nullptr, Length(0));
  heap.housekeeping().set_half_life(1);
  for (size_t i = 0; i < kSizeClassCount; ++i) heap.housekeeping().RunAll();
  heap.SetReleaseRate(heap.options().release_rate);
  EXPECT_EQ(ClassesMade(), 0u);
  EXPECT_EQ(heap.central(5).stats().spans, 0u);
  EXPECT_EQ(ClassesMade(), 1u);
  EXPECT_NE(heap.lists().Find(5), nullptr);
}

TEST_F(InitializedHeapTest, EveryClassIsServedFromItsOwnSpans) {
  for (size_t i = 1; i < kSizeClassCount; ++i) {
    const auto c = static_cast<uint8_t>(i);
    const Chain chain = heap.transfer(c).Fetch(1);
    ASSERT_FALSE(chain.empty());
    const Span* span = heap.page_map().FindInUse(ObjectAt(chain.head));
    ASSERT_NE(span, nullptr);
    EXPECT_EQ(span->size_class, c);
    EXPECT_GE(heap.transfer(c).batch(), chain.count);
    heap.transfer(c).Insert(chain);
    heap.transfer(c).Drain();
    EXPECT_EQ(heap.central(c).stats().spans, 0u);
  }
  heap.page_heaps().CheckInvariants();
}

class CurrentThreadTest : public InitializedHeapTest {
 protected:
  static void* Allocate(uint8_t c) {
    const Entry entry = EnterSlowPath();
    EXPECT_EQ(entry, Entry::kThreadCache);
    void* object = CurrentCache()->AllocateSlow(c, kSizeClasses[c].size);
    LeaveSlowPath(entry);
    return object;
  }
  static void Free(void* object, uint8_t c) {
    const Entry entry = EnterSlowPath();
    EXPECT_EQ(entry, Entry::kThreadCache);
    CurrentCache()->FreeSlow(object, c);
    LeaveSlowPath(entry);
  }
};

TEST_F(CurrentThreadTest, AThreadGetsItsCacheOnFirstUse) {
  std::thread([] {
    EXPECT_TRUE(current_thread->closed());
    const Entry entry = EnterSlowPath();
    EXPECT_EQ(entry, Entry::kThreadCache);
    EXPECT_TRUE(current_thread->closed());
    LeaveSlowPath(entry);
    EXPECT_FALSE(current_thread->closed());
    const ThreadHeader* thread = current_thread.header();
    LeaveSlowPath(EnterSlowPath());
    EXPECT_EQ(current_thread.header(), thread);
  }).join();
}

TEST_F(CurrentThreadTest, AnInterruptedSlowPathIsReentrant) {
  std::thread([] {
    const Entry outer = EnterSlowPath();
    for (int depth = 0; depth < 2; ++depth) {
      const Entry inner = EnterSlowPath();
      EXPECT_EQ(inner, Entry::kReentrant);
      LeaveSlowPath(inner);
      EXPECT_TRUE(current_thread->closed());
    }
    LeaveSlowPath(outer);
    EXPECT_FALSE(current_thread->closed());
  }).join();
}

TEST_F(CurrentThreadTest, ThreadsHaveCachesOfTheirOwn) {
  constexpr size_t kThreads = 4;
  std::vector<Cache*> caches(kThreads);
  std::barrier all_have_one(static_cast<long>(kThreads));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      LeaveSlowPath(EnterSlowPath());
      caches[i] = CurrentCache();
      all_have_one.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<Cache*>(caches.begin(), caches.end()).size(), kThreads);
}

TEST_F(CurrentThreadTest, AThreadThatEndsReturnsEverything) {
  constexpr uint8_t kClass = SizeClassFor(64);
  heap.Shed(nullptr, Length(0));
  const size_t caches = heap.caches().stats().caches;
  const size_t objects = heap.central(kClass).stats().allocated_objects;
  std::thread([] {
    std::vector<void*> blocks;
    for (int i = 0; i < 10'000; ++i) blocks.push_back(Allocate(kClass));
    for (void* block : blocks) Free(block, kClass);
  }).join();
  EXPECT_EQ(heap.caches().stats().caches, caches);
  heap.Shed(nullptr, Length(0));
  EXPECT_EQ(heap.central(kClass).stats().allocated_objects, objects);
  heap.budget().CheckInvariants();
}

TEST_F(CurrentThreadTest, ManyThreadsComeAndGo) {
  constexpr uint8_t kClass = SizeClassFor(64);
  const size_t caches = heap.caches().stats().caches;
  std::thread([] { Free(Allocate(kClass), kClass); }).join();
  const size_t metadata = heap.arena().stats().used_bytes;
  for (int i = 0; i < 200; ++i) std::thread([] { Free(Allocate(kClass), kClass); }).join();
  EXPECT_EQ(heap.caches().stats().caches, caches);
  EXPECT_EQ(heap.arena().stats().used_bytes, metadata) << "records are reused";
}

// A destructor of thread-specific data that runs in every round, after the cache's own too.
constinit std::atomic<int> late_entries{0};
constinit pthread_key_t late_key = 0;

void RunInEveryRound(void* rounds) {
  const Entry entry = EnterSlowPath();
  EXPECT_NE(entry, Entry::kReentrant);
  LeaveSlowPath(entry);
  ++late_entries;
  const auto left = reinterpret_cast<uintptr_t>(rounds);
  if (left > 1) pthread_setspecific(late_key, reinterpret_cast<void*>(left - 1));
}

TEST_F(CurrentThreadTest, ThreadSpecificDestructorsMayAllocate) {
  ASSERT_EQ(pthread_key_create(&late_key, RunInEveryRound), 0);
  const size_t caches = heap.caches().stats().caches;
  std::thread([] {
    LeaveSlowPath(EnterSlowPath());
    pthread_setspecific(late_key, reinterpret_cast<void*>(uintptr_t{4}));
  }).join();
  EXPECT_EQ(late_entries, 4);
  EXPECT_EQ(heap.caches().stats().caches, caches) << "no cache outlives its thread";
  pthread_key_delete(late_key);
}

}  // namespace
}  // namespace tcmalloc::testing
