// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A thread that the program lends to the housekeeping stays until the process ends, and so has a
// program of its own.

#include <gtest/gtest.h>
#include <linux/futex.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "heap/heap.h"
#include "system/system_calls.h"
#include "upkeep/background_thread.h"

namespace tcmalloc::testing {
namespace {

constexpr time_t kPause = 10;

// Timeout of the lent thread in seconds; no other thread waits with one.
constinit std::atomic<int64_t> wait_seconds{-1};

long NoteWait(uint32_t* word, int operation, uint32_t value, const timespec* timeout) {
  if (timeout != nullptr) {
    wait_seconds = timeout->tv_sec;
    wait_seconds.notify_all();
  }
  return real_system_calls.futex(word, operation, value, timeout);
}

template <typename F>
void AwaitWait(F condition) {
  for (int64_t seen = wait_seconds; !condition(seen); seen = wait_seconds) wait_seconds.wait(seen);
}

TEST(LentThreadTest, WorksUnlessTheLastWordWasStop) {
  heap.EnsureInitialized();
  heap.housekeeping().set_half_life(1'000'000);
  system_calls.futex = NoteWait;
  EXPECT_FALSE(heap.background().enabled());
  std::thread([] { heap.background().RunForever(); }).detach();
  AwaitWait([](int64_t seconds) { return seconds == 0; });
  EXPECT_TRUE(heap.background().enabled());

  heap.background().Stop();
  EXPECT_FALSE(heap.background().enabled());
  AwaitWait([](int64_t seconds) { return seconds == kPause; });

  EXPECT_TRUE(heap.background().Start());
  AwaitWait([](int64_t seconds) { return seconds == 0; });

  heap.background().set_interval(77 * uint64_t{1'000'000'000});
  AwaitWait([](int64_t seconds) { return seconds == 77; });
  heap.background().set_interval(0);
  AwaitWait([](int64_t seconds) { return seconds == 0; });
}

}  // namespace
}  // namespace tcmalloc::testing
