// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The number of bytes that each slab may hold, and of objects of each class.

#ifndef TCMALLOC_CACHE_PER_CPU_SLAB_BUDGET_H_
#define TCMALLOC_CACHE_PER_CPU_SLAB_BUDGET_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "cache/per_cpu/class_set.h"
#include "cache/per_cpu/cpu_slab.h"
#include "size_class/size_classes.h"
#include "transfer/chain_arrays.h"
#include "transfer/packed_chain.h"

namespace tcmalloc {

// Invariant: claimed == sum of capacity * size over the classes of the slab, and of the bytes of
// the batches that its depot keeps. It exceeds the limit only after another slab took a part of
// that, or after the limit was lowered.
//
// The capacity of a class begins at 0, doubles with each miss up to one batch, and then grows by a
// batch with each miss. Where the limit leaves no room, other classes give up half of the capacity
// that they do not use at the moment. If that does not suffice, those that miss far less often give
// up half of all, or those that did not miss at all half of their batches.
//
// The classes in `excess` hold objects beyond a capacity that was taken from them, or batches that
// have to go. The caller takes these out after it has released the slab's lock.
//
// Guarded by the slab's lock, which every method with a slab requires; the others are thread safe.
class alignas(64) SlabBudget {
 public:
  explicit SlabBudget(int64_t limit) : limit_(limit), first_limit_(limit) {}

  // Raises the capacity of class `c` after a miss, to at least `least` objects if the limit leaves
  // room for them. Returns the new capacity.
  uint32_t Grow(CpuSlab& slab, uint8_t c, uint32_t batch, uint32_t least, ClassSet* excess)
      TCMALLOC_REQUIRES(slab.lock());

  // Counts a miss of class `c`.
  void NoteMiss(uint8_t c) {
    misses_.store(misses() + 1, std::memory_order_relaxed);
    uint8_t& now = misses_of_[c].now;
    if (now < UINT8_MAX) ++now;
    for (auto& objects : objects_at_search_) objects[c] = kMissed;
  }
  // Counts bytes that were allocated without a miss, as much as the clock of a thread lets pass.
  // Returns true if they count as a miss of no class. Needs no lock; a tick or a miss may get lost.
  bool NoteTick() {
    const uint32_t ticks = ticks_.load(std::memory_order_relaxed) + 1;
    ticks_.store(ticks, std::memory_order_relaxed);
    if (ticks % kTicksForMiss != 0) return false;
    misses_.store(misses() + 1, std::memory_order_relaxed);
    return true;
  }

  // Puts a batch of class `c` into the depot. If the limit leaves no room for it, lets the oldest
  // of the class go, so that the order of the others stays. Returns false if it cannot be kept.
  // Notes if the class outgrows the slab.
  [[nodiscard]] bool Keep(CpuSlab& slab, uint8_t c, ObjectArray batch, Scatter scatter,
                          ChainArrays& arrays) TCMALLOC_REQUIRES(slab.lock());
  // Gives back what was claimed for batches that are not kept any more.
  void Unkeep(int64_t bytes) {
    kept_ -= bytes;
    Claim(-bytes);
  }

  // Returns the number of objects of class `c` beyond its capacity. An estimate; needs no lock.
  static uint32_t CountExcess(const CpuSlab& slab, uint8_t c) {
    const uint32_t objects = slab.CountObjects(c);
    return objects - std::min(objects, slab.capacity(c));
  }

  // Changes the limit given to the constructor. Parts already exchanged with other slabs stay where
  // they are, but become smaller by as much as the limit does. Called by one thread at a time,
  // which needs no lock.
  void SetLimit(int64_t limit);

  // Returns true once every few misses and ticks.
  bool SweepIsDue() const { return misses() % kMissesPerSweep == 0; }
  // Takes half of their capacity from classes that were not used since the last call, and batches
  // that are not needed from all classes; now and then also half of the objects that were in the
  // slots at every call.
  void ShrinkUnused(CpuSlab& slab, ClassSet* excess) TCMALLOC_REQUIRES(slab.lock());
  // Lets batches go that are not needed.
  void LetGoUnneeded(CpuSlab& slab, ClassSet* excess) TCMALLOC_REQUIRES(slab.lock());
  // Lets the batches of each class go that holds many and did not need them since the last call.
  void LetGoIdle(CpuSlab& slab, ClassSet* excess) TCMALLOC_REQUIRES(slab.lock());
  // Lets all batches go.
  void LetGoAll(CpuSlab& slab, ClassSet* excess) TCMALLOC_REQUIRES(slab.lock());
  // Who looks for idle classes, each by itself: who needs memory, and who gives it back by time.
  enum class Search : uint8_t { kForGrowth, kByTime };

