// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/per_cpu/slab_budget.h"

#include <algorithm>
#include <new>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "cache/idle_bytes.h"
#include "cache/per_cpu/slab_layout.h"
#include "system/own_memory.h"

namespace tcmalloc {
namespace {

static_assert(std::is_trivially_destructible_v<SlabBudget>);

int64_t Bytes(uint8_t c, uint32_t objects) { return int64_t{objects} * kSizeClasses[c].size; }

// Returns true if a class has capacity or batches.
bool Holds(const CpuSlab& slab, uint8_t c) {
  return slab.capacity(c) > 0 || slab.depot().CountKept(c) > 0;
}

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
  holders_.Add(c);
  return true;
}

uint32_t SlabBudget::Grow(CpuSlab& slab, uint8_t c, uint32_t batch, uint32_t least,
                          ClassSet* excess) {
  NoteMiss(c);
  const uint32_t capacity = slab.capacity(c);
  const uint32_t next =
      capacity < batch ? std::clamp<uint32_t>(capacity * 2, 1, batch) : capacity + batch;
  const uint32_t wanted = std::min<uint32_t>(std::max(next, least), kMaxSlots[c]);
  if (wanted <= capacity) return capacity;
  const int64_t bytes = Bytes(c, wanted - capacity);
  if (RoomInSlots() < bytes) StealFor(slab, c, batch, bytes, excess);
  const int64_t room = std::max(RoomInSlots(), int64_t{0});
  const auto fitting = static_cast<uint32_t>(room / kSizeClasses[c].size);
  const uint32_t more = std::min(wanted - capacity, fitting);
  if (more < wanted - capacity) short_of_room_.store(true, std::memory_order_relaxed);
  slab.SetCapacity(c, capacity + more);
  Claim(Bytes(c, more));
  holders_.Add(c);
  return capacity + more;
}

// Calls visit(class) for at most `most` holders but `c`, each in turn, until there is room for so
// many bytes.
template <typename F>
void SlabBudget::VisitUntilRoom(CpuSlab& slab, uint8_t c, int64_t bytes, uint32_t most, F visit) {
  for (uint32_t left = std::min(most, holders_.count()); left > 0 && RoomInSlots() < bytes;
       --left) {
    hand_ = holders_.After(hand_);
    if (hand_ == c) continue;
    visit(hand_);
    if (!Holds(slab, hand_)) holders_.Remove(hand_);
  }
}

// Takes half of the capacity that classes do not use at the moment, where that is worth while.
// Costs them no objects.
void SlabBudget::TakeUnused(CpuSlab& slab, uint8_t c, int64_t bytes, ClassSet* excess) {
  VisitUntilRoom(slab, c, bytes, kMostVisits, [&](uint8_t from) TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
    const uint32_t capacity = slab.capacity(from);
    const uint32_t unused = capacity - std::min(capacity, slab.CountObjects(from));
    if (Bytes(from, unused) < bytes) return;
    Shrink(slab, from, capacity - (unused + 1) / 2, excess);
  });
}

// Takes half of the batches of classes, or half of the capacity, where `from` says so.
void SlabBudget::TakeHalves(CpuSlab& slab, uint8_t c, int64_t bytes, const Givers& from,
                            ClassSet* excess) {
  const auto take = [&](uint8_t other) TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
    const uint32_t misses = RecentMisses(other);
    if (misses <= from.misses_for_batches && GiveBatches(slab, other, bytes, excess)) return;
    if (misses <= from.misses || Bytes(other, slab.capacity(other)) >= from.bytes) {
      Halve(slab, other, excess);
    }
  };
  VisitUntilRoom(slab, c, bytes, kSizeClassCount, take);
}

// Takes what other classes have and do not use at the moment. If that does not suffice, classes
// that miss about as often take nothing from each other: what one got, another would miss again.
// But a class without a batch takes from richer ones, and where the slab holds too much all have to
// give. What was refused is refused until the next sweep, or until the class misses twice as often,
// because another search would cost time for nothing.
void SlabBudget::StealFor(CpuSlab& slab, uint8_t c, uint32_t batch, int64_t bytes,
                          ClassSet* excess) {
  TakeUnused(slab, c, bytes, excess);
  if (RoomInSlots() >= bytes) return;
  short_of_room_.store(true, std::memory_order_relaxed);
  if (bytes > std::min(limit(), most_in_slots())) return;
  const bool too_much = claimed() > limit();
  const uint32_t misses = RecentMisses(c);
  if (misses > 2 * refused_ || too_much) {
    TakeHalves(slab, c, bytes, {.misses = misses / kMissesForSlots}, excess);
    if (RoomInSlots() >= bytes) return;
    refused_ = misses;
  }
  const bool needs_batch = slab.capacity(c) < batch && bytes < starved_of_;
  if (!needs_batch && !too_much) return;
  const int64_t twice = too_much ? 0 : 2 * Bytes(c, slab.capacity(c));
  TakeHalves(slab, c, bytes, {.misses_for_batches = UINT32_MAX, .bytes = twice}, excess);
  if (RoomInSlots() < bytes) starved_of_ = bytes;
}

// Lets half of the batches of a class go, if the slab has no room for so many bytes. Returns false
// if there are none, or if it has.
bool SlabBudget::GiveBatches(CpuSlab& slab, uint8_t c, int64_t bytes, ClassSet* excess) {
  const uint32_t kept = limit() - claimed() < bytes ? slab.depot().CountKept(c) : 0;
  if (kept == 0) return false;
  LetGo(slab, c, (kept + 1) / 2, excess);
  return true;
}

