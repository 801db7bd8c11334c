// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// All thread caches of the process.

#ifndef TCMALLOC_CACHE_PER_THREAD_THREAD_CACHES_H_
#define TCMALLOC_CACHE_PER_THREAD_THREAD_CACHES_H_

#include <cstddef>
#include <cstdint>

#include "cache/per_thread/thread_cache.h"
#include "cache/thread_registry.h"

namespace tcmalloc {

struct ThreadCachesStats {
  size_t caches = 0;
  size_t cached_bytes = 0;
  AllocationTotals allocated;
};

// Makes and recycles caches, and lists those in use. Thread safe.
template <SourceTable Sources>
class ThreadCaches {
 public:
  using Cache = ThreadCache<Sources>;

  constexpr explicit ThreadCaches(MetadataArena& arena) : registry_(arena) {}

  // Returns an open cache, or null if no memory can be had.
  Cache* Create(const typename Cache::Context& context) {
    Cache* cache = registry_.New();
    if (cache == nullptr) return nullptr;
    cache->Initialize(context);
    registry_.List(cache);
    return cache;
  }

  // Called by the thread that owns `cache`, or after it ended.
  void Destroy(Cache* cache) {
    cache->Retire();
    registry_.Delete(cache);
  }

  // Returns an estimate while other threads run.
  ThreadCachesStats stats() {
    ThreadCachesStats stats;
    ForEach([&stats](const Cache& cache) {
      ++stats.caches;
      stats.cached_bytes += cache.CountBytes();
    });
    stats.allocated = registry_.totals();
    return stats;
  }

  // In the child of fork: forgets all caches but `mine`, which may be null, with what they hold.
  void KeepOnly(Cache* mine) { registry_.KeepOnly(mine); }

  // Takes memory from `n` caches, each in turn, if their threads are idle; see
  // ThreadCache::ReleaseIdle. `own` is the cache of the running thread, or null; it needs no fence.
  void ReleaseIdle(size_t n, const Cache* own) {
    registry_.VisitNext(n, [own](Cache& cache) { cache.ReleaseIdle(&cache == own); });
  }
  // Returns all full chains of all caches to the sources.
  void ReleaseFull() {
    registry_.VisitNext(SIZE_MAX, [](Cache& cache) { cache.ReleaseFull(); });
  }

  // Closes every cache to the fast paths until its thread opens it again.
  void CloseAll() {
    registry_.ForEach([](Cache& cache) { cache.thread()->CloseListsByOther(); });
  }

  // Calls f(const Cache&) under the lock.
  template <typename F>
  void ForEach(F f) {
    registry_.ForEach(f);
  }

  size_t count() { return registry_.count(); }
  // Returns the totals of living and ended threads. An estimate while other threads run.
  AllocationTotals allocated() { return registry_.totals(); }

 private:
  ThreadRegistry<Cache> registry_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_THREAD_THREAD_CACHES_H_
