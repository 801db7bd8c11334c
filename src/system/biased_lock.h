// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A lock that one thread takes all the time, and others almost never.

#ifndef TCMALLOC_SYSTEM_BIASED_LOCK_H_
#define TCMALLOC_SYSTEM_BIASED_LOCK_H_

#include <atomic>

#include "base/attributes.h"
#include "base/spin_lock.h"
#include "base/thread_annotations.h"

namespace tcmalloc {

// Makes every thread of the process pass a full memory barrier before it returns. Returns false if
// the kernel cannot (before Linux 4.14) or may not do so. Keeps errno.
bool FenceThreads();

// The owner pays two plain stores and a load, and no atomic read-modify-write. The owner says that
// it is inside, and then checks whether another thread has revoked its privilege. The other thread
// revokes it, fences, and then checks whether the owner is inside. The processor may let the
// owner's check precede the visibility of its own word, but not across the fence. So either the
// owner sees that it is revoked, or the other thread sees that the owner is inside, and gives up.
//
// An owner that waits for another thread goes before all that come later, because others may ask
// again and again.
//
// Not recursive; constinit and trivially destructible.
class TCMALLOC_CAPABILITY("mutex") BiasedLock {
 public:
  constexpr explicit BiasedLock(LockRank rank) : lock_(rank) {}
  BiasedLock(const BiasedLock&) = delete;
  BiasedLock& operator=(const BiasedLock&) = delete;

  // Called by the owner alone.
  TCMALLOC_ALWAYS_INLINE void Lock() TCMALLOC_ACQUIRE() {
    if constexpr (kDebugChecks) NoteOwnerEnters();
    owner_inside_.store(true, std::memory_order_relaxed);
    // Pairs with TryLockByOther, whose fence of all threads makes a barrier of the processor out of
    // this one of the compiler.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    // Acquire pairs with the release in UnlockByOther: the changes of the other thread are visible.
    if (TCMALLOC_UNLIKELY(revoked_.load(std::memory_order_acquire))) WaitForOther();
  }
  TCMALLOC_ALWAYS_INLINE void Unlock() TCMALLOC_RELEASE() {
    if (TCMALLOC_UNLIKELY(owner_waits_.load(std::memory_order_relaxed))) return UnlockAfterWait();
    if constexpr (kDebugChecks) NoteRankReleased(lock_.rank());
    // Release pairs with the acquire in TryLockByOther and publishes the owner's changes.
    owner_inside_.store(false, std::memory_order_release);
  }

  // Called by any other thread. Returns false if the lock is held, its owner waits for it, or the
  // kernel has no fence.
  [[nodiscard]] bool TryLockByOther() TCMALLOC_TRY_ACQUIRE(true);
  void UnlockByOther() TCMALLOC_RELEASE();

 private:
  TCMALLOC_COLD void WaitForOther();
  TCMALLOC_COLD void UnlockAfterWait();
  void NoteOwnerEnters() {
    CheckRankOrder(lock_.rank());
    NoteRankTaken(lock_.rank());
  }

  std::atomic<bool> owner_inside_{false};
  std::atomic<bool> revoked_{false};
  std::atomic<bool> owner_waits_{false};  // the owner waits for lock_, or is inside by it
  SpinLock lock_;                         // among others, and of the owner while it is revoked
};

// The owner's scope.
class TCMALLOC_SCOPED_CAPABILITY BiasedLockHolder {
 public:
  explicit BiasedLockHolder(BiasedLock& lock) TCMALLOC_ACQUIRE(lock) : lock_(lock) { lock_.Lock(); }
  ~BiasedLockHolder() TCMALLOC_RELEASE() { lock_.Unlock(); }
  BiasedLockHolder(const BiasedLockHolder&) = delete;
  BiasedLockHolder& operator=(const BiasedLockHolder&) = delete;

 private:
  BiasedLock& lock_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_BIASED_LOCK_H_