  // Returns the classes that did not miss since the last such search and have as many objects in
  // slots as then, if these are kManyIdleBytes. A class that is in use may have, too.
  [[nodiscard]] ClassSet FindIdle(CpuSlab& slab, Search search) TCMALLOC_REQUIRES(slab.lock());
  // Says how many bytes of the heap there are for each slab in use.
  void NoteHeap(int64_t bytes) {
    share_of_heap_.store(bytes / kShareInSlots, std::memory_order_relaxed);
  }
  // Takes all capacity from class `c`.
  void Reset(CpuSlab& slab, uint8_t c) TCMALLOC_REQUIRES(slab.lock());
  // Takes all capacity from all classes.
  void Reset(CpuSlab& slab) TCMALLOC_REQUIRES(slab.lock());

  // Returns true if there was no miss since the last call, and the slab holds as much as then. An
  // estimate; needs no lock.
  bool WasIdle(const CpuSlab& slab);
  // Takes a part of `other`'s limit if this slab was short of room lately, and `other` is idle, was
  // not short of room, or may hold more than this one.
  void TakeFrom(SlabBudget& other, bool idle);

  void CheckInvariants(const CpuSlab& slab) const;

  int64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  int64_t claimed() const { return claimed_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kMissesPerSweep = 256;
  static constexpr int64_t kLeastStep = 64 << 10;
  // The sweeps after which a class gives up objects that were there all the time, if these are
  // kLeastUnneeded bytes.
  static constexpr uint32_t kSweepsPerLook = 4;
  static constexpr int64_t kLeastUnneeded = 4 << 10;
  // The most batches that go at once to make room for another one.
  static constexpr uint32_t kMostLetGo = 8;

  // All slots of a slab may hold so many bytes, and more in a large heap: its share of a part of
  // that, but at most half of its own limit.
  static constexpr int64_t kMostInSlots = 4 << 20;
  static constexpr int64_t kShareInSlots = 4;
  int64_t most_in_slots() const {
    const int64_t share = share_of_heap_.load(std::memory_order_relaxed);
    const int64_t half = first_limit_.load(std::memory_order_relaxed) / 2;
    return std::max(std::min(share, half), kMostInSlots);
  }

  // The ticks that count as a miss.
  static constexpr uint32_t kTicksForMiss = 16;

  // More objects than any class has.
  static constexpr uint16_t kMissed = UINT16_MAX;

  // The classes that a miss asks for capacity that they do not use.
  static constexpr uint32_t kMostVisits = 4;

  // A class gives up slots for one that misses this many times as often.
  static constexpr uint32_t kMissesForSlots = 4;

  // The bytes up to which a slab takes from others, and those that they leave it, by its own limit.
  static constexpr int64_t kMostTaken = 32 << 20;
  int64_t most() const {
    const int64_t first = first_limit_.load(std::memory_order_relaxed);
    return std::max(2 * first, std::min(8 * first, kMostTaken));
  }
  int64_t least() const { return first_limit_.load(std::memory_order_relaxed) / 4; }
  int64_t step() const {
    return std::max(kLeastStep, first_limit_.load(std::memory_order_relaxed) / 16);
  }

  // Returns how many bytes may still be claimed for slots; less than 0 if too many were.
  int64_t RoomInSlots() const {
    return std::min(limit() - claimed(), most_in_slots() - (claimed() - kept_));
  }
  uint32_t misses() const { return misses_.load(std::memory_order_relaxed); }
  void StealFor(CpuSlab& slab, uint8_t c, uint32_t batch, int64_t bytes, ClassSet* excess)
      TCMALLOC_REQUIRES(slab.lock());
  template <typename F>
  void VisitUntilRoom(CpuSlab& slab, uint8_t c, int64_t bytes, uint32_t most, F visit)
      TCMALLOC_REQUIRES(slab.lock());
  TCMALLOC_ALWAYS_INLINE void TakeUnused(CpuSlab& slab, uint8_t c, int64_t bytes, ClassSet* excess)
      TCMALLOC_REQUIRES(slab.lock());
  // Classes that give half of what they have: batches if they missed so little lately, and capacity
  // if they did or if it is for so many bytes.
  struct Givers {
    uint32_t misses_for_batches = 0;
    uint32_t misses = 0;
    int64_t bytes = INT64_MAX;
  };
  void TakeHalves(CpuSlab& slab, uint8_t c, int64_t bytes, const Givers& from, ClassSet* excess)
      TCMALLOC_REQUIRES(slab.lock());
  bool GiveBatches(CpuSlab& slab, uint8_t c, int64_t bytes, ClassSet* excess)
      TCMALLOC_REQUIRES(slab.lock());
  void Halve(CpuSlab& slab, uint8_t c, ClassSet* excess) TCMALLOC_REQUIRES(slab.lock());
  void Shrink(CpuSlab& slab, uint8_t c, uint32_t capacity, ClassSet* excess)
      TCMALLOC_REQUIRES(slab.lock());
  TCMALLOC_ALWAYS_INLINE void ShrinkUnneeded(CpuSlab& slab, uint8_t c, uint16_t objects,
                                             ClassSet* excess) TCMALLOC_REQUIRES(slab.lock());
  void LetGo(CpuSlab& slab, uint8_t c, uint32_t batches, ClassSet* excess)
      TCMALLOC_REQUIRES(slab.lock());
  void LetGoUnneeded(CpuSlab& slab, uint8_t c, ClassSet* excess) TCMALLOC_REQUIRES(slab.lock());
  void Claim(int64_t bytes) { claimed_.store(claimed() + bytes, std::memory_order_relaxed); }

  // The misses of a class since the last sweep, and between that and the one before.
  struct Misses {
    uint8_t now = 0;
    uint8_t before = 0;
  };
  uint32_t RecentMisses(uint8_t c) const {
    return std::max(misses_of_[c].now, misses_of_[c].before);
  }

  std::atomic<int64_t> limit_;
  std::atomic<int64_t> claimed_{0};
  std::atomic<uint32_t> misses_{0};
  std::atomic<uint32_t> ticks_{0};
  std::atomic<uint32_t> misses_seen_{0};  // by WasIdle
  std::atomic<uint32_t> objects_seen_{0};
  std::atomic<bool> short_of_room_{false};
  std::atomic<int64_t> first_limit_;
  std::atomic<int64_t> share_of_heap_{0};
  int64_t kept_ = 0;                // bytes claimed for batches in the depot
  uint8_t hand_ = 0;                // the class that gave up capacity last
  uint32_t refused_ = 0;            // a class of so many misses got no slots since the last sweep
  int64_t starved_of_ = INT64_MAX;  // a class without a batch did not get so many bytes since then
  ClassSet holders_;                // each class that has capacity or batches, and some that had
  Misses misses_of_[kSizeClassCount] = {};
  uint16_t objects_at_sweep_[kSizeClassCount] = {};
  uint16_t fewest_[kSizeClassCount] = {};  // objects at the sweeps since the last look
  uint32_t sweeps_ = 0;
  uint16_t objects_at_search_[2][kSizeClassCount] = {};  // or kMissed
};

// The budgets of all slabs. Constant-initialised and trivially destructible.
class SlabBudgets {
 public:
  constexpr SlabBudgets() = default;
  SlabBudgets(const SlabBudgets&) = delete;
  SlabBudgets& operator=(const SlabBudgets&) = delete;

