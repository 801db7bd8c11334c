// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Whole batches of one size class on their way from one thread to another.

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

// A bounded stack of full batches in front of a central free list. A batch is moved as a whole:
// one lock, and no object is touched. Chains shorter than a batch pass through.
//
// The bound follows use. It starts small; an insert that finds the stack full after fetches found
// it empty shows that batches swing between threads by more than the bound, and doubles it, up to
// the bytes that Initialize was given. Thread safe.
template <BatchSource Central>
class TransferCache {
 public:
  constexpr TransferCache() = default;

  // `batch` objects make a full chain; at most `max_chains` are kept.
  void Initialize(Central& central, ChainArrays& arrays, uint32_t batch, uint32_t max_chains) {
    central_ = &central;
    arrays_ = &arrays;
    batch_ = batch;
    max_chains_ = max_chains;
    limit_ = std::min(kFirstLimit, max_chains);
  }

  uint32_t batch() const { return batch_; }

  Chain Fetch(uint32_t wanted) TCMALLOC_EXCLUDES(lock_) {
    // A thread that asks for less has only begun to use the class; a batch would be too much.
    if (wanted * 2 >= batch_) {
      SpinLockHolder holder(lock_);
      if (!stack_.empty()) {
        ++hits_;
        return stack_.Pop();
      }
      ++misses_;
      ++misses_since_overflow_;
    }
    return central_->Fetch(wanted);
  }

  void Insert(Chain chain) TCMALLOC_EXCLUDES(lock_) {
    if (chain.count == batch_ && Keep(chain)) return;
    central_->Insert(chain);
  }

  // Hands everything to the central free list. Returns the number of objects.
  size_t Drain() TCMALLOC_EXCLUDES(lock_) {
    size_t objects = 0;
    while (true) {
      Chain chain;
      {
        SpinLockHolder holder(lock_);
        if (stack_.empty()) return objects;
        chain = stack_.Pop();
      }
      objects += chain.count;
      central_->Insert(chain);
    }
  }

  // Calls f(chain) for each chain, under the lock.
  template <typename F>
  void ForEachChain(F f) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    for (uint32_t i = 0; i < stack_.size(); ++i) f(stack_.at(i));
  }

  TransferStats stats() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    return {stack_.size(), size_t{stack_.size()} * batch_, limit_, hits_, misses_, overflows_};
  }

  void CheckInvariants() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    TCMALLOC_CHECK_LE(stack_.size(), limit_);
    TCMALLOC_CHECK_LE(limit_, max_chains_);
    for (uint32_t i = 0; i < stack_.size(); ++i) TCMALLOC_CHECK_EQ(stack_.at(i).count, batch_);
  }

  SpinLock& lock() TCMALLOC_RETURN_CAPABILITY(lock_) { return lock_; }

 private:
  static constexpr uint32_t kFirstLimit = 4;

  bool Keep(Chain chain) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    if (stack_.size() >= limit_) {
      ++overflows_;
      if (misses_since_overflow_ > 0) limit_ = std::min(limit_ * 2, max_chains_);
      misses_since_overflow_ = 0;
    }
    return stack_.size() < limit_ && stack_.Push(chain, *arrays_);
  }

  SpinLock lock_{LockRank::kTransferCache};
  uint32_t batch_ = 0;
  uint32_t max_chains_ = 0;
  Central* central_ = nullptr;
  ChainArrays* arrays_ = nullptr;
  uint32_t limit_ TCMALLOC_GUARDED_BY(lock_) = 0;
  uint32_t misses_since_overflow_ TCMALLOC_GUARDED_BY(lock_) = 0;
  ChainStack stack_ TCMALLOC_GUARDED_BY(lock_);
  size_t hits_ TCMALLOC_GUARDED_BY(lock_) = 0;
  size_t misses_ TCMALLOC_GUARDED_BY(lock_) = 0;
  size_t overflows_ TCMALLOC_GUARDED_BY(lock_) = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_TRANSFER_TRANSFER_CACHE_H_
