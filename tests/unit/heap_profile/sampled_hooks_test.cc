// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/sampled_hooks.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <tcmalloc/malloc_hook.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "allocator/allocate.h"
#include "allocator/deallocate.h"
#include "allocator/reallocate.h"
#include "heap/heap.h"
#include "heap_profile/collected_profile.h"
#include "heap_profile/profiles.h"

namespace tcmalloc {
namespace {

using SampledAlloc = MallocHook::SampledAlloc;

struct Known {
  size_t requested;
  double weight;
  size_t depth;
  pid_t thread;
};
std::mutex mutex;
std::map<int64_t, Known> live;
size_t deletes = 0;
size_t unknown_deletes = 0;

Known Describe(const SampledAlloc& sample) {
  return {sample.requested_size, sample.weight, sample.stack.size(), gettid()};
}

void NoteNew(const SampledAlloc& sample) {
  const std::lock_guard lock(mutex);
  EXPECT_TRUE(live.emplace(static_cast<int64_t>(sample.handle), Describe(sample)).second);
  EXPECT_GE(sample.allocated_size, sample.requested_size);
  EXPECT_NE(sample.ptr, nullptr);
  const auto age = std::chrono::system_clock::now() - sample.allocation_time;
  EXPECT_LT(std::chrono::abs(age), std::chrono::seconds(10));
  errno = ERANGE;
}

void NoteDelete(const SampledAlloc& sample) {
  const std::lock_guard lock(mutex);
  ++deletes;
  unknown_deletes += live.erase(static_cast<int64_t>(sample.handle)) == 0;
}

class SampledHooksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    live.clear();
    deletes = unknown_deletes = 0;
    ASSERT_TRUE(MallocHook::AddSampledNewHook(NoteNew));
    ASSERT_TRUE(MallocHook::AddSampledDeleteHook(NoteDelete));
  }
  void TearDown() override {
    EXPECT_TRUE(MallocHook::RemoveSampledNewHook(NoteNew));
    EXPECT_TRUE(MallocHook::RemoveSampledDeleteHook(NoteDelete));
    EXPECT_FALSE(heap.errands().any());
  }
};

