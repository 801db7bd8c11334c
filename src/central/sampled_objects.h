// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Memory for small objects that are samples.

#ifndef TCMALLOC_CENTRAL_SAMPLED_OBJECTS_H_
#define TCMALLOC_CENTRAL_SAMPLED_OBJECTS_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/bits.h"
#include "base/intrusive_list.h"
#include "base/relaxed.h"
#include "base/spin_lock.h"
#include "central/corruption.h"
#include "page_heap/span_source.h"
#include "pages/metadata_arena.h"
#include "pages/page_map.h"
#include "pages/span.h"
#include "size_class/size_classes.h"

namespace tcmalloc {

struct SampledObjectsStats {
  size_t span_bytes = 0;
  size_t in_use_bytes = 0;
};

// Keeps sampled objects in spans of their own, many to a span. The pages of these spans have no
// class in the page map's window, so that each free of such an object takes the slow path by
// itself, and no other free pays for it. Each object has a slot that names its sample.
//
// Thread safe.
template <SpanSource PageHeap>
class SampledObjects {
 public:
  constexpr SampledObjects(PageHeap& page_heap, PageMap& page_map, MetadataArena& arena)
      : page_heap_(page_heap), page_map_(page_map), arena_(arena) {}
  SampledObjects(const SampledObjects&) = delete;
  SampledObjects& operator=(const SampledObjects&) = delete;

  // Returns an object of class `c`, without a sample. Null if no memory can be had.
  void* New(uint8_t c) TCMALLOC_EXCLUDES(lock_);

  // Takes back an object of `span` and returns its sample. Crashes if it is free already.
  SampleId Delete(Span* span, const void* object) TCMALLOC_EXCLUDES(lock_);

  // Names the sample of an object, which the caller owns.
  void SetSample(const void* object, SampleId sample) {
    const Span* span = page_map_.Get(PageId::Containing(object));
    Slots(span)[IndexIn(span, object)] = sample;
  }

  SampledObjectsStats stats() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    return stats_;
  }

 private:
  using Slot = Relaxed<SampleId>;
  // A slot is 0 while its object is free.
  static constexpr SampleId kNoSample = UINT32_MAX;
  static constexpr size_t kSlotSizes = 12;

  // Free arrays of one size are linked through their first word.
  struct FreeSlots {
    FreeSlots* next;
  };
  struct Lists {
    IntrusiveList<Span> with_room[kSizeClassCount];
    FreeSlots* free_slots[kSlotSizes];
  };

  static Slot* Slots(const Span* span) { return reinterpret_cast<Slot*>(span->free_list); }
  static size_t IndexIn(const Span* span, const void* object) {
    const auto offset = static_cast<size_t>(static_cast<const char*>(object) - span->start());
    return ObjectIndex(offset, span->size_class);
  }
  // A power of two, and enough bytes for a link.
  static size_t SlotCount(uint32_t objects) {
    return std::max<size_t>(std::bit_ceil(size_t{objects}), sizeof(FreeSlots) / sizeof(Slot));
  }

  bool EnsureLists() TCMALLOC_REQUIRES(lock_);
  Slot* NewSlots(uint32_t objects) TCMALLOC_REQUIRES(lock_);
  void DeleteSlots(Slot* slots, uint32_t objects) TCMALLOC_REQUIRES(lock_);
  void* TakeFrom(Span* span) TCMALLOC_REQUIRES(lock_);
  void* TryNew(uint8_t c) TCMALLOC_EXCLUDES(lock_);
  void* TakeFromNew(Span* span, uint8_t c) TCMALLOC_EXCLUDES(lock_);

  PageHeap& page_heap_;
  PageMap& page_map_;
  MetadataArena& arena_;
  SpinLock lock_{LockRank::kSampledObjects};
  Lists* lists_ TCMALLOC_GUARDED_BY(lock_) = nullptr;  // null until there is a sample
  SampledObjectsStats stats_ TCMALLOC_GUARDED_BY(lock_);
};

template <SpanSource PageHeap>
bool SampledObjects<PageHeap>::EnsureLists() {
  if (TCMALLOC_LIKELY(lists_ != nullptr)) return true;
  void* memory = arena_.Allocate(sizeof(Lists), alignof(Lists));
  if (memory == nullptr) return false;
  lists_ = new (memory) Lists();
  return true;
}

