// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// fork while other threads are inside the heap. A child that finds a lock taken for ever is ended
// by its alarm.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "fakes/current_cache.h"
#include "heap/heap.h"

namespace tcmalloc::testing {
namespace {

constexpr unsigned kChildSeconds = 60;
constexpr uint8_t kClasses[] = {SizeClassFor(8), SizeClassFor(64), SizeClassFor(4096)};

// Calls f() inside the slow path, once no fork is under way.
template <typename F>
void Inside(F f) {
  Entry entry = EnterSlowPath();
  while (entry == Entry::kReentrant) entry = EnterSlowPath();
  f(entry);
  LeaveSlowPath(entry);
}

// Goes through every layer, and so takes locks of every rank.
void UseHeapInside() {
  for (uint8_t c : kClasses) {
    const Chain chain = heap.transfer(c).Fetch(heap.transfer(c).batch());
    TCMALLOC_CHECK(!chain.empty());
    heap.transfer(c).Insert(chain);
    heap.transfer(c).Drain();
  }
  Span* span = heap.page_heap().New(Length(3));
  TCMALLOC_CHECK(span != nullptr);
  heap.page_heap().Delete(span);
}

void UseHeap() {
  Inside([](Entry) { UseHeapInside(); });
}

void UseCache() {
  Inside([](Entry entry) {
    TCMALLOC_CHECK(entry == Entry::kThreadCache);
    for (uint8_t c : kClasses) {
      void* object = CurrentCache()->AllocateSlow(c, kSizeClasses[c].size);
      TCMALLOC_CHECK(object != nullptr);
      CurrentCache()->FreeSlow(object, c);
    }
  });
}

[[noreturn]] void RunChild() {
  alarm(kChildSeconds);
  UseHeap();
  UseCache();
  heap.page_heaps().CheckInvariants();
  heap.budget().CheckInvariants();
  for (size_t i = 1; i < kSizeClassCount; ++i) {
    const auto c = static_cast<uint8_t>(i);
    heap.transfer(c).CheckInvariants();
    heap.central(c).CheckInvariants();
  }
  _exit(0);
}

void ExpectSuccess(pid_t child) {
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

void ForkAndWait() {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) RunChild();
  ExpectSuccess(child);
}

class HeapForkTest : public ::testing::Test {
 protected:
  HeapForkTest() {
    UseCache();  // registers the heap's handlers
  }
};

TEST_F(HeapForkTest, TheChildOfASingleThread) {
  for (int i = 0; i < 10; ++i) ForkAndWait();
}

TEST_F(HeapForkTest, TheParentGoesOn) {
  ForkAndWait();
  EXPECT_FALSE(heap.gate().closed());
  EXPECT_FALSE(current_thread->closed());
  UseHeap();
  UseCache();
}

TEST_F(HeapForkTest, TheChildOfABusyProcess) {
  constexpr int kForks = 100;
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!done) {
        UseHeap();
        UseCache();
      }
    });
  }
  for (int i = 0; i < kForks && !HasFatalFailure(); ++i) ForkAndWait();
  done = true;
  for (std::thread& thread : threads) thread.join();
}

// The child counts itself alone, from its next slow path on.
TEST_F(HeapForkTest, TheChildForgetsVanishedThreads) {
  std::atomic<int> ready{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      UseCache();
      ++ready;
      while (!done) std::this_thread::yield();
    });
  }
  while (ready < 3) std::this_thread::yield();
  EXPECT_GE(heap.caches().count(), 4u);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    UseCache();
    const bool alone = heap.caches().count() == 1 && !heap.gate().closed();
    heap.budget().CheckInvariants();
    _exit(alone ? 0 : 1);
  }
  ExpectSuccess(child);
  done = true;
  for (std::thread& thread : threads) thread.join();
}

// A thread that never leaves the slow path, by a fork in it: the heap of the other one's child is
// closed for good, and the child is served all the same.
TEST_F(HeapForkTest, AForkBesideAForkInsideTheSlowPath) {
  std::atomic<int> stage{0};
  std::thread other([&] {
    Inside([&](Entry) {
      heap.threads().BeginFork();
      stage = 1;
      while (stage != 2) std::this_thread::yield();
      heap.threads().EndForkInParent();
    });
  });
  while (stage != 1) std::this_thread::yield();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Entry entry = EnterSlowPath();
    _exit(entry == Entry::kReentrant && heap.gate().IsDamaged() ? 0 : 1);
  }
  stage = 2;
  other.join();
  ExpectSuccess(child);
  EXPECT_FALSE(heap.gate().closed());
}

// A thread that comes while a fork is under way turns away at once.
TEST_F(HeapForkTest, NobodyWaitsForAFork) {
  heap.threads().BeginFork();
  EXPECT_EQ(EnterSlowPath(), Entry::kReentrant);
  std::thread([] { EXPECT_EQ(EnterSlowPath(), Entry::kReentrant); }).join();
  heap.threads().BeginFork();
  heap.threads().EndForkInParent();
  EXPECT_EQ(EnterSlowPath(), Entry::kReentrant);
  heap.threads().EndForkInParent();
  UseCache();
}

// In step with the forks another thread uses one class after the other for the first time.
TEST_F(HeapForkTest, TheChildOfAProcessThatMakesAClass) {
  std::atomic<size_t> wanted{0};
  std::thread maker([&] {
    for (size_t c = 1; c < kSizeClassCount; ++c) {
      while (wanted < c) std::this_thread::yield();
      Inside([c](Entry) { heap.transfer(static_cast<uint8_t>(c)).CheckInvariants(); });
    }
  });
  for (size_t c = 1; c < kSizeClassCount && !HasFatalFailure(); ++c) {
    wanted = c;
    ForkAndWait();
  }
  wanted = kSizeClassCount;
  maker.join();
}

// A signal handler may fork while its thread is in the slow path.
TEST_F(HeapForkTest, AForkInsideTheSlowPath) {
  const Entry entry = EnterSlowPath();
  const pid_t child = fork();
  if (child == 0) {
    LeaveSlowPath(entry);
    RunChild();
  }
  LeaveSlowPath(entry);
  ExpectSuccess(child);
  UseHeap();
}

}  // namespace
}  // namespace tcmalloc::testing
