// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/thread_lock.h"

#include <unistd.h>

#include "system/futex.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

// Returns the kernel's numbers of this process and this thread.
uint64_t RunningThread() {
  return uint64_t{static_cast<uint32_t>(::getpid())} << 32 |
         static_cast<uint32_t>(system_calls.gettid());
}

bool AreOfOneProcess(uint64_t thread, uint64_t other) { return thread >> 32 == other >> 32; }

void WaitForAMoment() {
  constexpr uint64_t kMillisecond = 1'000'000;
  std::atomic<uint32_t> nobody_wakes{0};
  SleepWhile(nobody_wakes, 0, kMillisecond);
}

}  // namespace

bool ThreadLock::TryLock() {
  const uint64_t self = RunningThread();
  uint64_t owner = owner_.load(std::memory_order_relaxed);
  // A thread of another process, whose memory was copied, never unlocks this copy.
  if (AreOfOneProcess(owner, self)) return false;
  // Acquire pairs with the release in Unlock.
  return owner_.compare_exchange_strong(owner, self, std::memory_order_acquire,
                                        std::memory_order_relaxed);
}

bool ThreadLock::Lock() {
  const uint64_t self = RunningThread();
  while (!TryLock()) {
    if (owner_.load(std::memory_order_relaxed) == self) return false;
    WaitForAMoment();
  }
  return true;
}

// Release pairs with the acquire in TryLock.
void ThreadLock::Unlock() { owner_.store(0, std::memory_order_release); }

}  // namespace tcmalloc
