// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap/chores.h"

#include "heap/heap.h"

namespace tcmalloc {
namespace {

Cache* CacheOf(ThreadHeader* own) { return own != nullptr ? Cache::Of(own) : nullptr; }

}  // namespace

size_t Chores::CountThreadCaches() { return heap_.caches().count(); }

void Chores::ReturnIdleOfThreads(size_t count, ThreadHeader* own) {
  heap_.caches().ReleaseIdle(count, CacheOf(own));
}

void Chores::ReturnIdleOfCpus() { heap_.cpus().ReleaseIdle(); }

void Chores::ReturnUnused(SourceTurns& turns, uint32_t count) {
  turns.ReturnUnused(heap_.lists(), count);
}

size_t Chores::FullBytes(ThreadHeader* own) { return Cache::Of(own)->full_bytes(); }

void Chores::ReturnLargeObjects(ThreadHeader* own) { heap_.ReturnLargeObjects(CacheOf(own)); }

bool Chores::RefreshLimits(int64_t now, Limits::Reader reader) {
  return heap_.RefreshLimits(now, reader);
}

bool Chores::FollowsCgroup() { return heap_.limits().follows_cgroup(); }

bool Chores::IsAwaited() { return heap_.gate().closed(); }

}  // namespace tcmalloc
