// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "base/spin_lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace tcmalloc {
namespace {

// The tries before a thread sleeps: enough for the short critical sections of the allocator, and
// cheaper than a context switch.
constexpr int kSpins = 200;

// Bit r is set while this thread holds a lock of rank r.
thread_local uint32_t held_ranks TCMALLOC_INITIALIZED_TLS = 0;
// Totals of each rank.
constinit std::atomic<uint64_t> acquisitions[kLockRankCount] = {};
constinit std::atomic<uint64_t> contentions[kLockRankCount] = {};

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

// Keeps errno, which the caller of malloc must not see change.
void Futex(std::atomic<uint32_t>* word, int operation, uint32_t value) {
  const int saved_errno = errno;
  ::syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
  errno = saved_errno;
}

uint32_t BitOf(LockRank rank) { return uint32_t{1} << static_cast<uint32_t>(rank); }

}  // namespace

void CheckRankOrder(LockRank rank) {
  const uint32_t lower_ranks = BitOf(rank) - 1;
  TCMALLOC_CHECK_EQ(held_ranks & ~lower_ranks, 0U);
}

void NoteRankTaken(LockRank rank) {
  TCMALLOC_CHECK_EQ(held_ranks & BitOf(rank), 0U);
  held_ranks |= BitOf(rank);
}

void NoteRankReleased(LockRank rank) { held_ranks &= ~BitOf(rank); }

LockCounts CurrentLockCounts(LockRank rank) {
  const auto index = static_cast<size_t>(rank);
  return {acquisitions[index].load(std::memory_order_relaxed),
          contentions[index].load(std::memory_order_relaxed)};
}

LockCounts CurrentLockCounts() {
  LockCounts sum;
  for (size_t rank = 0; rank < kLockRankCount; ++rank) {
    const LockCounts counts = CurrentLockCounts(static_cast<LockRank>(rank));
    sum.acquisitions += counts.acquisitions;
    sum.contentions += counts.contentions;
  }
  return sum;
}

void SpinLock::LockSlow() {
  if constexpr (kDebugChecks) {
    contentions[static_cast<size_t>(rank_)].fetch_add(1, std::memory_order_relaxed);
  }
  for (int i = 0; i < kSpins; ++i) {
    Pause();
    uint32_t expected = kFree;
    // Acquire pairs with the release in Unlock.
    if (word_.load(std::memory_order_relaxed) == kFree &&
        word_.compare_exchange_weak(expected, kHeld, std::memory_order_acquire,
                                    std::memory_order_relaxed)) {
      return;
    }
  }
  // Keeps the word at kContended while this thread holds the lock, because a spurious wake-up costs
  // less than a lost one. Acquire pairs with the release in Unlock.
  while (word_.exchange(kContended, std::memory_order_acquire) != kFree) {
    Futex(&word_, FUTEX_WAIT, kContended);
  }
}

void SpinLock::Wake() { Futex(&word_, FUTEX_WAKE, 1); }

void SpinLock::NoteAcquisition() {
  acquisitions[static_cast<size_t>(rank_)].fetch_add(1, std::memory_order_relaxed);
  NoteRankTaken(rank_);
}

}  // namespace tcmalloc