template <SpanSource PageHeap>
typename SampledObjects<PageHeap>::Slot* SampledObjects<PageHeap>::NewSlots(uint32_t objects) {
  const size_t count = SlotCount(objects);
  FreeSlots*& free = lists_->free_slots[std::countr_zero(count)];
  void* memory = free;
  if (memory != nullptr) {
    free = free->next;
  } else {
    memory = arena_.Allocate(count * sizeof(Slot), alignof(FreeSlots));
    if (memory == nullptr) return nullptr;
  }
  return new (memory) Slot[count]();
}

template <SpanSource PageHeap>
void SampledObjects<PageHeap>::DeleteSlots(Slot* slots, uint32_t objects) {
  FreeSlots*& free = lists_->free_slots[std::countr_zero(SlotCount(objects))];
  free = new (slots) FreeSlots{free};
}

// Takes the first free object of a span that has one.
template <SpanSource PageHeap>
void* SampledObjects<PageHeap>::TakeFrom(Span* span) {
  const uint8_t c = span->size_class;
  Slot* slots = Slots(span);
  const auto index =
      static_cast<size_t>(std::find(slots, slots + span->capacity, SampleId{0}) - slots);
  slots[index] = kNoSample;
  span->allocated += 1;
  if (span->allocated == span->capacity) lists_->with_room[c].Remove(span);
  stats_.in_use_bytes += kSizeClasses[c].size;
  return span->start() + index * kSizeClasses[c].size;
}

template <SpanSource PageHeap>
void* SampledObjects<PageHeap>::TryNew(uint8_t c) {
  SpinLockHolder holder(lock_);
  if (!EnsureLists()) return nullptr;
  Span* span = lists_->with_room[c].front();
  return span != nullptr ? TakeFrom(span) : nullptr;
}

// Adds a span for objects of class `c` and takes its first, before other threads take them all.
// Null if no memory can be had for its slots.
template <SpanSource PageHeap>
void* SampledObjects<PageHeap>::TakeFromNew(Span* span, uint8_t c) {
  const auto objects = static_cast<uint32_t>(span->bytes() / kSizeClasses[c].size);
  SpinLockHolder holder(lock_);
  Slot* slots = EnsureLists() ? NewSlots(objects) : nullptr;
  if (slots == nullptr) return nullptr;
  span->free_list = reinterpret_cast<uintptr_t>(slots);
  span->allocated = 0;
  span->capacity = objects;
  span->size_class = c;
  span->state = Span::State::kSampled;
  page_map_.Register(span);
  lists_->with_room[c].PushFront(span);
  stats_.span_bytes += span->bytes();
  return TakeFrom(span);
}

template <SpanSource PageHeap>
void* SampledObjects<PageHeap>::New(uint8_t c) {
  if (void* object = TryNew(c)) return object;
  Span* span = page_heap_.New(Length::FromBytesCeil(kSizeClasses[c].size));
  if (span == nullptr) return nullptr;
  if (void* object = TakeFromNew(span, c)) return object;
  page_heap_.Delete(span);
  return nullptr;
}

template <SpanSource PageHeap>
SampleId SampledObjects<PageHeap>::Delete(Span* span, const void* object) {
  const uint8_t c = span->size_class;
  const size_t index = IndexIn(span, object);
  SampleId sample = 0;
  {
    SpinLockHolder holder(lock_);
    if (index >= span->capacity) CrashOnStray(object, span);
    Slot& slot = Slots(span)[index];
    sample = slot;
    if (TCMALLOC_UNLIKELY(sample == 0)) CrashOnDoubleFree(object, kSizeClasses[c].size);
    slot = 0;
    stats_.in_use_bytes -= kSizeClasses[c].size;
    if (span->allocated == span->capacity) lists_->with_room[c].PushFront(span);
    span->allocated -= 1;
    if (span->allocated > 0) return sample == kNoSample ? 0 : sample;
    lists_->with_room[c].Remove(span);
    stats_.span_bytes -= span->bytes();
    DeleteSlots(Slots(span), span->capacity);
  }
  page_heap_.Delete(span);
  return sample == kNoSample ? 0 : sample;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CENTRAL_SAMPLED_OBJECTS_H_
