// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "allocator/slow_path.h"

#include <cerrno>

#include "allocator/checked_block.h"
#include "central/sampled_page.h"

namespace tcmalloc {

SlowPath::SlowPath() : saved_errno_(errno), entry_(EnterSlowPath()) {}

SlowPath::SlowPath(Patient) : saved_errno_(errno), entry_(EnterSlowPathPatiently()) {}

SlowPath::~SlowPath() {
  if (TCMALLOC_UNLIKELY(!heap.deferred().empty()) && !reentrant()) {
    // Past the lists of the thread, which may be in a handler that interrupted a fast path between
    // the instruction that reads the head of such a list and the one that writes it.
    heap.deferred().Drain([](void* block) { FreeTo(Entry::kUncached, block); });
  }
  Housekeeping& housekeeping = heap.housekeeping();
  if (!reentrant() && housekeeping.PollIsDue() && housekeeping.Poll(OwnThread())) {
    Threads<SizeClassLists>::ScheduleSlowPath(entry_);
  }
  LeaveSlowPath(entry_);
  if (TCMALLOC_UNLIKELY(heap.errands().any()) && !reentrant()) RunErrands();
  errno = saved_errno_;
}

void SlowPath::RunErrands() {
  if (heap.errands().TakeBackground()) heap.background().Restart();
  CallNotedHooks();
}

void* SlowPath::AllocateObject(uint8_t c, size_t size) const {
  switch (entry_) {
    case Entry::kThreadCache:
      return OwnCache()->AllocateSlow(c, size);
    case Entry::kCpuCache:
      return heap.cpus().Allocate(CpuThread::Of(current_thread.header()), c, size);
    default:
      return FetchOne(heap.transfer(c), heap.codec());
  }
}

void* SlowPath::MoveSample(void* object, uint8_t c, const SampledRequest& request) const {
  void* sample = object != nullptr ? NewSampledObject(object, c, request) : nullptr;
  if (sample == nullptr) return object;
  if (!RecordSmallSample(sample, object, request)) DeallocateObject(object, c);
  return sample;
}

void SlowPath::DeallocateTo(Entry entry, void* object, uint8_t c) {
  switch (entry) {
    case Entry::kThreadCache:
      return Threads<SizeClassLists>::CacheOf(entry)->FreeSlow(object, c);
    case Entry::kCpuCache:
      return heap.cpus().Deallocate(CpuThread::Of(current_thread.header()), object, c);
    default:
      heap.codec().Link(object, heap.codec().end);
      return heap.transfer(c).Insert({ReferenceTo(object), 1});
  }
}

void SlowPath::FreeTo(Entry entry, void* block) {
  if (TCMALLOC_UNLIKELY(heap.emergency().Owns(block))) {
    heap.emergency().Free(block);
    return;
  }
  if (TCMALLOC_UNLIKELY(heap.guarded().Owns(block))) return FreeGuardedBlock(block);
  Span* span = CheckedSpanOf(block);
  if (TCMALLOC_LIKELY(span->state == Span::State::kSmall)) {
    CheckNotFree(span, block);
    if (TCMALLOC_UNLIKELY(span->first_sample != 0)) NoteObjectFreed(span, block);
    DeallocateTo(entry, block, span->size_class);
  } else {
    FreeOtherTo(entry, span, block);
  }
}

// Frees a block in a span of its own, or among samples.
void SlowPath::FreeOtherTo(Entry entry, Span* span, const void* block) {
  if (TCMALLOC_UNLIKELY(span->state == Span::State::kSampled)) {
    const uint8_t c = ClassOfSampled(span, block);
    void* twin = FreeSampledObject(span, block);
    if (twin != nullptr) DeallocateTo(entry, twin, c);
    return;
  }
  if (TCMALLOC_UNLIKELY(span->sample() != 0)) NoteSampleFreed(span->sample());
  heap.page_heap().Delete(span);
  heap.housekeeping().NoteBlockFreed();
}

size_t SlowPath::OwnCachedBytes() const {
  const Cache* own = OwnCache();
  return own != nullptr ? own->CountBytes() : 0;
}

ShedBytes SlowPath::Shed(Length least, ReleaseCause cause) const {
  return heap.Shed(OwnCache(), least, cause);
}

}  // namespace tcmalloc
