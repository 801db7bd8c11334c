// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/per_cpu/cpu_slab.h"

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
  ForEachClass([this](uint8_t c) { Set(header(c).begin, kSlabBegin[c]); });
}

void CpuSlab::SetEnds() {
  ForEachClass([this](uint8_t c) { Set(header(c).end, kSlabBegin[c] + capacity(c)); });
}

// After the first fence no section takes 0 for the beginning of a class, so none finds objects
// below the new `current`; after the second, none takes 0 for the current slot, so none writes
// there.
bool CpuSlab::Initialize() {
  TCMALLOC_DCHECK(state() == SlabState::kUnused);
  std::memcpy(memory_ + TCM_SLAB_CLASSES, kClassBySize.data(), kClassBySize.size());
  SetBegins();
  if (!fence_(fence_cpu_)) return false;
  ForEachClass([this](uint8_t c) { Set(header(c).current, kSlabBegin[c]); });
  if (!fence_(fence_cpu_)) return false;
  SetEnds();
  state_.store(SlabState::kOpen, std::memory_order_relaxed);
  return true;
}

bool CpuSlab::Close() {
  TCMALLOC_DCHECK(state() == SlabState::kOpen);
  ForEachClass([this](uint8_t c) {
    Set(header(c).begin, kClosedBegin);
    Set(header(c).end, 0);
  });
  if (!fence_(fence_cpu_)) {
    SetBegins();
    SetEnds();
    return false;
  }
  current_changed_ = false;
  state_.store(SlabState::kClosed, std::memory_order_relaxed);
  return true;
}

bool CpuSlab::Open() {
  TCMALLOC_DCHECK(state() == SlabState::kClosed);
  if (current_changed_ && !fence_(fence_cpu_)) return false;
  SetBegins();
  SetEnds();
  state_.store(SlabState::kOpen, std::memory_order_relaxed);
  return true;
}

void CpuSlab::SetCapacity(uint8_t c, uint32_t capacity) {
  TCMALLOC_DCHECK(state() != SlabState::kUnused);
  TCMALLOC_DCHECK_LE(capacity, kMaxSlots[c]);
  Set(header(c).capacity, capacity);
  if (state() == SlabState::kOpen) Set(header(c).end, kSlabBegin[c] + capacity);
}

bool CpuSlab::Holds(const void* object, uint8_t c) const {
  if (state() == SlabState::kUnused) return false;
  const uint32_t count = CountObjects(c);
  for (uint32_t i = 0; i < count; ++i) {
    std::atomic_ref<void*> slot(slots()[kSlabBegin[c] + i]);
    if (slot.load(std::memory_order_relaxed) == object) return true;
  }
  return false;
}

void CpuSlab::CheckClass(uint8_t c) const {
  const ClassHeader& h = header(c);
  const bool open = state() == SlabState::kOpen;
  TCMALLOC_CHECK_EQ(Get(h.begin), open ? kSlabBegin[c] : kClosedBegin);
  TCMALLOC_CHECK_EQ(Get(h.end), open ? kSlabBegin[c] + capacity(c) : 0U);
  TCMALLOC_CHECK_LE(capacity(c), kMaxSlots[c]);
  TCMALLOC_CHECK_LE(kSlabBegin[c], Get(h.current));
  TCMALLOC_CHECK_LE(Get(h.current), kSlabBegin[c] + kMaxSlots[c]);
  if (open) return;
  for (uint32_t i = 0; i < CountObjects(c); ++i) {
    const auto address = reinterpret_cast<uintptr_t>(slots()[kSlabBegin[c] + i]);
    TCMALLOC_CHECK(address != 0);
    TCMALLOC_CHECK_EQ(address % kSizeClasses[1].size, 0U);
  }
}

void CpuSlab::CheckInvariants() const {
  if (state() == SlabState::kUnused) return;
  ForEachClass([this](uint8_t c) TCMALLOC_NO_THREAD_SAFETY_ANALYSIS { CheckClass(c); });
}

}  // namespace tcmalloc
