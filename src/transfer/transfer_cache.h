// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Chains of one size class, and arrays of objects, on their way from one thread to another.

#ifndef TCMALLOC_TRANSFER_TRANSFER_CACHE_H_
#define TCMALLOC_TRANSFER_TRANSFER_CACHE_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/bits.h"
#include "base/spin_lock.h"
#include "pages/free_link.h"
#include "system/rseq.h"
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
// Slabs hold addresses, so what leaves a slab may come as an array, which goes to the next slab
// untouched as well. It is linked where somebody else needs its objects. An array has room for one
// batch, and belongs to whoever has it.
//
// A thread gets what was put away last on the CPU on which it runs, because that CPU's caches have
// its lines. If there is nothing of that CPU, the thread gets what was put away first, because
// nobody may have use for that on the other CPUs. docs/decisions/0107-pairs-and-steps.md.
//
// The bound follows use and starts small. If an insert finds the stack full after fetches found it
// empty, batches swing between threads by more than the bound. The bound then doubles, up to the
// bytes that Initialize was given. Thread safe.
//
// `kCurrentCpu` returns the number of the CPU on which the thread runs, or a constant.
template <ChainSource Central, uint32_t (*kCurrentCpu)() = CurrentCpuOrZero>
class TransferCache {
 public:
  constexpr TransferCache() = default;

