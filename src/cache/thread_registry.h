// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Makes, lists and recycles the records of a front end, one for each thread.

#ifndef TCMALLOC_CACHE_THREAD_REGISTRY_H_
#define TCMALLOC_CACHE_THREAD_REGISTRY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/intrusive_list.h"
#include "base/spin_lock.h"
#include "cache/event_clock.h"
#include "pages/metadata_arena.h"

namespace tcmalloc {

// The bytes and blocks that threads allocated, according to the clocks of living and ended threads.
struct AllocationTotals {
  uint64_t bytes = 0;
  uint64_t counted_bytes = 0;        // of those, the ones in the next figure
  uint64_t counted_allocations = 0;  // estimated

  void Add(const EventClock& clock) {
    bytes += clock.allocated_bytes();
    counted_bytes += clock.counted_bytes();
    counted_allocations += clock.counted_allocations();
  }
  void Add(const AllocationTotals& other) {
    bytes += other.bytes;
    counted_bytes += other.counted_bytes;
    counted_allocations += other.counted_allocations;
  }

  // Returns an estimate; 0 while there is nothing to base it on. Most allocations of threads that
  // allocate little are not counted, and are assumed to be of the same sizes as the others.
  uint64_t allocations() const {
    if (counted_bytes == 0) return 0;
    const double share = static_cast<double>(bytes) / static_cast<double>(counted_bytes);
    return static_cast<uint64_t>(static_cast<double>(counted_allocations) * share);
  }
};

// Records of T, a ListNode with clock(), one for each thread. Thread safe.
template <typename T>
class ThreadRegistry {
 public:
  constexpr explicit ThreadRegistry(MetadataArena& arena) : pool_(arena) {}

  // Returns a record that is not listed yet, or null if no memory can be had.
  T* New() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    return pool_.New();
  }

  void List(T* record) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    living_.PushBack(record);
    ++count_;
  }

  // Takes back a record that is listed.
  void Delete(T* record) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    living_.Remove(record);
    --count_;
    ended_.Add(record->clock());
    pool_.Delete(record);
  }

  size_t count() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    return count_;
  }

  // Returns an estimate while other threads run.
  AllocationTotals totals() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    AllocationTotals totals = ended_;
    for (T* record = living_.front(); record != nullptr; record = living_.next(record)) {
      totals.Add(record->clock());
    }
    return totals;
  }

  // Forgets all records but `mine`, which may be null, because in the child of fork their threads
  // are gone. Only reads the records and leaves them where they are, so that the kernel need not
  // copy their pages.
  void KeepOnly(T* mine) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    for (T* record = living_.front(); record != nullptr; record = living_.next(record)) {
      if (record != mine) ended_.Add(record->clock());
    }
    living_.Abandon();
    count_ = 0;
    if (mine == nullptr) return;
    static_cast<ListNode&>(*mine) = {};
    living_.PushBack(mine);
    count_ = 1;
  }

  // Calls f(T&) under the lock.
  template <typename F>
  void ForEach(F f) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    for (T* record = living_.front(); record != nullptr; record = living_.next(record)) f(*record);
  }

  // Calls f(T&) under the lock for `n` records, or for all if there are fewer, beginning with those
  // not visited for longest.
  template <typename F>
  void VisitNext(size_t n, F f) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    for (n = std::min(n, count_); n > 0; --n) {
      T* record = living_.front();
      living_.Remove(record);
      living_.PushBack(record);
      f(*record);
    }
  }

 private:
  SpinLock lock_{LockRank::kThreadCaches};
  MetadataPool<T> pool_ TCMALLOC_GUARDED_BY(lock_);
  IntrusiveList<T> living_ TCMALLOC_GUARDED_BY(lock_);
  size_t count_ TCMALLOC_GUARDED_BY(lock_) = 0;
  AllocationTotals ended_ TCMALLOC_GUARDED_BY(lock_);
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_THREAD_REGISTRY_H_
