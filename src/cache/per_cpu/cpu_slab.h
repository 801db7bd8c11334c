// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// One slab, as it appears to threads on other CPUs.

#ifndef TCMALLOC_CACHE_PER_CPU_CPU_SLAB_H_
#define TCMALLOC_CACHE_PER_CPU_CPU_SLAB_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/check.h"
#include "base/spin_lock.h"
#include "cache/per_cpu/cpu_depot.h"
#include "cache/per_cpu/slab_layout.h"
#include "system/own_memory.h"

namespace tcmalloc {

// Ends every section that runs on CPU `cpu`, or on all CPUs if cpu < 0, before it returns. Sections
// that begin afterwards see everything that the caller wrote before. Returns false, promising
// nothing, if the kernel refuses.
using SectionFence = bool (*)(int cpu);

enum class SlabState : uint8_t {
  kUnused,  // zero, or on its way to open; all sections fail
  kOpen,    // the sections own every top
  kClosed,  // whoever holds the lock owns every top; all sections fail
};

// Guards one slab. Invariants, for each class c but 0:
//
//     open:           begin == kSlabBegin[c],   end == begin + capacity
//     closed:         begin == kClosedBegin,    end == 0
//     open or closed: kSlabBegin[c] <= index of the top <= kSlabBegin[c] + kMaxSlots[c]
//     always:         capacity <= kMaxSlots[c]
//
// The slab's table of classes begins with kClassBySize while it is open, and goes on with the rows
// of larger sizes that were listed since it was opened. All else is zero.
//
// A change of `end` takes effect in the next section; a class that holds more than its capacity
// keeps the objects and takes no more. All other changes need fences: a section may stop between
// any two of its loads for a long time, and would then combine an old top with a new `begin` or
// `end`. docs/subsystems/per-cpu.md tells why these fences are enough.
//
// Thread safe: methods that say so need the lock, the others may be called by anyone and give
// estimates. Nothing here allocates.
class alignas(64) CpuSlab {
 public:
  // `memory` is the slab's memory and `depot` its depot, all zero. The fence is called with
  // `fence_cpu`.
  CpuSlab(void* memory, CpuDepot* depot, SectionFence fence, int fence_cpu)
      : memory_(static_cast<char*>(memory)), depot_(depot), fence_(fence), fence_cpu_(fence_cpu) {}
  CpuSlab(const CpuSlab&) = delete;
  CpuSlab& operator=(const CpuSlab&) = delete;

  SpinLock& lock() TCMALLOC_RETURN_CAPABILITY(lock_) { return lock_; }
  SlabState state() const { return state_.load(std::memory_order_relaxed); }
  // The batches that found no slots. Its estimates need no lock, all else does.
  CpuDepot& depot() { return *depot_; }
  const CpuDepot& depot() const { return *depot_; }

  // Opens an unused slab, with no objects and all capacities 0. If the fence fails, returns false
  // and leaves the slab unused; the call may be repeated.
  [[nodiscard]] bool Initialize() TCMALLOC_REQUIRES(lock_);

  // Closes an open slab. If the fence fails, returns false and leaves it open.
  [[nodiscard]] bool Close() TCMALLOC_REQUIRES(lock_);

  // Opens a closed slab. Calls the fence only if the slab was drained; if the fence fails, returns
  // false and leaves the slab closed.
  [[nodiscard]] bool Open() TCMALLOC_REQUIRES(lock_);

  // Takes everything out of a closed slab: f(size_class, objects, count) for each class that holds
  // any, in the order of their slots. The objects bear the mark.
  template <typename F>
  void Drain(F f) TCMALLOC_REQUIRES(lock_) {
    for (size_t c = 1; c < kSizeClassCount; ++c) Drain(static_cast<uint8_t>(c), f);
  }
  // Does so with one class.
  template <typename F>
  void Drain(uint8_t c, F f) TCMALLOC_REQUIRES(lock_) {
    TCMALLOC_DCHECK(state() == SlabState::kClosed);
    const uint32_t count = CountObjects(c);
    if (count == 0) return;
    SetEmpty(c);
    tops_changed_ = true;
    f(c, static_cast<void* const*>(DecodeSlots(c, count)), count);
  }

