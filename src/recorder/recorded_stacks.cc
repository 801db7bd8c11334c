// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "recorder/recorded_stacks.h"

#include <bit>

namespace tcmalloc {
namespace {

// One multiplication for each frame. The upper bits depend on all frames.
uint64_t HashOf(std::span<void* const> frames) {
  constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;
  uint64_t hash = frames.size();
  for (void* frame : frames) {
    hash = (std::rotl(hash, 23) ^ reinterpret_cast<uintptr_t>(frame)) * kFactor;
  }
  return hash ^ (hash >> 29);
}

bool Equal(std::span<const uintptr_t> stack, std::span<void* const> frames) {
  return stack.size() == frames.size() &&
         std::equal(stack.begin(), stack.end(), frames.begin(), [](uintptr_t word, void* frame) {
           return word == reinterpret_cast<uintptr_t>(frame);
         });
}

}  // namespace

// Returns false if no memory can be had.
bool RecordedStacks::Ensure(uint32_t index) {
  if (!entries_.Ensure(index)) return false;
  uint32_t used = used_.load(std::memory_order_relaxed);
  while (used <= index &&
         !used_.compare_exchange_weak(used, index + 1, std::memory_order_relaxed)) {
  }
  return true;
}

// Finds or adds a stack and keeps one reference to it.
StackId RecordedStacks::Hold(std::span<void* const> frames) {
  const StackId id = stacks_.Add(frames);
  if (id == 0) return 0;
  if (!Ensure(id / kStackIdStep)) {
    stacks_.Release(id);
    return 0;
  }
  if (entries_[id / kStackIdStep].held.exchange(true, std::memory_order_relaxed)) {
    stacks_.Release(id);
  }
  return id;
}

StackId RecordedStacks::NameOf(std::span<void* const> frames) {
  const uint64_t hash = HashOf(frames);
  std::atomic<uint64_t>& cached = cached_[hash % kCached];
  constexpr uint64_t kLow = UINT32_MAX;
  // Acquire pairs with the release in NameOf and publishes the stack.
  const uint64_t known = cached.load(std::memory_order_acquire);
  const auto found = static_cast<StackId>(known & kLow);
  if (found != 0 && (known & ~kLow) == (hash & ~kLow) &&
      Equal(stacks_.FramesOfHeld(found), frames)) {
    return found;
  }
  const StackId id = Hold(frames);
  // Release pairs with the acquire in NameOf.
  if (id != 0) cached.store((hash & ~kLow) | id, std::memory_order_release);
  return id;
}

void RecordedStacks::NoteAllocated(StackId id, uint64_t bytes) {
  if (id == 0 && !Ensure(0)) return;
  Entry& entry = entries_[id / kStackIdStep];
  entry.allocations.fetch_add(1, std::memory_order_relaxed);
  entry.allocated_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void RecordedStacks::NoteFreed(StackId id, uint64_t bytes, uint64_t objects) {
  if (id == 0 && !Ensure(0)) return;
  Entry& entry = entries_[id / kStackIdStep];
  entry.frees.fetch_add(objects, std::memory_order_relaxed);
  entry.freed_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void RecordedStacks::Reset() {
  const uint32_t used = used_.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < used; ++i) {
    Entry* entry = entries_.Find(i);
    if (entry == nullptr) continue;
    entry->allocations.store(0, std::memory_order_relaxed);
    entry->allocated_bytes.store(0, std::memory_order_relaxed);
    entry->frees.store(0, std::memory_order_relaxed);
    entry->freed_bytes.store(0, std::memory_order_relaxed);
  }
}

// Reads totals that others change meanwhile.
StackTotals RecordedStacks::Read(const Entry& entry) {
  StackTotals totals;
  totals.frees = entry.frees.load(std::memory_order_relaxed);
  totals.freed_bytes = entry.freed_bytes.load(std::memory_order_relaxed);
  totals.allocations = entry.allocations.load(std::memory_order_relaxed);
  totals.allocated_bytes = entry.allocated_bytes.load(std::memory_order_relaxed);
  totals.frees = std::min(totals.frees, totals.allocations);
  totals.freed_bytes = std::min(totals.freed_bytes, totals.allocated_bytes);
  return totals;
}

}  // namespace tcmalloc
