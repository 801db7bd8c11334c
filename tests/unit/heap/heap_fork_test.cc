// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// fork while other threads are inside the heap. A child that finds a lock taken for ever is ended
// by its alarm.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
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
  for (uint8_t c : kClasses) heap.central(c).CheckInvariants();
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
  heap.ForEachLock([](SpinLock& lock) { EXPECT_FALSE(lock.IsHeld()); });
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