TEST_F(SampledHooksTest, EachSampleIsReportedOnceWhenItComesAndWhenItGoes) {
  std::vector<void*> blocks;
  errno = EDOM;
  for (int i = 0; i < 20'000; ++i) blocks.push_back(Allocate(1000));
  for (int i = 0; i < 5; ++i) blocks.push_back(Allocate(1 << 20));
  EXPECT_EQ(errno, EDOM);
  EXPECT_EQ(live.size(), sample_table.stats().samples);
  double bytes = 0;
  size_t without_stack = 0;
  for (const auto& [handle, known] : live) {
    bytes += known.weight * static_cast<double>(known.requested);
    without_stack += known.depth == 0;
  }
  // About 1200 samples.
  EXPECT_NEAR(bytes, 20'000e3 + 5 * (1 << 20), 3e6);
  EXPECT_EQ(without_stack, 0u);
  for (void* block : blocks) Deallocate(block);
  EXPECT_TRUE(live.empty());
  EXPECT_GT(deletes, 500u);
  EXPECT_EQ(unknown_deletes, 0u);
}

TEST_F(SampledHooksTest, ReallocatedBlocksAreFreedAndAllocated) {
  for (int i = 0; i < 5000; ++i) Deallocate(Reallocate(Allocate(2000), 7000));
  EXPECT_TRUE(live.empty());
  EXPECT_EQ(unknown_deletes, 0u);
}

TEST_F(SampledHooksTest, HooksRunInTheThreadThatAllocates) {
  std::vector<void*> blocks[8];
  std::vector<std::thread> threads;
  for (std::vector<void*>& own : blocks) {
    threads.emplace_back([&own] {
      for (int i = 0; i < 5000; ++i) own.push_back(Allocate(1000));
      const std::lock_guard lock(mutex);
      size_t reported = 0;
      for (const auto& [handle, known] : live) reported += known.thread == gettid();
      EXPECT_GT(reported, 100u);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<void*>& own : blocks) {
    for (void* block : own) Deallocate(block);
  }
  EXPECT_TRUE(live.empty());
  EXPECT_EQ(unknown_deletes, 0u);
}

std::atomic<size_t> nested{0};

// Uses the allocator as it likes.
void UseAllocator(const SampledAlloc&) {
  nested.fetch_add(1);
  void* block = Allocate(1 << 20);
  EXPECT_NE(block, nullptr);
  EXPECT_FALSE(heap.emergency().Owns(block));
  CollectedProfile* profile = CollectedProfile::Take(ProfileKind::kHeap);
  EXPECT_NE(profile, nullptr) << "called inside the slow path";
  if (profile != nullptr) profile->Delete();
  Deallocate(block);
}

TEST_F(SampledHooksTest, AHookMayUseTheAllocatorAndIsNotCalledWithinItself) {
  nested = 0;
  ASSERT_TRUE(MallocHook::AddSampledNewHook(UseAllocator));
  const size_t before = deletes;
  for (int i = 0; i < 5000; ++i) Deallocate(Allocate(1000));
  EXPECT_TRUE(MallocHook::RemoveSampledNewHook(UseAllocator));
  EXPECT_GT(nested, 50u);
  EXPECT_EQ(deletes - before, nested);
}

std::atomic<size_t> once{0};
std::atomic<size_t> second{0};

void CountSecond(const SampledAlloc&) { ++second; }

// Takes itself off the list, and another hook onto it.
void ReplaceItself(const SampledAlloc&) {
  ++once;
  EXPECT_TRUE(MallocHook::RemoveSampledNewHook(ReplaceItself));
  EXPECT_FALSE(MallocHook::RemoveSampledNewHook(ReplaceItself));
  EXPECT_TRUE(MallocHook::AddSampledNewHook(CountSecond));
}

TEST_F(SampledHooksTest, AHookMayReplaceItself) {
  once = second = 0;
  ASSERT_TRUE(MallocHook::AddSampledNewHook(ReplaceItself));
  for (int i = 0; i < 2000; ++i) Deallocate(Allocate(1000));
  EXPECT_EQ(once, 1u);
  EXPECT_GT(second, 20u);
  EXPECT_TRUE(MallocHook::RemoveSampledNewHook(CountSecond));
  const size_t seen = second;
  for (int i = 0; i < 2000; ++i) Deallocate(Allocate(1000));
  EXPECT_EQ(second, seen);
  EXPECT_TRUE(live.empty());
}

TEST_F(SampledHooksTest, HooksComeAndGoWhileThreadsAllocate) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&stop] {
      while (!stop) Deallocate(Allocate(5000));
    });
  }
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(MallocHook::AddSampledNewHook(CountSecond));
    ASSERT_TRUE(MallocHook::AddSampledDeleteHook(CountSecond));
    Deallocate(Allocate(5000));
    ASSERT_TRUE(MallocHook::RemoveSampledNewHook(CountSecond));
    ASSERT_TRUE(MallocHook::RemoveSampledDeleteHook(CountSecond));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(live.empty());
  EXPECT_EQ(unknown_deletes, 0u);
}

TEST_F(SampledHooksTest, AListTakesSevenHooks) {
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(MallocHook::AddSampledNewHook(UseAllocator));
  EXPECT_FALSE(MallocHook::AddSampledNewHook(UseAllocator));
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(MallocHook::RemoveSampledNewHook(UseAllocator));
  EXPECT_FALSE(MallocHook::RemoveSampledNewHook(UseAllocator));
  EXPECT_FALSE(MallocHook::AddSampledNewHook(nullptr));
  EXPECT_FALSE(MallocHook::AddSampledDeleteHook(nullptr));
}

TEST_F(SampledHooksTest, InvokeCallsTheHooks) {
  const void* const frames[] = {&frames};
  const SampledAlloc sample{.handle = MallocHook::AllocHandle{42},
                            .requested_size = 1,
                            .requested_alignment = 0,
                            .allocated_size = 8,
                            .weight = 3,
                            .stack = {frames, 1},
                            .allocation_time = std::chrono::system_clock::now(),
                            .ptr = frames};
  MallocHook::InvokeSampledNewHook(sample);
  EXPECT_EQ(live.at(42).weight, 3);
  MallocHook::InvokeSampledDeleteHook(sample);
  EXPECT_TRUE(live.empty());
}

TEST_F(SampledHooksTest, AChildOfForkGoesOn) {
  std::atomic<bool> stop{false};
  std::thread other([&stop] {
    while (!stop) Deallocate(Allocate(1000));
  });
  for (int round = 0; round < 20; ++round) {
    mutex.lock();
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      mutex.unlock();
      deletes = 0;
      for (int i = 0; i < 2000; ++i) Deallocate(Allocate(1000));
      _exit(deletes > 10 && !heap.errands().any() ? 0 : 1);
    }
    mutex.unlock();
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  other.join();
}

}  // namespace
}  // namespace tcmalloc