// Takes half of its capacity from a class.
void SlabBudget::Halve(CpuSlab& slab, uint8_t c, ClassSet* excess) {
  if (const uint32_t capacity = slab.capacity(c); capacity > 0) {
    Shrink(slab, c, capacity / 2, excess);
  }
}

void SlabBudget::LetGo(CpuSlab& slab, uint8_t c, uint32_t batches, ClassSet* excess) {
  if (batches == 0) return;
  Unkeep(slab.depot().LetGo(c, batches));
  excess->Add(c);
}

void SlabBudget::Shrink(CpuSlab& slab, uint8_t c, uint32_t capacity, ClassSet* excess) {
  Claim(-Bytes(c, slab.capacity(c) - capacity));
  slab.SetCapacity(c, capacity);
  if (CountExcess(slab, c) > 0) excess->Add(c);
}

void SlabBudget::LetGoUnneeded(CpuSlab& slab, ClassSet* excess) {
  for (size_t c = 1; c < kSizeClassCount; ++c) {
    LetGoUnneeded(slab, static_cast<uint8_t>(c), excess);
  }
}

// Beyond the limit, half of the batches go in any case.
void SlabBudget::LetGoUnneeded(CpuSlab& slab, uint8_t c, ClassSet* excess) {
  const uint32_t unneeded = slab.depot().CountUnneeded(c);
  const uint32_t beyond = claimed() > limit() ? (slab.depot().CountKept(c) + 1) / 2 : 0;
  LetGo(slab, c, std::max(unneeded, beyond), excess);
}

void SlabBudget::ShrinkUnused(CpuSlab& slab, ClassSet* excess) {
  const bool look = ++sweeps_ % kSweepsPerLook == 0;
  holders_.ForEach([&](uint8_t c) TCMALLOC_NO_THREAD_SAFETY_ANALYSIS {
    const auto objects = static_cast<uint16_t>(slab.CountObjects(c));
    const bool used = misses_of_[c].now > 0 || objects != objects_at_sweep_[c];
    LetGoUnneeded(slab, c, excess);
    fewest_[c] = std::min(fewest_[c], objects);
    if (!used) {
      Halve(slab, c, excess);
    } else if (look) {
      ShrinkUnneeded(slab, c, objects, excess);
    }
    objects_at_sweep_[c] = objects;
  });
  for (Misses& misses : misses_of_) misses = {.now = 0, .before = misses.now};
  refused_ = 0;
  starved_of_ = INT64_MAX;
}

// Takes capacity from a class with so many objects, so that half of those go that were there at
// each sweep since the last look. What it has room for beyond the others goes as well.
void SlabBudget::ShrinkUnneeded(CpuSlab& slab, uint8_t c, uint16_t objects, ClassSet* excess) {
  const uint32_t unneeded = fewest_[c] / 2;
  fewest_[c] = static_cast<uint16_t>(objects - unneeded);
  const uint32_t left = std::min(slab.capacity(c), objects - unneeded);
  if (Bytes(c, unneeded) >= kLeastUnneeded) Shrink(slab, c, left, excess);
}

void SlabBudget::LetGoIdle(CpuSlab& slab, ClassSet* excess) {
  for (size_t i = 1; i < kSizeClassCount; ++i) {
    const auto c = static_cast<uint8_t>(i);
    LetGo(slab, c, slab.depot().CountIdle(c), excess);
  }
}

void SlabBudget::LetGoAll(CpuSlab& slab, ClassSet* excess) {
  for (size_t i = 1; i < kSizeClassCount; ++i) {
    const auto c = static_cast<uint8_t>(i);
    LetGo(slab, c, slab.depot().CountKept(c), excess);
  }
}

ClassSet SlabBudget::FindIdle(CpuSlab& slab, Search search) {
  uint16_t* before = objects_at_search_[static_cast<size_t>(search)];
  ClassSet idle;
  int64_t bytes = 0;
  for (size_t i = 1; i < kSizeClassCount; ++i) {
    const auto c = static_cast<uint8_t>(i);
    const auto objects = static_cast<uint16_t>(slab.CountObjects(c));
    if (std::exchange(before[c], objects) != objects || objects == 0) continue;
    idle.Add(c);
    bytes += Bytes(c, objects);
  }
  return bytes >= kManyIdleBytes ? idle : ClassSet{};
}

void SlabBudget::Reset(CpuSlab& slab, uint8_t c) {
  Claim(-Bytes(c, slab.capacity(c)));
  slab.SetCapacity(c, 0);
}

void SlabBudget::Reset(CpuSlab& slab) {
  for (size_t c = 1; c < kSizeClassCount; ++c) Reset(slab, static_cast<uint8_t>(c));
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
  bool listed = true;
  for (size_t i = 1; slab.state() != SlabState::kUnused && i < kSizeClassCount; ++i) {
    const auto c = static_cast<uint8_t>(i);
    bytes += Bytes(c, slab.capacity(c));
    listed = listed && (holders_.Has(c) || !Holds(slab, c));
  }
  TCMALLOC_CHECK_EQ(bytes, claimed());
  TCMALLOC_CHECK(listed);
  if (slab.state() != SlabState::kUnused) TCMALLOC_CHECK_EQ(slab.depot().CountKeptBytes(), kept_);
}

bool SlabBudgets::Reserve(int count, size_t bytes_per_slab) {
  void* memory = MapZeroed(static_cast<size_t>(count) * sizeof(SlabBudget));
  if (memory == nullptr) return false;
  budgets_ = static_cast<SlabBudget*>(memory);
  for (int i = 0; i < count; ++i) {
    new (budgets_ + i) SlabBudget(static_cast<int64_t>(bytes_per_slab));
  }
  count_ = count;
  return true;
}

}  // namespace tcmalloc
