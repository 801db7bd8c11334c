// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// All thread caches of the process.

#ifndef TCMALLOC_CACHE_PER_THREAD_THREAD_CACHES_H_
#define TCMALLOC_CACHE_PER_THREAD_THREAD_CACHES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cache/per_thread/spare_caches.h"
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

  // Returns a closed cache, that of a thread that has ended if there is one. Null if no memory can
  // be had.
  TCMALLOC_COLD Cache* Create(const typename Cache::Context& context) {
    if (Cache* spare = spares_.Take()) {
      spare->TakeUp();
      return spare;
    }
    Cache* cache = registry_.New();
    if (cache == nullptr) return nullptr;
    cache->Initialize(context);
    cache->Close();
    registry_.List(cache);
    return cache;
  }

  // Called by the thread that owns `cache`, or after it ended. Keeps the cache for the next thread
  // if it holds little.
  void Destroy(Cache* cache) {
    cache->Close();
    cache->SetAside() ? spares_.Add(cache) : Retire(cache);
  }

  // Returns an estimate while other threads run.
  TCMALLOC_COLD ThreadCachesStats stats() {
    ThreadCachesStats stats;
    ForEach([&stats](const Cache& cache) { stats.cached_bytes += cache.CountBytes(); });
    stats.caches = count();
    stats.allocated = registry_.totals();
    return stats;
  }

  // Forgets all caches but `mine`, which may be null, with what they hold. Called in the child of
  // fork.
  void KeepOnly(Cache* mine) {
    spares_.Forget();
    registry_.KeepOnly(mine);
  }

  // Takes memory from `n` caches, each in turn, if their threads are idle; see
  // ThreadCache::ReleaseIdle. `own` is the cache of the running thread, or null; it needs no fence.
  // Retires half of the spare caches that no thread needed since the last call.
  TCMALLOC_COLD void ReleaseIdle(size_t n, const Cache* own) {
    RetireAll(spares_.TakeUnneeded());
    registry_.VisitNext(n, [own](Cache& cache) { cache.ReleaseIdle(&cache == own); });
  }
  // Lets `n` caches, each in turn, return what idle threads hold beyond their shares; see
  // ThreadCache::ReturnOverdraft. `own` is as above, and keeps what it has.
  TCMALLOC_COLD void ReturnOverdrafts(size_t n, const Cache* own, OverdraftLook* look) {
    registry_.VisitNext(n, [own, look](Cache& cache) {
      if (&cache != own) cache.ReturnOverdraft(look);
    });
  }
  // Returns all full chains of all caches to the sources, and of spare ones everything.
  TCMALLOC_COLD void ReleaseFull() {
    RetireAll(spares_.TakeAll());
    registry_.VisitNext(SIZE_MAX, [](Cache& cache) { cache.ReleaseFull(); });
  }

  // Checks the objects in the newest spare caches, at most as many as *most, which it counts down.
  // Does nothing if the lock is held.
  TCMALLOC_COLD void CheckSpares(size_t* most) {
    constexpr size_t kMostCaches = 16;
    Cache* taken[kMostCaches];
    size_t count = 0;
    while (count < kMostCaches && (taken[count] = spares_.TryTake()) != nullptr) ++count;
    for (size_t i = 0; i < count && *most > 0; ++i) taken[i]->CheckFreeObjects(most);
    while (count > 0) spares_.Add(taken[--count]);
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

  // Returns the number of caches that threads have, without the spare ones.
  size_t count() {
    const size_t spares = spares_.count();
    const size_t all = registry_.count();
    return all - std::min(spares, all);
  }
  size_t spare_count() { return spares_.count(); }
  // Returns the number of caches that ReleaseIdle visits in turn, spare ones included.
  size_t listed_count() { return registry_.count(); }
  // Returns the totals of living and ended threads. An estimate while other threads run.
  AllocationTotals allocated() { return registry_.totals(); }

 private:
  void Retire(Cache* cache) {
    cache->Retire();
    registry_.Delete(cache);
  }
  void RetireAll(Cache* list) {
    while (Cache* cache = SpareCaches<Cache>::TakeNext(&list)) {
      cache->TakeUp();
      Retire(cache);
    }
  }

  ThreadRegistry<Cache> registry_;
  SpareCaches<Cache> spares_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_THREAD_THREAD_CACHES_H_
