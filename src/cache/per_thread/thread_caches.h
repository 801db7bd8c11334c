// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// All thread caches of the process.

#ifndef TCMALLOC_CACHE_PER_THREAD_THREAD_CACHES_H_
#define TCMALLOC_CACHE_PER_THREAD_THREAD_CACHES_H_

#include <cstddef>
#include <cstdint>

#include "base/intrusive_list.h"
#include "base/spin_lock.h"
#include "cache/per_thread/thread_cache.h"
#include "pages/metadata_arena.h"

namespace tcmalloc {

struct ThreadCachesStats {
  size_t caches = 0;
  size_t cached_bytes = 0;
  uint64_t allocated_bytes = 0;  // ever, by living and ended threads
  uint64_t allocations = 0;      // ever, estimated
};

// Makes and recycles caches, and lists the living ones. Thread safe.
template <BatchSource Source>
class ThreadCaches {
 public:
  using Cache = ThreadCache<Source>;

  constexpr explicit ThreadCaches(MetadataArena& arena) : pool_(arena) {}

  // An open cache, or null if no memory can be had.
  Cache* Create(const typename Cache::Context& context) TCMALLOC_EXCLUDES(lock_) {
    Cache* cache = nullptr;
    {
      SpinLockHolder holder(lock_);
      cache = pool_.New();
    }
    if (cache == nullptr) return nullptr;
    cache->Initialize(context);
    SpinLockHolder holder(lock_);
    living_.PushBack(cache);
    return cache;
  }

  // Called by the thread that owns `cache`, or after it ended.
  void Destroy(Cache* cache) TCMALLOC_EXCLUDES(lock_) {
    cache->Retire();
    SpinLockHolder holder(lock_);
    living_.Remove(cache);
    retired_.allocated_bytes += cache->clock().allocated_bytes();
    retired_.allocations += cache->clock().allocations();
    pool_.Delete(cache);
  }

  // An estimate while other threads run.
  ThreadCachesStats stats() TCMALLOC_EXCLUDES(lock_) {
    ThreadCachesStats stats;
    ForEach([&stats](const Cache& cache) {
      ++stats.caches;
      for (size_t c = 1; c < kSizeClassCount; ++c) {
        stats.cached_bytes += cache.CountObjects(static_cast<uint8_t>(c)) * kSizeClasses[c].size;
      }
      stats.allocated_bytes += cache.clock().allocated_bytes();
      stats.allocations += cache.clock().allocations();
    });
    SpinLockHolder holder(lock_);
    stats.allocated_bytes += retired_.allocated_bytes;
    stats.allocations += retired_.allocations;
    return stats;
  }

  // Calls f(const Cache&) under the lock.
  template <typename F>
  void ForEach(F f) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    for (Cache* cache = living_.front(); cache != nullptr; cache = living_.next(cache)) f(*cache);
  }

  SpinLock& lock() TCMALLOC_RETURN_CAPABILITY(lock_) { return lock_; }

 private:
  SpinLock lock_{LockRank::kThreadCaches};
  MetadataPool<Cache> pool_ TCMALLOC_GUARDED_BY(lock_);
  IntrusiveList<Cache> living_ TCMALLOC_GUARDED_BY(lock_);
  ThreadCachesStats retired_ TCMALLOC_GUARDED_BY(lock_);
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_THREAD_THREAD_CACHES_H_