  // `batch` objects make a full chain; at most `max_chains` are kept.
  void Initialize(Central& central, ChainArrays& arrays, const LinkCodec& codec, uint32_t batch,
                  uint32_t max_chains) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    central_ = &central;
    arrays_ = &arrays;
    codec_ = &codec;
    batch_ = batch;
    shortest_ = (batch + 3) / 4;
    max_chains_ = max_chains;
    limit_ = std::min(kFirstLimit, max_chains);
  }

  uint32_t batch() const { return batch_; }

  // Hands on a chain from here whole, though it may hold more than was wanted: its objects are free
  // already, and splitting it would touch them.
  TCMALLOC_NOINLINE Chain Fetch(uint32_t wanted) TCMALLOC_EXCLUDES(lock_) {
    const PackedChain kept = FetchKept();
    return kept.count() > 0 ? ToChain(kept) : central_->Fetch(wanted);
  }

  // Returns a chain or an array that was inserted, or an empty one if none is kept.
  TCMALLOC_NOINLINE PackedChain FetchKept() TCMALLOC_EXCLUDES(lock_) {
    passed_.store(0, std::memory_order_relaxed);
    // Threads that find nothing need not wait for each other to see that.
    if (!stack_.empty()) {
      const uint32_t cpu = kCurrentCpu();
      SpinLockHolder holder(lock_);
      if (!stack_.empty()) {
        ++hits_;
        return NotePopped(stack_.PopOfCpu(cpu));
      }
    }
    misses_.fetch_add(1, std::memory_order_relaxed);
    return PackedChain();
  }

  // Objects that came through here were all handed out before, so only the central list has fresh
  // ones.
  Chain FetchLine() { return central_->FetchLine(); }

  TCMALLOC_NOINLINE void Insert(Chain chain) TCMALLOC_EXCLUDES(lock_) {
    InsertWhileFew(PackedChain(chain), SIZE_MAX);
  }

  // Keeps the chain or the array only where fewer than `few` objects are kept, as is right for
  // scattered ones. After a long run of them between two fetches nothing is kept of them, and the
  // other objects go as well: what is allocated next shall come from the spans, in order.
  TCMALLOC_NOINLINE void InsertWhileFew(PackedChain chain, size_t few) TCMALLOC_EXCLUDES(lock_) {
    if (chain.count() >= shortest_ && Keep(chain, few)) return;
    central_->Insert(ToChain(chain));
    if (few != SIZE_MAX && !stack_.empty() && IsLongRun(few)) Drain();
  }

  // Returns an array with room for one batch, or null if no memory can be had.
  TCMALLOC_NOINLINE void** NewArray() {
    return reinterpret_cast<void**>(arrays_->AllocateOn(kCurrentCpu(), Log2Ceil(batch_)));
  }
  TCMALLOC_NOINLINE void DeleteArray(void** array) {
    arrays_->DeallocateOn(kCurrentCpu(), reinterpret_cast<PackedChain*>(array), Log2Ceil(batch_));
  }

  // Pass by the chains that are kept here. The central list lets spans drain by serving from the
  // fullest.
  TCMALLOC_NOINLINE void InsertPast(Chain chain) { central_->Insert(chain); }
  Chain FetchPast(uint32_t wanted) { return central_->Fetch(wanted); }
  uint32_t FetchArray(void** out, uint32_t wanted) { return central_->FetchArray(out, wanted); }
  bool IsSparse() { return central_->IsSparse(); }
  TCMALLOC_ALWAYS_INLINE size_t SpanBytes() { return central_->SpanBytes(); }

  // Hands half of the chains that were not needed since the last call to the central free list.
  void ReturnUnused() TCMALLOC_EXCLUDES(lock_) {
    // Caches ask often, and of all classes.
    if (stack_.empty()) return;
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

  // Calls f(chain) for each chain, packed, under the lock.
  template <typename F>
  void ForEachChain(F f) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    for (uint32_t i = 0; i < stack_.size(); ++i) f(stack_.packed_at(i));
  }
  // Calls f(chain) for each chain as long as it returns true; for none if the lock is held.
  template <typename F>
  void TryForEachChain(F f) TCMALLOC_EXCLUDES(lock_) {
    if (!lock_.TryLock()) return;
    for (uint32_t i = stack_.size(); i > 0 && f(stack_.packed_at(i - 1)); --i) {
    }
    lock_.Unlock();
  }

  TransferStats stats() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    return {stack_.size(),
            objects_,
            limit_,
            hits_,
            misses_.load(std::memory_order_relaxed),
            overflows_.load(std::memory_order_relaxed)};
  }

  void CheckInvariants() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    TCMALLOC_CHECK_LE(stack_.size(), limit_);
    TCMALLOC_CHECK_LE(limit_, max_chains_);
    size_t objects = 0;
    for (uint32_t i = 0; i < stack_.size(); ++i) {
      TCMALLOC_CHECK_LE(shortest_, stack_.packed_at(i).count());
      objects += stack_.packed_at(i).count();
    }
    TCMALLOC_CHECK_EQ(objects, objects_);
  }

 private:
  static constexpr uint32_t kFirstLimit = 4;
  static constexpr size_t kLongRun = 32;  // times as many objects as are few

  // Hands `count` chains, or all if there are fewer, to the central free list.
  void Return(uint32_t count) TCMALLOC_EXCLUDES(lock_) {
    for (; count > 0; --count) {
      PackedChain chain;
      {
        SpinLockHolder holder(lock_);
        if (stack_.empty()) return;
        chain = NotePopped(stack_.PopPacked());
      }
      central_->Insert(ToChain(chain));
    }
  }

  // Links the objects of an array in their order, and deletes it.
  TCMALLOC_NOINLINE Chain Link(ObjectArray array) {
    Chain chain{codec_->end, array.count};
    for (uint32_t i = array.count; i-- > 0;) {
      codec_->Link(array.objects[i], chain.head);
      chain.head = ReferenceTo(array.objects[i]);
    }
    DeleteArray(array.objects);
    return chain;
  }
  Chain ToChain(PackedChain chain) {
    return chain.is_array() ? Link(chain.UnpackArray()) : chain.Unpack();
  }

  bool Keep(PackedChain chain, size_t few) TCMALLOC_EXCLUDES(lock_) {
    // Threads that find no room need not wait for each other to see that, unless they count.
    if (stack_.size() >= max_chains_ && few == SIZE_MAX) {
      overflows_.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    const PackedChain placed = chain.OnCpu(kCurrentCpu());
    SpinLockHolder holder(lock_);
    if (few != SIZE_MAX && !KeepsOfFew(chain.count(), few)) return false;
    if (stack_.size() >= limit_) NoteOverflow();
    if (stack_.size() >= limit_ || !stack_.Push(placed, *arrays_)) return false;
    objects_ += chain.count();
    return true;
  }

  // Returns true if fewer than `few` objects are kept and no long run of others has passed since
  // the last fetch. Else counts those that pass now.
  bool KeepsOfFew(uint32_t count, size_t few) TCMALLOC_REQUIRES(lock_) {
    if (IsLongRun(few)) return false;
    if (objects_ < few) return true;
    passed_.fetch_add(count, std::memory_order_relaxed);
    return false;
  }
  bool IsLongRun(size_t few) const {
    return passed_.load(std::memory_order_relaxed) >= kLongRun * few;
  }

  void NoteOverflow() TCMALLOC_REQUIRES(lock_) {
    overflows_.fetch_add(1, std::memory_order_relaxed);
    const size_t misses = misses_.load(std::memory_order_relaxed);
    if (misses > misses_at_overflow_) limit_ = std::min(limit_ * 2, max_chains_);
    misses_at_overflow_ = misses;
  }

  PackedChain NotePopped(PackedChain chain) TCMALLOC_REQUIRES(lock_) {
    objects_ -= chain.count();
    low_water_ = std::min(low_water_, stack_.size());
    return chain;
  }

  SpinLock lock_{LockRank::kTransferCache};
  uint32_t batch_ = 0;
  uint32_t shortest_ = 0;  // chain that is kept
  uint32_t max_chains_ = 0;
  Central* central_ = nullptr;
  ChainArrays* arrays_ = nullptr;
  const LinkCodec* codec_ = nullptr;
  uint32_t limit_ TCMALLOC_GUARDED_BY(lock_) = 0;
  size_t misses_at_overflow_ TCMALLOC_GUARDED_BY(lock_) = 0;
  uint32_t low_water_ TCMALLOC_GUARDED_BY(lock_) = 0;  // fewest chains since ReturnUnused
  ChainStack stack_;                                   // changes under the lock
  size_t objects_ TCMALLOC_GUARDED_BY(lock_) = 0;
  size_t hits_ TCMALLOC_GUARDED_BY(lock_) = 0;
  std::atomic<size_t> passed_{0};  // objects of the run that were not kept
  std::atomic<size_t> misses_{0};
  std::atomic<size_t> overflows_{0};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_TRANSFER_TRANSFER_CACHE_H_
