// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Counts the allocations and frees of each call stack.

#ifndef TCMALLOC_RECORDER_RECORDED_STACKS_H_
#define TCMALLOC_RECORDER_RECORDED_STACKS_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "heap_profile/chunked_array.h"
#include "heap_profile/stack_table.h"

namespace tcmalloc {

// Objects and bytes of one stack, or of all. Nothing is freed that was not allocated.
struct StackTotals {
  uint64_t allocations = 0;
  uint64_t allocated_bytes = 0;
  uint64_t frees = 0;
  uint64_t freed_bytes = 0;

  uint64_t objects_in_use() const { return allocations - frees; }
  uint64_t bytes_in_use() const { return allocated_bytes - freed_bytes; }
  void Add(const StackTotals& other) {
    allocations += other.allocations;
    allocated_bytes += other.allocated_bytes;
    frees += other.frees;
    freed_bytes += other.freed_bytes;
  }
};

// Keeps one reference to each stack that was ever recorded, so that names stay valid: a program has
// few call sites, and finds them again at the next start. A stack that finds no memory is counted
// under the name 0, which has no frames.
//
// Thread safe, without a lock; async-signal-safe.
class RecordedStacks {
 public:
  constexpr explicit RecordedStacks(StackTable& stacks) : stacks_(stacks) {}
  RecordedStacks(const RecordedStacks&) = delete;
  RecordedStacks& operator=(const RecordedStacks&) = delete;

  // Returns the name of a stack, which stays valid for ever.
  StackId NameOf(std::span<void* const> frames);

  void NoteAllocated(StackId id, uint64_t bytes);
  // A piece of an object may be freed, which is no object of its own.
  void NoteFreed(StackId id, uint64_t bytes, uint64_t objects = 1);
  // Counts from zero again. Events of other threads meanwhile are counted, lost or counted in part.
  void Reset();

  // Calls f(std::span<const uintptr_t> frames, const StackTotals&) for each stack that allocated.
  template <typename F>
  void ForEach(F f) const {
    const uint32_t used = used_.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < used; ++i) {
      const Entry* entry = entries_.Find(i);
      if (entry == nullptr) continue;
      const StackTotals totals = Read(*entry);
      if (totals.allocations == 0) continue;
      std::span<const uintptr_t> frames;
      if (i != 0) frames = stacks_.FramesOfHeld(i * kStackIdStep);
      f(frames, totals);
    }
  }

  size_t mapped_bytes() const { return entries_.mapped_bytes(); }

 private:
  static constexpr uint32_t kFirstEntries = 64;
  static constexpr size_t kCached = 4096;

  // On a line of its own, because threads count in different ones at a time.
  struct alignas(64) Entry {
    std::atomic<uint64_t> allocations;
    std::atomic<uint64_t> allocated_bytes;
    std::atomic<uint64_t> frees;
    std::atomic<uint64_t> freed_bytes;
    std::atomic<bool> held;  // a reference to the stack is kept
  };

  static StackTotals Read(const Entry& entry);
  StackId Hold(std::span<void* const> frames);
  bool Ensure(uint32_t index);

  // Stacks by their hash, whose upper half is beside the name. An entry that is overwritten is
  // found again in the table.
  std::atomic<uint64_t> cached_[kCached] = {};
  ChunkedArray<Entry, kFirstEntries> entries_;  // by StackId / kStackIdStep
  std::atomic<uint32_t> used_{0};               // entries that ever counted: 0 to used_ - 1
  StackTable& stacks_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_RECORDER_RECORDED_STACKS_H_
