// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Thread caches between two threads.

#ifndef TCMALLOC_CACHE_PER_THREAD_SPARE_CACHES_H_
#define TCMALLOC_CACHE_PER_THREAD_SPARE_CACHES_H_

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/spin_lock.h"
#include "cache/thread_header.h"

namespace tcmalloc {

// A stack of closed caches whose threads have ended, each with what it holds. The next thread gets
// the one that was added last, whose objects are the warmest, and allocates without a slow start.
// Links them by ThreadHeader::next_ended. Thread safe.
template <typename Cache>
class SpareCaches {
 public:
  constexpr SpareCaches() = default;

  void Add(Cache* cache) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    cache->thread()->next_ended = top_ != nullptr ? top_->thread() : nullptr;
    top_ = cache;
    ++count_;
  }

  // Null if there is none.
  Cache* Take() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    return TakeTop();
  }
  // Null also if the lock is held.
  Cache* TryTake() TCMALLOC_EXCLUDES(lock_) {
    if (!lock_.TryLock()) return nullptr;
    Cache* cache = TakeTop();
    lock_.Unlock();
    return cache;
  }

  // Half of those that nobody needed since the last call, the oldest ones, or all: a list for
  // TakeNext.
  Cache* TakeUnneeded() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    Cache* taken = CutBelow(count_ - (low_water_ + 1) / 2);
    low_water_ = count_;
    return taken;
  }
  Cache* TakeAll() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    Cache* taken = CutBelow(0);
    low_water_ = 0;
    return taken;
  }
  // The first cache of such a list, which it shortens; null if there is none.
  static Cache* TakeNext(Cache** list) {
    Cache* cache = *list;
    if (cache != nullptr) *list = Below(cache);
    return cache;
  }

  // Forgets all caches. Called in the child of fork.
  void Forget() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    top_ = nullptr;
    count_ = 0;
    low_water_ = 0;
  }

  size_t count() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    return count_;
  }

 private:
  Cache* TakeTop() TCMALLOC_REQUIRES(lock_) {
    if (top_ == nullptr) return nullptr;
    Cache* cache = top_;
    top_ = Below(cache);
    low_water_ = std::min(low_water_, --count_);
    return cache;
  }
  static Cache* Below(Cache* cache) {
    ThreadHeader* next = cache->thread()->next_ended;
    cache->thread()->next_ended = nullptr;
    return next != nullptr ? Cache::Of(next) : nullptr;
  }

  // Keeps the top `kept` caches and returns a list of the others.
  Cache* CutBelow(size_t kept) TCMALLOC_REQUIRES(lock_) {
    if (kept >= count_) return nullptr;
    count_ = kept;
    if (kept == 0) return std::exchange(top_, nullptr);
    ThreadHeader* last = top_->thread();
    while (--kept > 0) last = last->next_ended;
    return Cache::Of(std::exchange(last->next_ended, nullptr));
  }

  SpinLock lock_{LockRank::kThreadCaches};
  Cache* top_ TCMALLOC_GUARDED_BY(lock_) = nullptr;
  size_t count_ TCMALLOC_GUARDED_BY(lock_) = 0;
  size_t low_water_ TCMALLOC_GUARDED_BY(lock_) = 0;  // least count since TakeUnneeded
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_THREAD_SPARE_CACHES_H_
