// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/per_cpu/cpu_slab.h"

#include <algorithm>
#include <cstring>

namespace tcmalloc {
namespace {

void Set(std::atomic<uint16_t>& index, size_t value) {
  index.store(static_cast<uint16_t>(value), std::memory_order_relaxed);
}

uint16_t Get(const std::atomic<uint16_t>& index) { return index.load(std::memory_order_relaxed); }

template <typename F>
void ForEachClass(F f) {
  for (size_t c = 1; c < kSizeClassCount; ++c) f(static_cast<uint8_t>(c));
}

}  // namespace

void CpuSlab::SetBegins() {
  ForEachClass([this](uint8_t c) { Set(limits(c).begin, kSlabBegin[c]); });
}

void CpuSlab::FillTable() { std::memcpy(classes(), kClassBySize.data(), kClassBySize.size()); }

void CpuSlab::ClearTable() {
  std::memset(classes(), 0, kClassBySize.size());
  const uint32_t rows = rows_.exchange(0, std::memory_order_relaxed);
  for (size_t row = 0; row < kListedSizes / kRowSizes; ++row) {
    if ((rows >> row & 1) != 0) std::memset(classes() + row * kRowSizes, 0, kRowSizes);
  }
}

void CpuSlab::ListSizes(size_t size) {
  TCMALLOC_DCHECK(size < kListedSizes);
  if (state() != SlabState::kOpen || Lists(size)) return;
  const size_t row = size / kRowSizes;
  const size_t end = (row + 1) * kRowSizes;
  for (size_t first = std::max(row * kRowSizes, kClassBySize.size()); first < end;) {
    const uint8_t c = SizeClassFor(first);
    const size_t next = std::min<size_t>(end, kSizeClasses[c].size + size_t{1});
    std::memset(classes() + first, c, next - first);
    first = next;
  }
  CountUsed(TCM_SLAB_CLASSES + row * kRowSizes, TCM_SLAB_CLASSES + end);
  rows_.store(rows_.load(std::memory_order_relaxed) | 1U << row, std::memory_order_relaxed);
}

void CpuSlab::SetEmpty(uint8_t c) {
  const SlotWord no_object = kSlabBegin[c];
  slots()[kSlabBegin[c] - 1].store(no_object, std::memory_order_relaxed);
  top(c).store(no_object, std::memory_order_relaxed);
}

// Replaces the words in the first `count` slots of the class by the addresses in them.
void** CpuSlab::DecodeSlots(uint8_t c, uint32_t count) {
  auto** objects = reinterpret_cast<void**>(memory_) + kSlabBegin[c];
  for (uint32_t i = 0; i < count; ++i) objects[i] = SlotObject(slot(kSlabBegin[c] + i));
  return objects;
}

void CpuSlab::SetEnds() {
  ForEachClass([this](uint8_t c) { Set(limits(c).end, kSlabBegin[c] + capacity(c)); });
}

void CpuSlab::CountUsed(size_t begin, size_t end) { own_bytes.Add(used_.Use(begin, end)); }

// Counts the slot before the first one of a class, and the first `count` ones.
void CpuSlab::CountUsedSlots(uint8_t c, size_t count) {
  CountUsed((kSlabBegin[c] - size_t{1}) * kSlotBytes, (kSlabBegin[c] + count) * kSlotBytes);
}

// Counts what a slab and its depot use from the start on.
void CpuSlab::CountFirstUse() {
  CountUsed(0, TCM_SLAB_CLASSES + kClassBySize.size());
  ForEachClass([this](uint8_t c) { CountUsedSlots(c, 0); });
  own_bytes.Add(sizeof(*depot_));
}

// The first fence ends sections that took 0 for the beginning of a class, so that none finds
// objects below the new tops. The second ends sections that took 0 for the first free slot, so that
// none writes there.
bool CpuSlab::Initialize() {
  TCMALLOC_DCHECK(state() == SlabState::kUnused);
  SetBegins();
  // Pairs with the sections in sections_x86_64.S and sections_aarch64.S, as does the next one.
  if (!fence_(fence_cpu_)) return false;
  for (size_t c = 1; c < kSizeClassCount; ++c) SetEmpty(static_cast<uint8_t>(c));
  // Pairs with the sections in sections_x86_64.S and sections_aarch64.S.
  if (!fence_(fence_cpu_)) return false;
  FillTable();
  SetEnds();
  CountFirstUse();
  state_.store(SlabState::kOpen, std::memory_order_relaxed);
  return true;
}

bool CpuSlab::Close() {
  TCMALLOC_DCHECK(state() == SlabState::kOpen);
  ClearTable();
  ForEachClass([this](uint8_t c) {
    Set(limits(c).begin, kClosedBegin);
    Set(limits(c).end, 0);
  });
  // Pairs with the sections in sections_x86_64.S and sections_aarch64.S: no section that began
  // earlier still runs, and the stores of all of them are visible.
  if (!fence_(fence_cpu_)) {
    FillTable();
    SetBegins();
    SetEnds();
    return false;
  }
  tops_changed_ = false;
  state_.store(SlabState::kClosed, std::memory_order_relaxed);
  return true;
}

bool CpuSlab::Open() {
  TCMALLOC_DCHECK(state() == SlabState::kClosed);
  // Pairs with the sections in sections_x86_64.S and sections_aarch64.S: no section combines an old
  // top with the limits of an open slab.
  if (tops_changed_ && !fence_(fence_cpu_)) return false;
  FillTable();
  SetBegins();
  SetEnds();
  state_.store(SlabState::kOpen, std::memory_order_relaxed);
  return true;
}

void CpuSlab::AbandonObjects() {
  if (state() == SlabState::kUnused) return;
  ForEachClass([this](uint8_t c) { top(c).store(kSlabBegin[c], std::memory_order_relaxed); });
}

void CpuSlab::SetCapacity(uint8_t c, uint32_t capacity) {
  TCMALLOC_DCHECK(state() != SlabState::kUnused);
  TCMALLOC_DCHECK_LE(capacity, kMaxSlots[c]);
  if (capacity > this->capacity(c)) CountUsedSlots(c, capacity);
  Set(limits(c).capacity, capacity);
  if (state() == SlabState::kOpen) Set(limits(c).end, kSlabBegin[c] + capacity);
}

uint32_t CpuSlab::CopyNewest(uint8_t c, void** out, uint32_t n) const {
  if (state() == SlabState::kUnused) return 0;
  const uint32_t objects = CountObjects(c);
  const uint32_t count = std::min(objects, n);
  const uint32_t first = kSlabBegin[c] + objects - count;
  for (uint32_t i = 0; i < count; ++i) out[i] = SlotObject(slot(first + i));
  return count;
}

bool CpuSlab::Holds(const void* object, uint8_t c) const {
  if (state() == SlabState::kUnused) return false;
  const uint32_t count = CountObjects(c);
  for (uint32_t i = 0; i < count; ++i) {
    if (SlotObject(slot(kSlabBegin[c] + i)) == object) return true;
  }
  return false;
}

void CpuSlab::CheckClass(uint8_t c) const {
  const ClassLimits& of_class = limits(c);
  const bool open = state() == SlabState::kOpen;
  TCMALLOC_CHECK_EQ(Get(of_class.begin), open ? kSlabBegin[c] : kClosedBegin);
  TCMALLOC_CHECK_EQ(Get(of_class.end), open ? kSlabBegin[c] + capacity(c) : 0U);
  TCMALLOC_CHECK_LE(capacity(c), kMaxSlots[c]);
  const SlotWord word = top(c).load(std::memory_order_relaxed);
  const uint32_t index = SlotIndex(word);
  TCMALLOC_CHECK_LE(kSlabBegin[c], index);
  TCMALLOC_CHECK_LE(index, uint32_t{kSlabBegin[c]} + kMaxSlots[c]);
  if (open) return;
  TCMALLOC_CHECK_EQ(word, slot(index - 1));
  TCMALLOC_CHECK_EQ(slot(kSlabBegin[c] - 1U), kSlabBegin[c]);
  for (uint32_t i = kSlabBegin[c]; i < index; ++i) {
    const auto address = reinterpret_cast<uintptr_t>(SlotObject(slot(i)));
    TCMALLOC_CHECK(address != 0);
    TCMALLOC_CHECK_EQ(address % kSizeClasses[1].size, 0U);
    TCMALLOC_CHECK_EQ(SlotIndex(slot(i)), i + 1);
  }
}

void CpuSlab::CheckInvariants() const {
  if (state() == SlabState::kUnused) return;
  ForEachClass([this](uint8_t c) TCMALLOC_NO_THREAD_SAFETY_ANALYSIS { CheckClass(c); });
}

}  // namespace tcmalloc
