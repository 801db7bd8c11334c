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

#include "heap/current_thread.h"
#include "heap/heap.h"

namespace tcmalloc::testing {
namespace {

constexpr unsigned kChildSeconds = 60;
constexpr uint8_t kClasses[] = {SizeClassFor(8), SizeClassFor(64), SizeClassFor(4096)};

// Goes through every layer, and so takes locks of every rank.
void UseHeap() {
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

void UseCache() {
  const Entry entry = EnterSlowPath();
  TCMALLOC_CHECK(entry == Entry::kThreadCache);
  for (uint8_t c : kClasses) {
    void* object = current_cache->AllocateSlow(c, kSizeClasses[c].size);
    TCMALLOC_CHECK(object != nullptr);
    current_cache->FreeSlow(object, c);
  }
  LeaveSlowPath(entry);
}

[[noreturn]] void RunChild() {
  alarm(kChildSeconds);
  UseHeap();
  UseCache();
  heap.page_heap().CheckInvariants();
  heap.budget().CheckInvariants();
  for (size_t i = 1; i < kSizeClassCount; ++i) {
    const auto c = static_cast<uint8_t>(i);
    heap.transfer(c).CheckInvariants();
    heap.central(c).CheckInvariants();
  }
  _exit(0);
}

void ForkAndWait() {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) RunChild();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

class HeapForkTest : public ::testing::Test {
 protected:
  HeapForkTest() { UseCache(); }  // registers the handlers
};

TEST_F(HeapForkTest, TheChildOfASingleThread) {
  for (int i = 0; i < 10; ++i) ForkAndWait();
}

TEST_F(HeapForkTest, TheParentGoesOn) {
  ForkAndWait();
  heap.ForEachLock([](const SpinLock& lock, size_t) { EXPECT_FALSE(lock.IsHeld()); });
  EXPECT_FALSE(current_cache->closed());
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

// In step with the forks another thread uses one class after the other for the first time.
TEST_F(HeapForkTest, TheChildOfAProcessThatMakesAClass) {
  std::atomic<size_t> wanted{0};
  std::thread maker([&] {
    for (size_t c = 1; c < kSizeClassCount; ++c) {
      while (wanted < c) std::this_thread::yield();
      heap.transfer(static_cast<uint8_t>(c)).CheckInvariants();
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
  ASSERT_GE(child, 0);
  if (child == 0) {
    LeaveSlowPath(entry);
    RunChild();
  }
  LeaveSlowPath(entry);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  UseHeap();
}

}  // namespace
}  // namespace tcmalloc::testing