  // False if no memory can be had. May change errno.
  [[nodiscard]] bool Reserve(int count, size_t bytes_per_slab);

  // Changes the bytes of every slab. Called by one thread at a time, which knows that Reserve has
  // returned.
  void SetBytesPerSlab(size_t bytes) {
    for (int i = 0; i < count_; ++i) budgets_[i].SetLimit(static_cast<int64_t>(bytes));
  }

  SlabBudget& budget(int id) { return budgets_[id]; }

  // Looks at one other slab that is in use, each in turn, and lets `id` take budget that it needs
  // less. Returns the slab if it was idle, else -1. Thread safe. `slab_of(i)` is slab i.
  template <typename F>
  int VisitOther(int id, F slab_of) {
    // Skips the many ids that are not in use, but takes their budget.
    for (int i = 0; i < count_; ++i) {
      const uint32_t turn = next_.fetch_add(1, std::memory_order_relaxed);
      const auto other = static_cast<int>(turn % static_cast<uint32_t>(count_));
      if (other == id) continue;
      const bool unused = budgets_[other].claimed() == 0;
      const bool idle = unused || budgets_[other].WasIdle(slab_of(other));
      budgets_[id].TakeFrom(budgets_[other], idle);
      if (!unused) return idle ? other : -1;
    }
    return -1;
  }

 private:
  SlabBudget* budgets_ = nullptr;
  int count_ = 0;
  std::atomic<uint32_t> next_{0};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_CPU_SLAB_BUDGET_H_
