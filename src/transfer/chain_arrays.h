// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The memory of arrays that hold chains or addresses of objects.

#ifndef TCMALLOC_TRANSFER_CHAIN_ARRAYS_H_
#define TCMALLOC_TRANSFER_CHAIN_ARRAYS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "base/attributes.h"
#include "base/spin_lock.h"
#include "pages/metadata_arena.h"
#include "transfer/packed_chain.h"

namespace tcmalloc {

// An array of two slots or more that nobody uses. Those of one length are linked into groups, and
// the first of each group is linked to the first of the next.
struct FreeArray {
  FreeArray* next;
  FreeArray* next_group = nullptr;
};

// Arrays of PackedChain that were given back on each CPU, so that CPUs which take arrays and give
// them back all the time share no lock. Thread safe, whatever `cpu` says. All zero at first, so
// that it can lie in .bss.
class SpareArrays {
 public:
  // The number of arrays in a group that a CPU gets if it has none, or gives up if it has enough.
  static constexpr uint8_t kGroup = 16;

  constexpr SpareArrays() = default;

  // Returns an array of 1 << log2 slots that was given back on the CPU, or null.
  PackedChain* Take(uint32_t cpu, int log2) {
    OfCpu& spares = cpus_[cpu % kCpus];
    if (log2 > kMaxLog2 || !TryLock(spares)) return nullptr;
    FreeArray* array = spares.free[log2];
    if (array != nullptr) {
      spares.free[log2] = array->next;
      --spares.counts[log2];
    }
    Unlock(spares);
    return reinterpret_cast<PackedChain*>(array);
  }

  // Keeps an array. If the CPU has enough then, it gives up the group *excess. Returns false if
  // the CPU cannot keep the array.
  bool Keep(uint32_t cpu, PackedChain* array, int log2, FreeArray** excess) {
    OfCpu& spares = cpus_[cpu % kCpus];
    if (log2 > kMaxLog2 || !TryLock(spares)) return false;
    spares.free[log2] = new (array) FreeArray{spares.free[log2]};
    ++spares.counts[log2];
    if (spares.counts[log2] > kMostSpares) *excess = TakeGroup(spares, log2);
    Unlock(spares);
    return true;
  }

  // Keeps a group. Returns false if the CPU cannot keep it.
  bool KeepGroup(uint32_t cpu, FreeArray* group, int log2) {
    OfCpu& spares = cpus_[cpu % kCpus];
    if (log2 > kMaxLog2 || !TryLock(spares)) return false;
    const bool keeps = spares.counts[log2] <= kMostSpares - kGroup;
    if (keeps) {
      FreeArray* last = group;
      while (last->next != nullptr) last = last->next;
      last->next = spares.free[log2];
      spares.free[log2] = group;
      spares.counts[log2] = static_cast<uint8_t>(spares.counts[log2] + kGroup);
    }
    Unlock(spares);
    return keeps;
  }

 private:
  // CPUs with the same number modulo this share arrays.
  static constexpr uint32_t kCpus = 16;
  // Arrays for batches, which have at most 255 objects, are no longer.
  static constexpr int kMaxLog2 = 8;
  // Of each length. All of a CPU have at most 128 KiB.
  static constexpr uint8_t kMostSpares = 32;

  struct alignas(64) OfCpu {
    std::atomic<bool> busy{false};  // a thread of this CPU that was interrupted may have it
    uint8_t counts[kMaxLog2 + 1] = {};
    FreeArray* free[kMaxLog2 + 1] = {};
  };

  static bool TryLock(OfCpu& spares) {
    // Acquire pairs with the release in Unlock.
    return !spares.busy.exchange(true, std::memory_order_acquire);
  }
  static void Unlock(OfCpu& spares) {
    // Release pairs with the acquire in TryLock.
    spares.busy.store(false, std::memory_order_release);
  }

  // Requires that there are more arrays than a group has.
  TCMALLOC_NOINLINE static FreeArray* TakeGroup(OfCpu& spares, int log2) {
    FreeArray* group = spares.free[log2];
    FreeArray* last = group;
    for (uint8_t i = 1; i < kGroup; ++i) last = last->next;
    spares.free[log2] = last->next;
    spares.counts[log2] = static_cast<uint8_t>(spares.counts[log2] - kGroup);
    last->next = nullptr;
    return group;
  }

