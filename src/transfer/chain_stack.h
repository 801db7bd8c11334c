// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A stack of chains, kept outside of the objects so that whole chains move untouched. The slabs of
// CPUs use arrays of objects in place of chains.

#ifndef TCMALLOC_TRANSFER_CHAIN_STACK_H_
#define TCMALLOC_TRANSFER_CHAIN_STACK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "base/relaxed.h"
#include "base/spin_lock.h"
#include "pages/free_link.h"
#include "pages/metadata_arena.h"

namespace tcmalloc {

// Addresses of `count` free objects of one size class, outside of them.
struct ObjectArray {
  void** objects = nullptr;
  uint32_t count = 0;
};

// A chain or an array of objects in one word, and the CPU on which it was put away. The reference
// to the first object of a chain, or to an array, uses bit 63 and, below kAddressBits, bits 0 to
// 44; the count and the CPU take the bits between. Bit 63, which is set in both, is cleared for an
// array.
class PackedChain {
 public:
  // CPUs with the same number modulo this are not told apart.
  static constexpr uint32_t kCpus = 64;
  static constexpr uint32_t kMaxCount = (1U << 12) - 1;

  constexpr PackedChain() = default;
  explicit PackedChain(Chain chain) : word_(Pack(chain.head, chain.count)) {
    TCMALLOC_DCHECK(!is_array());
  }
  explicit PackedChain(ObjectArray array)
      : word_(Pack(ReferenceTo(array.objects), array.count) & ~kChainBit) {}

  bool is_array() const { return (word_ & kChainBit) == 0; }
  uint32_t count() const { return static_cast<uint32_t>(word_ >> kCountShift) & kMaxCount; }

  // Returns the same chain or array, put away on CPU number `cpu`.
  PackedChain OnCpu(uint32_t cpu) const {
    PackedChain placed = *this;
    placed.word_ = (word_ & ~kCpuBits) | uint64_t{cpu % kCpus} << kCpuShift;
    return placed;
  }
  bool IsOnCpu(uint32_t cpu) const { return (word_ & kCpuBits) >> kCpuShift == cpu % kCpus; }

  // Requires a chain.
  Chain Unpack() const { return {reference(), count()}; }
  // Requires an array.
  ObjectArray UnpackArray() const { return {static_cast<void**>(ObjectAt(reference())), count()}; }

 private:
  static constexpr int kCountShift = 45;
  static constexpr uint64_t kCountBits = uint64_t{kMaxCount} << kCountShift;
  static constexpr int kCpuShift = 57;
  static constexpr uint64_t kCpuBits = uint64_t{kCpus - 1} << kCpuShift;
  static constexpr uint64_t kChainBit = uint64_t{1} << 63;

  static uint64_t Pack(ObjectReference reference, uint32_t count) {
    TCMALLOC_DCHECK_LE(count, kMaxCount);
    return reference | uint64_t{count} << kCountShift;
  }
  ObjectReference reference() const { return word_ & ~(kCountBits | kCpuBits); }

  uint64_t word_ = 0;
};

// Arrays of PackedChain that were given back on each CPU, so that CPUs which take arrays and give
// them back all the time share no lock. Thread safe, whatever `cpu` says. All zero at first, so
// that it can lie in .bss.
class SpareArrays {
 public:
  constexpr SpareArrays() = default;

  // Returns an array of 1 << log2 slots that was given back on the CPU, or null.
  PackedChain* Take(uint32_t cpu, int log2) {
    OfCpu& spares = cpus_[cpu % kCpus];
    if (log2 > kMaxLog2 || !TryLock(spares)) return nullptr;
    Free* array = spares.free[log2];
    if (array != nullptr) {
      spares.free[log2] = array->next;
      --spares.counts[log2];
    }
    Unlock(spares);
    return reinterpret_cast<PackedChain*>(array);
  }

