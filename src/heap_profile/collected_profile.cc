// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/collected_profile.h"

#include <new>

#include "allocator/slow_path.h"
#include "heap_profile/early_stacks.h"
#include "heap_profile/fragmentation.h"
#include "system/clock.h"
#include "system/own_memory.h"

namespace tcmalloc {
namespace {

void AddUser(ProfileKind kind) {
  profiles.allocated.AddUser();
  if (kind == ProfileKind::kLifetimes) profiles.freed.AddUser();
}

void RemoveUser(ProfileKind kind) {
  profiles.allocated.RemoveUser();
  if (kind == ProfileKind::kLifetimes) profiles.freed.RemoveUser();
}

}  // namespace

CollectedProfile* CollectedProfile::New(ProfileKind kind) {
  void* memory = MapZeroed(sizeof(CollectedProfile));
  if (memory == nullptr) return nullptr;
  auto* profile = new (memory) CollectedProfile;
  profile->kind = kind;
  profile->period = heap.sample_period();
  profile->begin_ns = MonotonicNanoseconds();
  profile->end_ns = profile->begin_ns;
  profile->wall_begin_ns = WallNanoseconds();
  return profile;
}

CollectedProfile* CollectedProfile::Take(ProfileKind kind) {
  SlowPath slow_path(SlowPath::Patient{});
  if (slow_path.reentrant()) return nullptr;
  CollectedProfile* profile = New(kind);
  if (profile == nullptr) return nullptr;
  early_stacks.WalkAll(stack_table);
  if (kind == ProfileKind::kPeakHeap) {
    profiles.peak.CopyTo(&profile->rows);
  } else {
    profile->CollectLive();
  }
  if (kind == ProfileKind::kFragmentation) EstimatePinnedBytes(profile->rows.mutable_rows());
  return profile;
}

CollectedProfile* CollectedProfile::Begin(ProfileKind kind) {
  SlowPath slow_path(SlowPath::Patient{});
  if (slow_path.reentrant()) return nullptr;
  return BeginWithHeap(kind, heap.sample_period());
}

CollectedProfile* CollectedProfile::BeginWithHeap(ProfileKind kind, uint64_t period) {
  CollectedProfile* profile = New(kind);
  if (profile == nullptr) return nullptr;
  profile->period = period;
  profile->running = true;
  AddUser(kind);
  profile->left_out_before_ = profile->Log().left_out();
  return profile;
}

void CollectedProfile::End() {
  if (!running) return;
  SlowPath slow_path(SlowPath::Patient{});
  if (slow_path.reentrant()) return;
  running = false;
  early_stacks.WalkAll(stack_table);
  end_ns = MonotonicNanoseconds();
  kind == ProfileKind::kLifetimes ? CollectLifetimes() : CollectAllocations();
  rows.NoteLeftOut(Log().left_out() - left_out_before_);
  RemoveUser(kind);
}

void CollectedProfile::Delete() {
  End();
  {
    // A fork of another thread would leave the child with a sweep of the stacks that never ends.
    const SlowPath slow_path(SlowPath::Patient{});
    rows.Free(stack_table);
  }
  UnmapZeroed(this, sizeof(CollectedProfile));
}

SampleLog& CollectedProfile::Log() const {
  return kind == ProfileKind::kLifetimes ? profiles.freed : profiles.allocated;
}

// Collects the blocks in use. What other threads have allocated since the profile began is left
// out: its stack may not have been walked yet.
void CollectedProfile::CollectLive() {
  const StackTable::Reader reader(stack_table);
  sample_table.ForEach([&](Sample sample) {
    if (sample.time_ns > begin_ns) return;
    if (sample.stack != 0) sample.stack = reader.FirstEqual(sample.stack);
    rows.Append({.sample = sample}, stack_table);
  });
  rows.NoteLeftOut(sample_table.stats().left_out);
}

void CollectedProfile::CollectAllocations() {
  const StackTable::Reader reader(stack_table);
  profiles.allocated.ForEach([this](const ProfileRow& row) {
    if (row.sample.time_ns >= begin_ns) rows.Append(row, stack_table);
  });
}

// Collects the lifetimes of blocks. The lifetime of a block that was there before the profile
// began, or that is there at its end, is only known to be longer than the part that was seen
// (censored).
void CollectedProfile::CollectLifetimes() {
  const StackTable::Reader reader(stack_table);
  profiles.freed.ForEach([this](ProfileRow row) {
    if (row.end_ns < begin_ns) return;
    row.censored = row.sample.time_ns < begin_ns;
    rows.Append(row, stack_table);
  });
  sample_table.ForEach([this](const Sample& sample) {
    if (sample.time_ns < begin_ns) return;
    rows.Append({.sample = sample, .end_ns = end_ns, .censored = true}, stack_table);
  });
}

}  // namespace tcmalloc
