// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A small lock that spins briefly and then sleeps on a futex.

#ifndef TCMALLOC_BASE_SPIN_LOCK_H_
#define TCMALLOC_BASE_SPIN_LOCK_H_

#include <atomic>
#include <cstdint>

#include "base/attributes.h"
#include "base/check.h"
#include "base/lock_rank.h"
#include "base/thread_annotations.h"

namespace tcmalloc {

// The number of lock acquisitions of this process, and of those that found the lock taken. Counted
// only if kDebugChecks is set, so that release builds share no counter.
struct LockCounts {
  uint64_t acquisitions = 0;
  uint64_t contentions = 0;
};
LockCounts CurrentLockCounts();
// Returns the counts of the locks of one rank.
LockCounts CurrentLockCounts(LockRank rank);

// Not recursive. constinit, trivially destructible, four bytes plus its rank.
//
// The word is kFree, kHeld, or kContended; a thread that sleeps has set kContended first, so that
// an unlock which sees kHeld need not enter the kernel.
class TCMALLOC_CAPABILITY("mutex") SpinLock {
 public:
  constexpr explicit SpinLock(LockRank rank) : rank_(rank) {}
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

  TCMALLOC_ALWAYS_INLINE void Lock() TCMALLOC_ACQUIRE() {
    if constexpr (kDebugChecks) {
      CheckRankOrder(rank_);
      NoteAcquisition();
    }
    uint32_t expected = kFree;
    // Acquire pairs with the release in Unlock: what the last holder wrote is visible.
    if (TCMALLOC_UNLIKELY(!word_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire,
                                                         std::memory_order_relaxed))) {
      LockSlow();
    }
  }

  // May be called against the order of ranks, because it does not wait.
  [[nodiscard]] bool TryLock() TCMALLOC_TRY_ACQUIRE(true) {
    uint32_t expected = kFree;
    // Acquire pairs with the release in Unlock.
    const bool taken = word_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire,
                                                     std::memory_order_relaxed);
    if constexpr (kDebugChecks) {
      if (taken) NoteAcquisition();
    }
    return taken;
  }

  TCMALLOC_ALWAYS_INLINE void Unlock() TCMALLOC_RELEASE() {
    if constexpr (kDebugChecks) NoteRankReleased(rank_);
    // Release pairs with the acquire in Lock, TryLock and LockSlow.
    if (TCMALLOC_UNLIKELY(word_.exchange(kFree, std::memory_order_release) == kContended)) Wake();
  }

  LockRank rank() const { return rank_; }

 private:
  static constexpr uint32_t kFree = 0;
  static constexpr uint32_t kHeld = 1;
  static constexpr uint32_t kContended = 2;

  TCMALLOC_COLD void LockSlow();
  TCMALLOC_COLD void Wake();
  void NoteAcquisition();

  std::atomic<uint32_t> word_{kFree};
  LockRank rank_;
};

class TCMALLOC_SCOPED_CAPABILITY SpinLockHolder {
 public:
  TCMALLOC_ALWAYS_INLINE explicit SpinLockHolder(SpinLock& lock) TCMALLOC_ACQUIRE(lock)
      : lock_(lock) {
    lock_.Lock();
  }
  TCMALLOC_ALWAYS_INLINE ~SpinLockHolder() TCMALLOC_RELEASE() { lock_.Unlock(); }
  SpinLockHolder(const SpinLockHolder&) = delete;
  SpinLockHolder& operator=(const SpinLockHolder&) = delete;

 private:
  SpinLock& lock_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_BASE_SPIN_LOCK_H_
