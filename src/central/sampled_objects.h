// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Memory for small objects that are samples.

#ifndef TCMALLOC_CENTRAL_SAMPLED_OBJECTS_H_
#define TCMALLOC_CENTRAL_SAMPLED_OBJECTS_H_

#include <cstddef>
#include <cstdint>
#include <new>

#include "base/attributes.h"
#include "base/intrusive_list.h"
#include "base/spin_lock.h"
#include "central/corruption.h"
#include "central/sampled_page.h"
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

// Keeps sampled objects in pages of their own, which objects of all classes share, so that a
// program with few samples has few such pages. These have no class in the page map's window, so
// that each free of such an object takes the slow path by itself, and no other free pays for it.
//
// Thread safe.
template <SpanSource PageHeap>
class SampledObjects {
 public:
  constexpr SampledObjects(PageHeap& page_heap, PageMap& page_map, MetadataArena& arena)
      : page_heap_(page_heap), page_map_(page_map), arena_(arena) {}
  SampledObjects(const SampledObjects&) = delete;
  SampledObjects& operator=(const SampledObjects&) = delete;

  // Returns an object of class `c`, of less than a page, without a sample. Null if no memory can be
  // had.
  void* New(uint8_t c) TCMALLOC_EXCLUDES(lock_);

  // Takes back an object of `span` and returns its sample. Crashes if it is free already.
  SampleId Delete(Span* span, const void* object) TCMALLOC_EXCLUDES(lock_);

  // Names the sample of an object, which the caller owns.
  void SetSample(const void* object, SampleId sample) {
    const Span* span = page_map_.Get(PageId::Containing(object));
    SampledPage::Of(span).samples[PlaceIn(span, object)] = sample;
  }

  SampledObjectsStats stats() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    return stats_;
  }

 private:
  // Bounds the spans in which one object looks for room.
  static constexpr int kMostProbes = 32;

  // Free records are linked through their first word.
  struct FreePage {
    FreePage* next;
  };

  // Returns false if the last object of `span` was freed by now. Its record is another one's then.
  static bool HasObjects(const Span* span) {
    return span->state == Span::State::kSampled && span->allocated > 0;
  }
  static size_t PlaceIn(const Span* span, const void* object) {
    const auto offset = static_cast<size_t>(static_cast<const char*>(object) - span->start());
    return offset / SampledPage::kUnitBytes;
  }

  SampledPage* NewPage() TCMALLOC_REQUIRES(lock_);
  void* TakeFrom(Span* span, size_t place, uint8_t c) TCMALLOC_REQUIRES(lock_);
  void* TryNew(uint8_t c) TCMALLOC_EXCLUDES(lock_);
  void* TakeFromNew(Span* span, uint8_t c) TCMALLOC_EXCLUDES(lock_);

  PageHeap& page_heap_;
  PageMap& page_map_;
  MetadataArena& arena_;
  SpinLock lock_{LockRank::kSampledObjects};
  // Spans with units that are not used. The one that had most lately an object freed, or is newest,
  // comes first.
  IntrusiveList<Span> with_room_ TCMALLOC_GUARDED_BY(lock_);
  FreePage* free_pages_ TCMALLOC_GUARDED_BY(lock_) = nullptr;
  SampledObjectsStats stats_ TCMALLOC_GUARDED_BY(lock_);
};

template <SpanSource PageHeap>
SampledPage* SampledObjects<PageHeap>::NewPage() {
  void* memory = free_pages_;
  if (memory != nullptr) {
    free_pages_ = free_pages_->next;
  } else {
    memory = arena_.Allocate(sizeof(SampledPage), alignof(SampledPage));
    if (memory == nullptr) return nullptr;
  }
  return new (memory) SampledPage();
}

template <SpanSource PageHeap>
void* SampledObjects<PageHeap>::TakeFrom(Span* span, size_t place, uint8_t c) {
  SampledPage::Of(span).Take(place, c, 0);
  span->allocated += static_cast<uint32_t>(SampledPage::UnitsOf(c));
  if (span->allocated == span->capacity) with_room_.Remove(span);
  stats_.in_use_bytes += kSizeClasses[c].size;
  return span->start() + place * SampledPage::kUnitBytes;
}

template <SpanSource PageHeap>
void* SampledObjects<PageHeap>::TryNew(uint8_t c) {
  SpinLockHolder holder(lock_);
  Span* span = with_room_.front();
  for (int probes = 0; span != nullptr && probes < kMostProbes; ++probes) {
    const size_t place = SampledPage::Of(span).FindRoom(c);
    if (place != SampledPage::kNoPlace) return TakeFrom(span, place, c);
    span = with_room_.next(span);
  }
  return nullptr;
}

// Adds a page and takes an object of class `c` there, before other threads fill it. Null if no
// memory can be had for its record.
template <SpanSource PageHeap>
void* SampledObjects<PageHeap>::TakeFromNew(Span* span, uint8_t c) {
  SpinLockHolder holder(lock_);
  SampledPage* page = NewPage();
  if (page == nullptr) return nullptr;
  span->details = reinterpret_cast<uintptr_t>(page);
  span->allocated = 0;
  span->capacity = SampledPage::kUnits;
  span->size_class = SampledPage::kUnitClass;
  span->state = Span::State::kSampled;
  page_map_.Register(span);
  with_room_.PushFront(span);
  stats_.span_bytes += span->bytes();
  return TakeFrom(span, 0, c);
}

template <SpanSource PageHeap>
void* SampledObjects<PageHeap>::New(uint8_t c) {
  if (void* object = TryNew(c)) return object;
  Span* span = page_heap_.New(Length(1));
  if (span == nullptr) return nullptr;
  if (void* object = TakeFromNew(span, c)) return object;
  page_heap_.Delete(span);
  return nullptr;
}

template <SpanSource PageHeap>
SampleId SampledObjects<PageHeap>::Delete(Span* span, const void* object) {
  SampleId sample = 0;
  {
    SpinLockHolder holder(lock_);
    if (TCMALLOC_UNLIKELY(!HasObjects(span))) CrashOnDoubleFree(object, 0);
    const uint8_t c = ClassOfSampled(span, object);
    if (c == 0) CrashOnStray(object, span);
    SampledPage& page = SampledPage::Of(span);
    const size_t place = PlaceIn(span, object);
    if (TCMALLOC_UNLIKELY(!page.InUse(place))) CrashOnDoubleFree(object, kSizeClasses[c].size);
    sample = page.samples[place];
    page.Leave(place);
    stats_.in_use_bytes -= kSizeClasses[c].size;
    if (span->allocated < span->capacity) with_room_.Remove(span);
    span->allocated -= static_cast<uint32_t>(SampledPage::UnitsOf(c));
    if (span->allocated > 0) {
      with_room_.PushFront(span);
      return sample;
    }
    stats_.span_bytes -= span->bytes();
    free_pages_ = new (&page) FreePage{free_pages_};
  }
  page_heap_.Delete(span);
  return sample;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CENTRAL_SAMPLED_OBJECTS_H_
