// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/biased_lock.h"

#include <linux/membarrier.h>

#include <cerrno>

#include "system/system_calls.h"

namespace tcmalloc {

bool FenceThreads() {
  const int saved_errno = errno;
  bool fenced = system_calls.membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
  // A process has to register before its first fence, and again after it executes another program.
  if (!fenced && errno == EPERM &&
      system_calls.membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0) {
    fenced = system_calls.membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
  }
  errno = saved_errno;
  return fenced;
}

// Thread-safety analysis cannot follow a lock that is held by holding another one.

bool BiasedLock::TryLockByOther() TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
  if (owner_waits_.load(std::memory_order_relaxed) || !lock_.TryLock()) return false;
  revoked_.store(true, std::memory_order_relaxed);
  // The fence pairs with the one in Lock, acquire pairs with the release in Unlock and
  // WaitForOther.
  if (FenceThreads() && !owner_inside_.load(std::memory_order_acquire)) return true;
  UnlockByOther();
  return false;
}

void BiasedLock::UnlockByOther() TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
  // Release pairs with the acquire in Lock.
  revoked_.store(false, std::memory_order_release);
  lock_.Unlock();
}

void BiasedLock::WaitForOther() TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
  // Release pairs with the acquire in TryLockByOther, which may find this word instead of the one
  // that Unlock wrote after the owner's last changes.
  owner_inside_.store(false, std::memory_order_release);
  if constexpr (kDebugChecks) NoteRankReleased(lock_.rank());
  owner_waits_.store(true, std::memory_order_relaxed);
  lock_.Lock();
}

void BiasedLock::UnlockAfterWait() TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
  owner_waits_.store(false, std::memory_order_relaxed);
  lock_.Unlock();
}

}  // namespace tcmalloc
