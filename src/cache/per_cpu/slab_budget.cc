// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/per_cpu/slab_budget.h"

#include <algorithm>
#include <new>
#include <type_traits>

#include "base/check.h"
#include "cache/per_cpu/slab_layout.h"
#include "system/memory.h"

namespace tcmalloc {
namespace {

static_assert(std::is_trivially_destructible_v<SlabBudget>);

int64_t Bytes(uint8_t c, uint32_t objects) { return int64_t{objects} * kSizeClasses[c].size; }

}  // namespace

bool SlabBudget::Keep(CpuSlab& slab, uint8_t c, ObjectArray batch, Scatter scatter,
                      ChainArrays& arrays) {
  const int64_t bytes = CpuDepot::BytesOf(c, batch.count);
  const bool fits = claimed() + bytes <= limit();
  const int64_t kept_of_class = CpuDepot::BytesOf(c, slab.depot().CountObjects(c));
  slab.depot().outgrowth(c).NoteKept(scatter, kept_of_class, fits);
  if (!fits) {
    short_of_room_.store(true, std::memory_order_relaxed);
    const uint32_t kept = slab.depot().CountKept(c);
    Unkeep(slab.depot().LetGo(c, std::min((kept + 7) / 8, kMostLetGo)));
    if (claimed() + bytes > limit()) return false;
  }
  if (!slab.depot().Push(c, batch, arrays)) return false;
  kept_ += bytes;
  Claim(bytes);
  return true;
}

uint32_t SlabBudget::Grow(CpuSlab& slab, uint8_t c, uint32_t batch, uint32_t least,
                          SlabExcess* excess) {
  NoteMiss(c);
  const uint32_t capacity = slab.capacity(c);
  const uint32_t next =
      capacity < batch ? std::clamp<uint32_t>(capacity * 2, 1, batch) : capacity + batch;
  const uint32_t wanted = std::min<uint32_t>(std::max(next, least), kMaxSlots[c]);
  if (wanted <= capacity) return capacity;
  const int64_t bytes = Bytes(c, wanted - capacity);
  if (RoomInSlots() < bytes) StealFor(slab, c, bytes, excess);
  const int64_t room = std::max(RoomInSlots(), int64_t{0});
  const auto fitting = static_cast<uint32_t>(room / kSizeClasses[c].size);
  const uint32_t more = std::min(wanted - capacity, fitting);
  if (more < wanted - capacity) short_of_room_.store(true, std::memory_order_relaxed);
  slab.SetCapacity(c, capacity + more);
  Claim(Bytes(c, more));
  return capacity + more;
}

void SlabBudget::StealFor(CpuSlab& slab, uint8_t c, int64_t bytes, SlabExcess* excess) {
  // The first round spares classes that missed. If the second round has to take from them, the slab
  // is short of room.
  for (size_t i = 0; i < 2 * kSizeClassCount && RoomInSlots() < bytes; ++i) {
    hand_ = static_cast<uint8_t>((hand_ + 1) % kSizeClassCount);
    const bool by_depot = limit() - claimed() < bytes;
    const uint32_t kept = by_depot ? slab.depot().CountKept(hand_) : 0;
    if (hand_ == c || (slab.capacity(hand_) == 0 && kept == 0)) continue;
    if (Missed(hand_)) {
      ClearMissed(hand_);
      continue;
    }
    if (i >= kSizeClassCount) short_of_room_.store(true, std::memory_order_relaxed);
    if (kept > 0) {
      LetGo(slab, hand_, (kept + 1) / 2, excess);
    } else {
      Shrink(slab, hand_, slab.capacity(hand_) / 2, excess);
    }
  }
}

void SlabBudget::LetGo(CpuSlab& slab, uint8_t c, uint32_t batches, SlabExcess* excess) {
  Unkeep(slab.depot().LetGo(c, batches));
  if (batches > 0) excess->Note(c);
}

void SlabBudget::Shrink(CpuSlab& slab, uint8_t c, uint32_t capacity, SlabExcess* excess) {
  Claim(-Bytes(c, slab.capacity(c) - capacity));
  slab.SetCapacity(c, capacity);
  if (SlabExcess::CountExcess(slab, c) > 0) excess->Note(c);
}

void SlabBudget::LetGoUnneeded(CpuSlab& slab, SlabExcess* excess) {
  for (size_t c = 1; c < kSizeClassCount; ++c) {
    LetGoUnneeded(slab, static_cast<uint8_t>(c), excess);
  }
}

// Beyond the limit, half of the batches go in any case.
void SlabBudget::LetGoUnneeded(CpuSlab& slab, uint8_t c, SlabExcess* excess) {
  const uint32_t unneeded = slab.depot().CountUnneeded(c);
  const uint32_t beyond = claimed() > limit() ? (slab.depot().CountKept(c) + 1) / 2 : 0;
  LetGo(slab, c, std::max(unneeded, beyond), excess);
}

void SlabBudget::ShrinkUnused(CpuSlab& slab, SlabExcess* excess) {
  for (size_t i = 1; i < kSizeClassCount; ++i) {
    const auto c = static_cast<uint8_t>(i);
    const uint32_t capacity = slab.capacity(c);
    const auto objects = static_cast<uint16_t>(slab.CountObjects(c));
    const bool used = Missed(c) || objects != objects_at_sweep_[c];
    LetGoUnneeded(slab, c, excess);
    if (capacity > 0 && !used) Shrink(slab, c, capacity / 2, excess);
    ClearMissed(c);
    objects_at_sweep_[c] = objects;
  }
}

void SlabBudget::LetGoIdle(CpuSlab& slab, SlabExcess* excess) {
  for (size_t i = 1; i < kSizeClassCount; ++i) {
    const auto c = static_cast<uint8_t>(i);
    LetGo(slab, c, slab.depot().CountIdle(c), excess);
  }
}

void SlabBudget::LetGoAll(CpuSlab& slab, SlabExcess* excess) {
  for (size_t i = 1; i < kSizeClassCount; ++i) {
    const auto c = static_cast<uint8_t>(i);
    LetGo(slab, c, slab.depot().CountKept(c), excess);
  }
}

void SlabBudget::Reset(CpuSlab& slab) {
  for (size_t c = 1; c < kSizeClassCount; ++c) slab.SetCapacity(static_cast<uint8_t>(c), 0);
  Claim(kept_ - claimed());
}

void SlabBudget::SetLimit(int64_t limit) {
  const int64_t first = first_limit_.exchange(limit, std::memory_order_relaxed);
  const int64_t part = this->limit() - first;
  const int64_t left = limit < first ? part * limit / first : part;
  limit_.fetch_add(limit - first + left - part, std::memory_order_relaxed);
}

bool SlabBudget::WasIdle(const CpuSlab& slab) {
  uint32_t objects = 0;
  for (size_t c = 1; c < kSizeClassCount; ++c)
    objects += slab.CountObjects(static_cast<uint8_t>(c));
  const bool same_objects = objects_seen_.exchange(objects, std::memory_order_relaxed) == objects;
  const uint32_t now = misses();
  return misses_seen_.exchange(now, std::memory_order_relaxed) == now && same_objects;
}

void SlabBudget::TakeFrom(SlabBudget& other, bool idle) {
  if (!short_of_room_.exchange(false, std::memory_order_relaxed)) return;
  const int64_t bytes = step();
  const bool richer = other.limit() > limit() + bytes;
  if (!idle && !richer && other.short_of_room_.load(std::memory_order_relaxed)) return;
  if (limit() + bytes > most() || other.limit() - bytes < other.least()) return;
  other.limit_.fetch_sub(bytes, std::memory_order_relaxed);
  limit_.fetch_add(bytes, std::memory_order_relaxed);
}

void SlabBudget::CheckInvariants(const CpuSlab& slab) const {
  int64_t bytes = kept_;
  for (size_t c = 1; slab.state() != SlabState::kUnused && c < kSizeClassCount; ++c) {
    bytes += Bytes(static_cast<uint8_t>(c), slab.capacity(static_cast<uint8_t>(c)));
  }
  TCMALLOC_CHECK_EQ(bytes, claimed());
  if (slab.state() != SlabState::kUnused) TCMALLOC_CHECK_EQ(slab.depot().CountKeptBytes(), kept_);
}

bool SlabBudgets::Reserve(int count, size_t bytes_per_slab) {
  void* memory = AllocateMetadata(static_cast<size_t>(count) * sizeof(SlabBudget));
  if (memory == nullptr) return false;
  budgets_ = static_cast<SlabBudget*>(memory);
  for (int i = 0; i < count; ++i) {
    new (budgets_ + i) SlabBudget(static_cast<int64_t>(bytes_per_slab));
  }
  count_ = count;
  return true;
}

}  // namespace tcmalloc