  // Returns false if the CPU has enough.
  bool Keep(uint32_t cpu, PackedChain* array, int log2) {
    OfCpu& spares = cpus_[cpu % kCpus];
    if (log2 > kMaxLog2 || !TryLock(spares)) return false;
    const bool keeps = spares.counts[log2] < kMostSpares;
    if (keeps) {
      spares.free[log2] = new (array) Free{spares.free[log2]};
      ++spares.counts[log2];
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

  struct Free {
    Free* next;
  };
  struct alignas(64) OfCpu {
    std::atomic<bool> busy{false};  // a thread of this CPU that was interrupted may have it
    uint8_t counts[kMaxLog2 + 1] = {};
    Free* free[kMaxLog2 + 1] = {};
  };

  static bool TryLock(OfCpu& spares) {
    // Acquire pairs with the release in Unlock.
    return !spares.busy.exchange(true, std::memory_order_acquire);
  }
  static void Unlock(OfCpu& spares) {
    // Release pairs with the acquire in TryLock.
    spares.busy.store(false, std::memory_order_release);
  }

  OfCpu cpus_[kCpus] = {};
};

// Arrays of PackedChain by powers of two, recycled. Thread safe.
class ChainArrays {
 public:
  // `spares` may be null.
  constexpr explicit ChainArrays(MetadataArena& arena, SpareArrays* spares = nullptr)
      : arena_(arena), spares_(spares) {}

  // Returns an array of 1 << log2 slots, or null.
  TCMALLOC_NOINLINE PackedChain* Allocate(int log2) TCMALLOC_EXCLUDES(lock_) {
    {
      SpinLockHolder holder(lock_);
      if (Free* array = free_[log2]) {
        free_[log2] = array->next;
        return reinterpret_cast<PackedChain*>(array);
      }
    }
    return static_cast<PackedChain*>(
        arena_.Allocate(sizeof(PackedChain) << log2, alignof(PackedChain)));
  }

  TCMALLOC_NOINLINE void Deallocate(PackedChain* array, int log2) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    free_[log2] = new (array) Free{free_[log2]};
  }

  // Do the same for arrays that a CPU takes and gives back all the time.
  PackedChain* AllocateOn(uint32_t cpu, int log2) TCMALLOC_EXCLUDES(lock_) {
    PackedChain* spare = spares_ != nullptr ? spares_->Take(cpu, log2) : nullptr;
    return TCMALLOC_LIKELY(spare != nullptr) ? spare : Allocate(log2);
  }
  void DeallocateOn(uint32_t cpu, PackedChain* array, int log2) TCMALLOC_EXCLUDES(lock_) {
    if (spares_ == nullptr || !spares_->Keep(cpu, array, log2)) Deallocate(array, log2);
  }

  static constexpr int kMaxLog2 = 20;

 private:
  struct Free {
    Free* next;
  };

  SpinLock lock_{LockRank::kChainArrays};
  MetadataArena& arena_;
  SpareArrays* const spares_;
  Free* free_[kMaxLog2 + 1] TCMALLOC_GUARDED_BY(lock_) = {};
};

// A stack of chains from which PopOfCpu and DropOldest also remove others than the newest. Grows on
// demand and keeps its array until Clear gives it back. Not thread safe, except that others may
// read size() as an estimate.
class ChainStack {
 public:
  constexpr ChainStack() = default;

  uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Returns false if there was no memory to grow.
  [[nodiscard]] bool Push(PackedChain chain, ChainArrays& arrays) {
    if (TCMALLOC_UNLIKELY(size_ == capacity()) && !Grow(arrays)) return false;
    slots_[size_] = chain;
    size_ = size_ + 1;
    return true;
  }
  [[nodiscard]] bool Push(Chain chain, ChainArrays& arrays) {
    return Push(PackedChain(chain), arrays);
  }

  // Requires !empty().
  PackedChain PopPacked() {
    size_ = size_ - 1;
    return slots_[size_];
  }
  // Removes the newest of those that were put away on CPU number `cpu`, or the oldest of all if
  // there is none. Requires !empty().
  PackedChain PopOfCpu(uint32_t cpu) {
    uint32_t i = size_;
    while (--i > 0 && !slots_[i].IsOnCpu(cpu)) {
    }
    const PackedChain chain = slots_[i];
    size_ = size_ - 1;
    std::memmove(slots_ + i, slots_ + i + 1, (size_ - i) * sizeof(*slots_));
    return chain;
  }
  // Requires that there are chains alone.
  Chain Pop() { return PopPacked().Unpack(); }
  // Removes the oldest chains, which are at the bottom, from index 0 on. Requires count <= size().
  void DropOldest(uint32_t count) {
    if (count == 0) return;
    size_ = size_ - count;
    std::memmove(slots_, slots_ + count, size_ * sizeof(*slots_));
  }
  PackedChain packed_at(uint32_t i) const { return slots_[i]; }
  Chain at(uint32_t i) const { return slots_[i].Unpack(); }

  // Requires empty().
  void Clear(ChainArrays& arrays) {
    TCMALLOC_DCHECK(empty());
    if (slots_ != nullptr) arrays.Deallocate(slots_, log2_);
    slots_ = nullptr;
    log2_ = 0;
  }

 private:
  static constexpr int kFirstLog2 = 2;

  uint32_t capacity() const { return slots_ == nullptr ? 0 : uint32_t{1} << log2_; }

  TCMALLOC_NOINLINE bool Grow(ChainArrays& arrays) {
    const int log2 = slots_ == nullptr ? kFirstLog2 : log2_ + 1;
    if (log2 > ChainArrays::kMaxLog2) return false;
    PackedChain* slots = arrays.Allocate(log2);
    if (slots == nullptr) return false;
    if (slots_ != nullptr) {
      std::memcpy(slots, slots_, size_ * sizeof(*slots));
      arrays.Deallocate(slots_, log2_);
    }
    slots_ = slots;
    log2_ = log2;
    return true;
  }

  PackedChain* slots_ = nullptr;
  Relaxed<uint32_t> size_ = 0;
  int log2_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_TRANSFER_CHAIN_STACK_H_
