// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/sampled_hooks.h"

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "heap/heap.h"
#include "hook/hooks.h"
#include "system/clock.h"
#include "system/own_memory.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

// A name that stays when the sample's own is used again.
SampledAllocation::Handle HandleOf(SampleId id, int64_t time_ns) {
  constexpr uint64_t kOddMultiplier = 0x9E3779B97F4A7C15;
  return static_cast<SampledAllocation::Handle>(static_cast<uint64_t>(time_ns) +
                                                id * kOddMultiplier);
}

}  // namespace

// Makes room for more events. Returns false if no memory can be had.
bool SampledHooks::Grow() {
  constexpr size_t kFirstEvents = 64;
  const size_t capacity = std::max(capacity_ * 2, kFirstEvents);
  void* memory = MapZeroed(capacity * sizeof(Event));
  if (memory == nullptr) return false;
  auto* events = static_cast<Event*>(memory);
  std::copy_n(events_, count_, events);
  if (events_ != nullptr) UnmapZeroed(events_, capacity_ * sizeof(Event));
  events_ = events;
  capacity_ = capacity;
  return true;
}

// Forgets what threads had noted that are not in this child of fork.
void SampledHooks::ForgetAfterFork() {
  const uint32_t forks = heap.errands().forks();
  if (forks == forks_) return;
  forks_ = forks;
  for (size_t i = 0; i < count_; ++i) {
    if (events_[i].sample.stack != 0) stacks_.Release(events_[i].sample.stack);
  }
  count_ = 0;
}

// An event for which there is no memory is left out.
void SampledHooks::NoteForHooks(Event event) {
  const StackTable::Reader reader(stacks_);
  if (event.sample.stack != 0 && !stacks_.Retain(event.sample.stack)) event.sample.stack = 0;
  event.thread = system_calls.gettid();
  event.noted_ns = MonotonicNanoseconds();
  {
    SpinLockHolder holder(lock_);
    ForgetAfterFork();
    if (count_ < capacity_ || Grow()) {
      events_[count_++] = event;
      heap.errands().AddCall();
      return;
    }
  }
  if (event.sample.stack != 0) stacks_.Release(event.sample.stack);
}

// Takes the first event of a thread, or one that was left. Returns false if there is none.
bool SampledHooks::Take(pid_t thread, Event* event) {
  constexpr int64_t kLeftAfterNs = 10'000'000'000;
  const int64_t left = MonotonicNanoseconds() - kLeftAfterNs;
  SpinLockHolder holder(lock_);
  ForgetAfterFork();
  Event* const end = events_ + count_;
  Event* found = std::find_if(events_, end, [thread, left](const Event& noted) {
    return noted.thread == thread || noted.noted_ns < left;
  });
  if (found == end) return false;
  *event = *found;
  std::copy(found + 1, end, found);
  --count_;
  heap.errands().RemoveCall();
  return true;
}

// Takes an event and copies its stack. A hook may run for long, and fork, so that it must neither
// hold a reader nor a reference.
bool SampledHooks::TakeInSlowPath(pid_t thread, Event* event, const void** frames, size_t* depth) {
  const Entry entry = EnterSlowPathPatiently();
  const bool taken = entry != Entry::kReentrant && Take(thread, event);
  if (taken && event->sample.stack != 0) {
    const StackTable::Reader reader(stacks_);
    const std::span<const uintptr_t> stack = reader.frames(event->sample.stack);
    std::transform(stack.begin(), stack.end(), frames,
                   [](uintptr_t frame) { return reinterpret_cast<const void*>(frame); });
    *depth = stack.size();
    stacks_.Release(event->sample.stack);
  }
  LeaveSlowPath(entry);
  return taken;
}

void SampledHooks::Report(const Event& event, const void* const* frames, size_t depth) {
  const Sample& sample = event.sample;
  const int64_t age = MonotonicNanoseconds() - sample.time_ns;
  const SampledAllocation report{.handle = HandleOf(event.id, sample.time_ns),
                                 .requested_size = sample.requested,
                                 .requested_alignment = sample.alignment,
                                 .allocated_size = sample.allocated,
                                 .weight = sample.weight,
                                 .stack = {frames, depth},
                                 .allocation_time = decltype(SampledAllocation::allocation_time)(
                                     std::chrono::nanoseconds(WallNanoseconds() - age)),
                                 .ptr = reinterpret_cast<const void*>(sample.address)};
  Invoke<Hook, const SampledAllocation&>(list(event.of_free), report);
}

void SampledHooks::CallNoted() {
  const int saved_errno = errno;
  const pid_t thread = system_calls.gettid();
  Event event;
  const void* frames[kMostFrames];
  size_t depth = 0;
  while (TakeInSlowPath(thread, &event, frames, &depth)) {
    Report(event, frames, depth);
    depth = 0;
  }
  errno = saved_errno;
}

}  // namespace tcmalloc
