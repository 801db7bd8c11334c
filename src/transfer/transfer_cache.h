// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Chains of one size class on their way from one thread to another.

#ifndef TCMALLOC_TRANSFER_TRANSFER_CACHE_H_
#define TCMALLOC_TRANSFER_TRANSFER_CACHE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/spin_lock.h"
#include "transfer/batch_source.h"
#include "transfer/chain_stack.h"

namespace tcmalloc {

struct TransferStats {
  size_t chains = 0;
  size_t objects = 0;
  size_t limit = 0;      // chains
  size_t hits = 0;       // fetches served from here
  size_t misses = 0;     // fetches passed on
  size_t overflows = 0;  // inserts passed on
};

// A bounded stack of chains in front of a central free list. A chain is moved as a whole: one lock,
// and no object is touched. Chains far shorter than a batch pass through.
//
// The bound follows use and starts small. If an insert finds the stack full after fetches found it
// empty, batches swing between threads by more than the bound. The bound then doubles, up to the
// bytes that Initialize was given. Thread safe.
template <ChainSource Central>
class TransferCache {
 public:
  constexpr TransferCache() = default;

  // `batch` objects make a full chain; at most `max_chains` are kept.
  void Initialize(Central& central, ChainArrays& arrays, uint32_t batch, uint32_t max_chains)
      TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    central_ = &central;
    arrays_ = &arrays;
    batch_ = batch;
    shortest_ = (batch + 3) / 4;
    max_chains_ = max_chains;
    limit_ = std::min(kFirstLimit, max_chains);
  }

  uint32_t batch() const { return batch_; }

  // Hands on a chain from here whole, though it may hold more than was wanted: its objects are free
  // already, and splitting it would touch them.
  Chain Fetch(uint32_t wanted) TCMALLOC_EXCLUDES(lock_) {
    {
      SpinLockHolder holder(lock_);
      if (!stack_.empty()) {
        ++hits_;
        return Pop();
      }
      ++misses_;
      ++misses_since_overflow_;
    }
    return central_->Fetch(wanted);
  }

  // Objects that came through here were all handed out before, so only the central list has fresh
  // ones.
  Chain FetchLine() { return central_->FetchLine(); }

  void Insert(Chain chain) TCMALLOC_EXCLUDES(lock_) {
    if (chain.count >= shortest_ && Keep(chain)) return;
    central_->Insert(chain);
  }

  // Keeps the chain only where fewer than `few` objects are kept.
  void InsertWhileFew(Chain chain, size_t few) TCMALLOC_EXCLUDES(lock_) {
    if (chain.count >= shortest_ && Keep(chain, few)) return;
    central_->Insert(chain);
  }

  // Pass by the chains that are kept here. The central list lets spans drain by serving from the
  // fullest.
  void InsertPast(Chain chain) { central_->Insert(chain); }
  Chain FetchPast(uint32_t wanted) { return central_->Fetch(wanted); }
  bool IsSparse() { return central_->IsSparse(); }

  // Hands half of the chains that were not needed since the last call to the central free list.
  void ReturnUnused() TCMALLOC_EXCLUDES(lock_) {
    uint32_t count = 0;
    {
      SpinLockHolder holder(lock_);
      count = (low_water_ + 1) / 2;
      low_water_ = stack_.size() - std::min(count, stack_.size());
    }
    Return(count);
  }

  // Hands everything to the central free list.
  void Drain() TCMALLOC_EXCLUDES(lock_) { Return(UINT32_MAX); }

  // Calls f(chain) for each chain, under the lock.
  template <typename F>
  void ForEachChain(F f) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    for (uint32_t i = 0; i < stack_.size(); ++i) f(stack_.at(i));
  }

  TransferStats stats() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    return {stack_.size(), objects_, limit_, hits_, misses_, overflows_};
  }

  void CheckInvariants() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    TCMALLOC_CHECK_LE(stack_.size(), limit_);
    TCMALLOC_CHECK_LE(limit_, max_chains_);
    size_t objects = 0;
    for (uint32_t i = 0; i < stack_.size(); ++i) {
      TCMALLOC_CHECK_LE(shortest_, stack_.at(i).count);
      objects += stack_.at(i).count;
    }
    TCMALLOC_CHECK_EQ(objects, objects_);
  }

 private:
  static constexpr uint32_t kFirstLimit = 4;

  // Hands `count` chains, or all if there are fewer, to the central free list.
  void Return(uint32_t count) TCMALLOC_EXCLUDES(lock_) {
    for (; count > 0; --count) {
      Chain chain;
      {
        SpinLockHolder holder(lock_);
        if (stack_.empty()) return;
        chain = Pop();
      }
      central_->Insert(chain);
    }
  }

  bool Keep(Chain chain, size_t few = SIZE_MAX) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    if (objects_ >= few) return false;
    if (stack_.size() >= limit_) {
      ++overflows_;
      if (misses_since_overflow_ > 0) limit_ = std::min(limit_ * 2, max_chains_);
      misses_since_overflow_ = 0;
    }
    if (stack_.size() >= limit_ || !stack_.Push(chain, *arrays_)) return false;
    objects_ += chain.count;
    return true;
  }

  Chain Pop() TCMALLOC_REQUIRES(lock_) {
    const Chain chain = stack_.Pop();
    objects_ -= chain.count;
    low_water_ = std::min(low_water_, stack_.size());
    return chain;
  }

  SpinLock lock_{LockRank::kTransferCache};
  uint32_t batch_ = 0;
  uint32_t shortest_ = 0;  // chain that is kept
  uint32_t max_chains_ = 0;
  Central* central_ = nullptr;
  ChainArrays* arrays_ = nullptr;
  uint32_t limit_ TCMALLOC_GUARDED_BY(lock_) = 0;
  uint32_t misses_since_overflow_ TCMALLOC_GUARDED_BY(lock_) = 0;
  uint32_t low_water_ TCMALLOC_GUARDED_BY(lock_) = 0;  // fewest chains since ReturnUnused
  ChainStack stack_ TCMALLOC_GUARDED_BY(lock_);
  size_t objects_ TCMALLOC_GUARDED_BY(lock_) = 0;
  size_t hits_ TCMALLOC_GUARDED_BY(lock_) = 0;
  size_t misses_ TCMALLOC_GUARDED_BY(lock_) = 0;
  size_t overflows_ TCMALLOC_GUARDED_BY(lock_) = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_TRANSFER_TRANSFER_CACHE_H_
