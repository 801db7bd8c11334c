// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// fork while other threads are inside the heap. A child that finds a lock taken for ever is ended
// by its alarm.

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
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

// Called between the heap's own handlers, since this one is registered before them.
std::function<void()> after_prepare;
const int handler_registered = pthread_atfork(
    [] {
      if (after_prepare) after_prepare();
    },
    nullptr, nullptr);

class HeapForkTest : public ::testing::Test {
 protected:
  HeapForkTest() {
    EXPECT_EQ(handler_registered, 0);
    UseCache();  // registers the heap's handlers
  }
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

// Whether every lock is free but the one under which lists are made.
bool OthersAreFree() {
  bool free = true;
  heap.ForEachLock([&free](const SpinLock& lock, size_t) {
    free = free && (!lock.IsHeld() || &lock == &heap.lists().lock());
  });
  return free;
}

// The heap's handlers could not take the lock of another thread that is making a class, and when
// they let go of the others there is one lock more. Has to come before the test that makes all.
TEST_F(HeapForkTest, AForkInsideTheSlowPathWhileAClassIsMade) {
  constexpr uint8_t kNew = SizeClassFor(1024);
  ASSERT_EQ(heap.lists().Find(kNew), nullptr);
  std::atomic<int> stage{0};
  const auto wait_for = [&stage](int wanted) {
    while (stage != wanted) std::this_thread::yield();
  };
  std::thread maker([&]() TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
    SpinLock& lock = heap.lists().lock();
    lock.Lock();
    stage = 1;
    wait_for(2);
    lock.Unlock();
    heap.transfer(kNew);
    lock.Lock();
    stage = 3;
    wait_for(4);
    lock.Unlock();
  });
  wait_for(1);
  after_prepare = [&] {
    stage = 2;
    wait_for(3);
  };
  const Entry entry = EnterSlowPath();
  const pid_t child = fork();
  LeaveSlowPath(entry);
  if (child == 0) _exit(OthersAreFree() ? 0 : 1);
  after_prepare = nullptr;
  ASSERT_GE(child, 0);
  EXPECT_TRUE(OthersAreFree());
  stage = 4;
  maker.join();
  ExpectSuccess(child);
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
  ExpectSuccess(child);
  UseHeap();
}

}  // namespace
}  // namespace tcmalloc::testing