  // Calls f(size_class, object) for each object, those of a class that were freed last first, as
  // long as it returns true. While other threads use the slab, may name an object that was taken
  // out a moment ago.
  template <typename F>
  void ForEachObject(F f) {
    for (size_t i = 1; i < kSizeClassCount; ++i) {
      const auto c = static_cast<uint8_t>(i);
      for (uint32_t j = CountObjects(c); j > 0; --j) {
        if (!f(c, SlotObject(slot(kSlabBegin[c] + j - 1)))) return;
      }
    }
  }

  // Forgets the contents of the slab in any state. Needs no lock, but requires that the running
  // thread is the only one of the process and outside the sections. Touches one page of a slab in
  // use.
  void AbandonObjects();

  // The sizes in a row of the table, and those that may be listed: 64 KiB is the last power of two.
  static constexpr size_t kRowSizes = 4096;
  static constexpr size_t kListedSizes = 17 * kRowSizes;

  // Lets malloc's section look up the sizes near `size`, which is below kListedSizes, until the
  // slab is closed. That touches a page.
  void ListSizes(size_t size) TCMALLOC_REQUIRES(lock_);
  // Returns true if malloc's section looks up `size`. An estimate; needs no lock.
  bool Lists(size_t size) const {
    return size < kClassBySize.size() ||
           (size < kListedSizes &&
            (rows_.load(std::memory_order_relaxed) >> size / kRowSizes & 1) != 0);
  }

  // Sets the number of objects of class c up to which free may add more; at most kMaxSlots[c].
  // Requires an initialized slab.
  void SetCapacity(uint8_t c, uint32_t capacity) TCMALLOC_REQUIRES(lock_);
  uint32_t capacity(uint8_t c) const { return limits(c).capacity.load(std::memory_order_relaxed); }

  uint32_t CountObjects(uint8_t c) const {
    const uint32_t index = SlotIndex(top(c).load(std::memory_order_relaxed));
    return index > kSlabBegin[c] ? index - kSlabBegin[c] : 0;
  }

  // Copies the addresses of up to n objects of class c, the ones freed last, in the order of the
  // frees. Returns the number copied. While other threads run this is an estimate: it may name
  // objects that were taken out a moment ago.
  uint32_t CopyNewest(uint8_t c, void** out, uint32_t n) const;

  // Returns true if `object` lies in the slab. While other threads run, may miss an object that
  // moves, and may find one that was taken out a moment ago.
  bool Holds(const void* object, uint8_t c) const;

  // Checks the slots too if the slab is closed.
  void CheckInvariants() const TCMALLOC_REQUIRES(lock_);

 private:
  std::atomic<SlotWord>& top(uint8_t c) const {
    return reinterpret_cast<std::atomic<SlotWord>*>(memory_ + TCM_TOP)[c];
  }
  ClassLimits& limits(uint8_t c) const {
    return reinterpret_cast<ClassLimits*>(memory_ + TCM_LIMITS)[c];
  }
  std::atomic<SlotWord>* slots() const { return reinterpret_cast<std::atomic<SlotWord>*>(memory_); }
  SlotWord slot(size_t index) const { return slots()[index].load(std::memory_order_relaxed); }
  void SetEmpty(uint8_t c) TCMALLOC_REQUIRES(lock_);
  void** DecodeSlots(uint8_t c, uint32_t count) TCMALLOC_REQUIRES(lock_);
  char* classes() const { return memory_ + TCM_SLAB_CLASSES; }
  void FillTable() TCMALLOC_REQUIRES(lock_);
  void ClearTable() TCMALLOC_REQUIRES(lock_);
  void SetBegins() TCMALLOC_REQUIRES(lock_);
  void SetEnds() TCMALLOC_REQUIRES(lock_);
  TCMALLOC_NOINLINE void CountUsed(size_t begin, size_t end);
  TCMALLOC_NOINLINE void CountUsedSlots(uint8_t c, size_t count);
  void CountFirstUse() TCMALLOC_REQUIRES(lock_);
  void CheckClass(uint8_t c) const TCMALLOC_REQUIRES(lock_);

  SpinLock lock_{LockRank::kCpuSlab};
  std::atomic<SlabState> state_{SlabState::kUnused};
  std::atomic<uint32_t> rows_{0};  // bit r: the sizes from r * kRowSizes on are in the table
  bool tops_changed_ TCMALLOC_GUARDED_BY(lock_) = false;  // since the slab was closed
  char* const memory_;
  CpuDepot* const depot_;
  const SectionFence fence_;
  const int fence_cpu_;
  UsedPages<kSlabBytes> used_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_CPU_CPU_SLAB_H_
