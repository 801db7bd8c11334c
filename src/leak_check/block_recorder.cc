// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/block_recorder.h"

#include <algorithm>

#include "allocator/slow_path.h"
#include "heap_profile/caller_stack.h"
#include "heap_profile/profiles.h"
#include "hook/hooks.h"
#include "leak_check/thread_stop.h"

namespace tcmalloc {
namespace {

void OnNew(const void* block, size_t bytes) { block_recorder.NoteNew(block, bytes); }
// A block that stays is replaced by NoteNew. Meanwhile a check still finds what it leads to.
void OnDelete(const void* block) {
  if (!BlockStays()) block_recorder.NoteDelete(block);
}

}  // namespace

constinit BlockRecorder block_recorder;

void BlockRecorder::Start() {
  if (started_.exchange(true, std::memory_order_relaxed)) return;
  const bool added = hooks.nested_new.Set(OnNew) && hooks.nested_delete.Set(OnDelete) &&
                     hooks.new_block.Add(OnNew) && hooks.delete_block.Add(OnDelete);
  if (!added) started_.store(false, std::memory_order_relaxed);
}

BlockRecorder::Ignoring* BlockRecorder::FindIgnoring(uintptr_t thread) {
  for (Ignoring& entry : ignoring_) {
    if (entry.thread.load(std::memory_order_relaxed) == thread) return &entry;
  }
  return nullptr;
}

void BlockRecorder::BeginIgnoring() {
  const uintptr_t self = OwnThreadPointer();
  if (Ignoring* entry = FindIgnoring(self)) {
    entry->depth.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  for (Ignoring& entry : ignoring_) {
    uintptr_t expected = 0;
    if (!entry.thread.compare_exchange_strong(expected, self, std::memory_order_relaxed)) continue;
    entry.depth.store(1, std::memory_order_relaxed);
    ignoring_count_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
}

void BlockRecorder::EndIgnoring() {
  Ignoring* entry = FindIgnoring(OwnThreadPointer());
  if (entry == nullptr || entry->depth.fetch_sub(1, std::memory_order_relaxed) != 1) return;
  entry->thread.store(0, std::memory_order_relaxed);
  ignoring_count_.fetch_sub(1, std::memory_order_relaxed);
}

bool BlockRecorder::IsIgnoring() {
  if (ignoring_count_.load(std::memory_order_relaxed) == 0) return false;
  return FindIgnoring(OwnThreadPointer()) != nullptr;
}

void BlockRecorder::Forget(const RecordedBlock& block) {
  if (block.stack != 0) stack_table.Release(block.stack);
}

// Leaves out a block for which there is no room.
void BlockRecorder::NoteUnrecorded(uintptr_t address, size_t bytes) {
  for (Unrecorded& entry : unrecorded_) {
    uint64_t none = 0;
    if (!entry.bytes.compare_exchange_strong(none, bytes + 1, std::memory_order_relaxed)) continue;
    // Release pairs with the acquire in RecordLate and Copy: the bytes are there.
    entry.address.store(address, std::memory_order_release);
    unrecorded_count_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
}

bool BlockRecorder::RemoveUnrecorded(uintptr_t address) {
  if (unrecorded_count_.load(std::memory_order_relaxed) == 0) return false;
  for (Unrecorded& entry : unrecorded_) {
    uintptr_t expected = address;
    // Acquire pairs with the release in NoteUnrecorded.
    if (!entry.address.compare_exchange_strong(expected, 0, std::memory_order_acquire)) continue;
    entry.bytes.store(0, std::memory_order_relaxed);
    unrecorded_count_.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }
  return false;
}

void BlockRecorder::RecordLate() {
  if (unrecorded_count_.load(std::memory_order_relaxed) == 0) return;
  for (Unrecorded& entry : unrecorded_) {
    // Acquire pairs with the release in NoteUnrecorded.
    const uintptr_t address = entry.address.load(std::memory_order_acquire);
    const RecordedBlock block = {.address = address,
                                 .bytes = entry.bytes.load(std::memory_order_relaxed) - 1,
                                 .stamp = kIgnored,
                                 .stack = 0};
    if (address == 0 || !RemoveUnrecorded(address)) continue;
    if (const auto missed = table_.Insert(block)) Forget(*missed);
  }
}

void BlockRecorder::CatchUp() {
  RemoveWaiting();
  RecordLate();
}

void BlockRecorder::RemoveWaiting() {
  if (waiting_count_.load(std::memory_order_relaxed) == 0) return;
  for (const uintptr_t address : waiting_.words()) {
    if (address == 0 || !waiting_.Remove(address)) continue;
    waiting_count_.fetch_sub(1, std::memory_order_relaxed);
    if (const auto block = table_.Remove(address)) Forget(*block);
  }
}

void BlockRecorder::NoteNew(const void* block, size_t bytes) {
  const CallerStack stack;
  const SlowPath slow_path(SlowPath::Patient{});
  if (slow_path.reentrant()) {
    if (!heap.emergency().Owns(block)) {
      NoteUnrecorded(reinterpret_cast<uintptr_t>(block), bytes);
    }
    return;
  }
  CatchUp();
  uint64_t stamp = sequence_.fetch_add(1, std::memory_order_relaxed);
  if (IsIgnoring()) stamp |= kIgnored;
  const auto missed = table_.Insert({.address = reinterpret_cast<uintptr_t>(block),
                                     .bytes = bytes,
                                     .stamp = stamp,
                                     .stack = stack_table.Add(stack.frames())});
  if (missed) Forget(*missed);
}

void BlockRecorder::NoteDelete(const void* block) {
  const auto address = reinterpret_cast<uintptr_t>(block);
  const SlowPath slow_path(SlowPath::Patient{});
  if (slow_path.reentrant()) {
    if (RemoveUnrecorded(address)) return;
    if (waiting_.Add(address)) waiting_count_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  CatchUp();
  if (const auto removed = table_.Remove(address)) Forget(*removed);
}

size_t BlockRecorder::Copy(Block* to, size_t most) const {
  size_t count = 0;
  const std::span<const uintptr_t> waiting = waiting_.words();
  const bool none_waits = waiting_count_.load(std::memory_order_relaxed) == 0;
  table_.ForEach([&](const RecordedBlock& block) {
    if (count == most) return;
    if (!none_waits && std::find(waiting.begin(), waiting.end(), block.address) != waiting.end()) {
      return;
    }
    to[count++] = {.address = block.address,
                   .bytes = block.bytes,
                   .sequence = block.stamp & ~kIgnored,
                   .stack = block.stack,
                   .ignored = (block.stamp & kIgnored) != 0};
  });
  for (const Unrecorded& entry : unrecorded_) {
    // Acquire pairs with the release in NoteUnrecorded.
    const uintptr_t address = entry.address.load(std::memory_order_acquire);
    if (address == 0 || count == most) continue;
    const uint64_t bytes = entry.bytes.load(std::memory_order_relaxed) - 1;
    to[count++] = {.address = address, .bytes = bytes, .sequence = 0, .stack = 0, .ignored = true};
  }
  return count;
}

std::span<const uintptr_t> BlockRecorder::Frames(uint32_t stack) const {
  if (stack == 0) return {};
  return StackTable::Reader(stack_table).frames(stack);
}

}  // namespace tcmalloc