  OfCpu cpus_[kCpus] = {};
};

// Arrays of PackedChain by powers of two, recycled. Thread safe.
class ChainArrays {
 public:
  // `spares` may be null.
  constexpr explicit ChainArrays(MetadataArena& arena, SpareArrays* spares = nullptr)
      : arena_(arena), spares_(spares) {}

  // Returns an array of 1 << log2 slots, at least two, or null.
  TCMALLOC_NOINLINE PackedChain* Allocate(int log2) TCMALLOC_EXCLUDES(lock_) {
    if (FreeArray* array = TakeFree(log2)) return reinterpret_cast<PackedChain*>(array);
    PackedChain* array = New(log2);
    return TCMALLOC_LIKELY(array != nullptr) ? array : CutLarger(log2);
  }

  TCMALLOC_NOINLINE void Deallocate(PackedChain* array, int log2) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    singles_[log2] = new (array) FreeArray{singles_[log2]};
  }

  // Do the same for arrays that a CPU takes and gives back all the time.
  PackedChain* AllocateOn(uint32_t cpu, int log2) TCMALLOC_EXCLUDES(lock_) {
    if (spares_ == nullptr) return Allocate(log2);
    PackedChain* spare = spares_->Take(cpu, log2);
    return TCMALLOC_LIKELY(spare != nullptr) ? spare : AllocateGroupOn(cpu, log2);
  }
  void DeallocateOn(uint32_t cpu, PackedChain* array, int log2) TCMALLOC_EXCLUDES(lock_) {
    FreeArray* excess = nullptr;
    if (spares_ == nullptr || !spares_->Keep(cpu, array, log2, &excess)) {
      return Deallocate(array, log2);
    }
    if (TCMALLOC_UNLIKELY(excess != nullptr)) PutGroup(excess, log2);
  }

  static constexpr int kMaxLog2 = 20;

 private:
  static_assert(sizeof(FreeArray) == 2 * sizeof(PackedChain));

  PackedChain* New(int log2) {
    return static_cast<PackedChain*>(
        arena_.AllocateSpare(sizeof(PackedChain) << log2, alignof(PackedChain)));
  }

  // Returns a piece of a longer array that nobody uses, and keeps the others; null if there is
  // none. A program that ran out of memory with other sizes may have left only those.
  TCMALLOC_COLD PackedChain* CutLarger(int log2) TCMALLOC_EXCLUDES(lock_) {
    for (int larger = log2 + 1; larger <= kMaxLog2; ++larger) {
      auto* pieces = reinterpret_cast<PackedChain*>(TakeFree(larger));
      if (pieces == nullptr) continue;
      for (size_t i = 1; i < size_t{1} << (larger - log2); ++i) {
        Deallocate(pieces + (i << log2), log2);
      }
      return pieces;
    }
    return nullptr;
  }

  // Returns a free array, or null. Divides a group if there is nothing else.
  FreeArray* TakeFree(int log2) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    FreeArray*& singles = singles_[log2];
    if (singles == nullptr) singles = PopGroup(log2);
    FreeArray* array = singles;
    if (array != nullptr) singles = array->next;
    return array;
  }

  // Returns an array, and leaves the others of its group to the CPU.
  TCMALLOC_NOINLINE PackedChain* AllocateGroupOn(uint32_t cpu, int log2) TCMALLOC_EXCLUDES(lock_) {
    FreeArray* group = nullptr;
    {
      SpinLockHolder holder(lock_);
      group = PopGroup(log2);
    }
    if (group == nullptr) return Allocate(log2);
    if (!spares_->KeepGroup(cpu, group, log2)) PutGroup(group, log2);
    PackedChain* spare = spares_->Take(cpu, log2);
    return spare != nullptr ? spare : Allocate(log2);
  }

  FreeArray* PopGroup(int log2) TCMALLOC_REQUIRES(lock_) {
    FreeArray* group = groups_[log2];
    if (group != nullptr) groups_[log2] = group->next_group;
    return group;
  }
  TCMALLOC_NOINLINE void PutGroup(FreeArray* group, int log2) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    group->next_group = groups_[log2];
    groups_[log2] = group;
  }

  SpinLock lock_{LockRank::kChainArrays};
  MetadataArena& arena_;
  SpareArrays* const spares_;
  FreeArray* singles_[kMaxLog2 + 1] TCMALLOC_GUARDED_BY(lock_) = {};
  FreeArray* groups_[kMaxLog2 + 1] TCMALLOC_GUARDED_BY(lock_) = {};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_TRANSFER_CHAIN_ARRAYS_H_
