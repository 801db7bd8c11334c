// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Divides the bytes that threads may cache among them.

#ifndef TCMALLOC_CACHE_PER_THREAD_CACHE_BUDGET_H_
#define TCMALLOC_CACHE_PER_THREAD_CACHE_BUDGET_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/intrusive_list.h"
#include "base/relaxed.h"
#include "base/spin_lock.h"

namespace tcmalloc {

// One cache's part. The budget changes it while its owner reads it; nothing else is published
// through it, so relaxed accesses suffice.
struct BudgetShare : ListNode {
  std::atomic<int64_t> bytes{0};
  Relaxed<int64_t> full_bytes = 0;  // of the cache's full chains, which change under its lock
  uint32_t pause = 0;               // requests of the owner that are refused; the owner's alone
  int64_t long_bytes = 0;           // of long lists; likewise

  int64_t limit() const { return bytes.load(std::memory_order_relaxed); }
};

// Invariant: unclaimed == total - the sum of all shares, those set aside included. It is negative
// while there are more caches than the total has first shares for. All shares together are
// therefore at most the total or, if that is more, the sum of one first share for each cache.
//
// A share starts small and grows each time its cache overflows: from the unclaimed bytes, or else
// by taking from the shares of others in turn, unless their caches have yet to come down to what
// was left to them. Active threads thus end up with large caches and idle ones with small caches,
// and all caches hold little more than the total, idle ones included. Thread safe.
class CacheBudget {
 public:
  // The bytes of a share at the start, below which theft never brings it unless set otherwise; the
  // least value that may be set; and the most bytes by which a share grows at once.
  static constexpr int64_t kFirstShare = 64 << 10;
  static constexpr int64_t kLeastShare = 4 << 10;
  static constexpr int64_t kStep = 64 << 10;
  static constexpr int64_t kManyBytesCut = 8 * kStep;
  // The bytes that a cache may hold beyond its share before nothing more is taken from that. Others
  // look for what it returns once so many were taken.
  static constexpr int64_t kMostBeyondShare = kManyBytesCut;

  constexpr CacheBudget() = default;

  // Sets the total. Cuts the shares that are larger than a first share if they exceed it.
  void SetTotal(size_t bytes) TCMALLOC_EXCLUDES(lock_);
  size_t total() TCMALLOC_EXCLUDES(lock_);

  // Sets the first share, which is at least kLeastShare and at most the total. Existing shares stay
  // as they are unless all together exceed the total.
  void SetFirstShare(size_t bytes) TCMALLOC_EXCLUDES(lock_);
  size_t first_share() TCMALLOC_EXCLUDES(lock_);

  void Join(BudgetShare& share) TCMALLOC_EXCLUDES(lock_);
  // Gives up the share. Does nothing if it has left already.
  void Leave(BudgetShare& share) TCMALLOC_EXCLUDES(lock_);
  // Keeps `held` bytes for a share that stays without a thread until TakeUp. Nobody can take them
  // meanwhile. Returns false if they are too large a part of the total, or if the share has left.
  bool SetAside(BudgetShare& share, int64_t held) TCMALLOC_EXCLUDES(lock_);
  void TakeUp(BudgetShare& share) TCMALLOC_EXCLUDES(lock_);
  // Forgets all shares but `mine`, which may be null: in the child of fork their threads are gone.
  void KeepOnly(BudgetShare* mine) TCMALLOC_EXCLUDES(lock_);
  // Raises the share. Returns false if no bytes were available. While all bytes are claimed, it
  // also does so for some requests after another cache asked at the same time: where all are
  // active, to rob each other in turn gains nothing, and they would wait for each other to do so.
  // Called by the owner.
  bool Grow(BudgetShare& share) TCMALLOC_EXCLUDES(lock_);

  // Long lists are what other threads cannot take from an idle one, which keeps them when its share
  // is cut. All together hold at most a part of the total, but for what several threads add at
  // once. May be called at any time.
  bool HasRoomForLongLists(int64_t bytes) const {
    return long_bytes_.load(std::memory_order_relaxed) + bytes <=
           most_long_bytes_.load(std::memory_order_relaxed);
  }
  // Counts bytes that come to the owner's long lists. Called by the owner.
  void NoteLongLists(BudgetShare& share, int64_t bytes) {
    share.long_bytes += bytes;
    long_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }

  // Returns true if shares lost kManyBytesCut since ForgetCuts. Those of idle threads then hold
  // more than they may, because a cache that lost bytes returns objects when its owner uses it.
  bool HasManyCuts() const { return bytes_cut_ >= kManyBytesCut; }
  TCMALLOC_COLD void ForgetCuts() TCMALLOC_EXCLUDES(lock_);

  void CheckInvariants() TCMALLOC_EXCLUDES(lock_);
  SpinLock& lock() TCMALLOC_RETURN_CAPABILITY(lock_) { return lock_; }

 private:
  // The part of the total that may be set aside.
  static constexpr int64_t kAsidePart = 16;
  // The part of the total that long lists may hold.
  static constexpr int64_t kLongPart = 4;
  // The number of requests that a cache makes in vain after it met another one.
  static constexpr uint32_t kPause = 64;
  // The number of other shares that are asked before a share stays as it is.
  static constexpr size_t kMaxVictims = 10;

  void Remove(BudgetShare& share) TCMALLOC_REQUIRES(lock_);
  TCMALLOC_NOINLINE BudgetShare* NextVictim() TCMALLOC_REQUIRES(lock_);
  bool MayBeRobbed(const BudgetShare& share) TCMALLOC_REQUIRES(lock_);
  bool TryLockForTheft(BudgetShare& share) TCMALLOC_TRY_ACQUIRE(true, lock_);
  bool Claim(BudgetShare& share) TCMALLOC_REQUIRES(lock_);
  bool Steal(BudgetShare& share) TCMALLOC_REQUIRES(lock_);
  void Cut(BudgetShare& share, int64_t bytes) TCMALLOC_REQUIRES(lock_);
  // Cuts shares down to first shares while they exceed the total.
  void CutShares(size_t most_victims) TCMALLOC_REQUIRES(lock_);

  SpinLock lock_{LockRank::kCacheBudget};
  int64_t total_ TCMALLOC_GUARDED_BY(lock_) = 0;
  Relaxed<int64_t> unclaimed_ = 0;                // changes under the lock
  Relaxed<int64_t> bytes_cut_ = 0;                // likewise
  int64_t aside_ TCMALLOC_GUARDED_BY(lock_) = 0;  // the sum of the shares that are set aside
  std::atomic<int64_t> long_bytes_{0};
  std::atomic<int64_t> most_long_bytes_{0};
  int64_t first_share_ TCMALLOC_GUARDED_BY(lock_) = kFirstShare;
  IntrusiveList<BudgetShare> shares_ TCMALLOC_GUARDED_BY(lock_);
  BudgetShare* next_victim_ TCMALLOC_GUARDED_BY(lock_) = nullptr;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_THREAD_CACHE_BUDGET_H_
