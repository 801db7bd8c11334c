// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "recorder/recorder.h"

#include "allocator/slow_path.h"
#include "heap_profile/caller_stack.h"
#include "thread/thread_state.h"

namespace tcmalloc {
namespace {

uintptr_t AddressOf(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

}  // namespace

// Threads lie far apart in memory, so that the upper bits of a product tell them apart.
Recorder::Stripe& Recorder::OwnStripe() {
  const uint64_t product = AddressOf(&thread_state) * 0x9e3779b97f4a7c15;
  return stripes_[product >> (64 - kStripeBits)];
}

bool Recorder::Count(std::atomic<uint64_t>& counter, uint64_t bytes) const {
  const uint64_t before = counter.fetch_add(bytes, std::memory_order_relaxed);
  return ((before ^ (before + bytes)) >> quantum_) != 0;
}

void Recorder::Forget() {
  const SlowPath slow_path(SlowPath::Patient{});
  if (slow_path.reentrant()) return;
  blocks_.Clear();
  mappings_.Clear();
}

void Recorder::Start(int quantum) {
  quantum_ = quantum;
  Forget();
  stacks_.Reset();
  for (Stripe& stripe : stripes_) {
    stripe.allocated.store(0, std::memory_order_relaxed);
    stripe.freed.store(0, std::memory_order_relaxed);
  }
  running_ = true;
}

void Recorder::Stop() {
  running_ = false;
  Forget();
}

bool Recorder::NoteNew(const void* block, size_t bytes) {
  if (!running_) return false;
  const CallerStack stack;
  const SlowPath slow_path(SlowPath::Patient{});
  if (slow_path.reentrant()) return false;
  const StackId id = stacks_.NameOf(stack.frames());
  const auto missed = blocks_.Insert({.address = AddressOf(block), .bytes = bytes, .stack = id});
  if (missed.has_value()) {
    stacks_.NoteFreed(missed->stack, missed->bytes);
    Count(OwnStripe().freed, missed->bytes);
  }
  stacks_.NoteAllocated(id, bytes);
  return Count(OwnStripe().allocated, bytes);
}

bool Recorder::NoteDelete(const void* block) {
  if (!running_ || block == nullptr) return false;
  const SlowPath slow_path(SlowPath::Patient{});
  if (slow_path.reentrant()) return false;
  const auto removed = blocks_.Remove(AddressOf(block));
  if (!removed.has_value()) return false;
  stacks_.NoteFreed(removed->stack, removed->bytes);
  return Count(OwnStripe().freed, removed->bytes);
}

bool Recorder::NoteMapped(const void* start, size_t bytes) {
  if (!running_) return false;
  const CallerStack stack;
  const SlowPath slow_path(SlowPath::Patient{});
  if (slow_path.reentrant()) return false;
  const StackId id = stacks_.NameOf(stack.frames());
  Count(OwnStripe().freed, mappings_.Add(AddressOf(start), bytes, id));
  return Count(OwnStripe().allocated, bytes);
}

bool Recorder::NoteUnmapped(const void* start, size_t bytes) {
  if (!running_) return false;
  const SlowPath slow_path(SlowPath::Patient{});
  if (slow_path.reentrant()) return false;
  return Count(OwnStripe().freed, mappings_.Remove(AddressOf(start), bytes));
}

Recorder::Bytes Recorder::bytes() const {
  Bytes sum;
  for (const Stripe& stripe : stripes_) {
    sum.allocated += stripe.allocated.load(std::memory_order_relaxed);
    sum.freed += stripe.freed.load(std::memory_order_relaxed);
  }
  return sum;
}

}  // namespace tcmalloc
