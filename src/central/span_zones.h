// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The spans of each thread, beside each other.

#ifndef TCMALLOC_CENTRAL_SPAN_ZONES_H_
#define TCMALLOC_CENTRAL_SPAN_ZONES_H_

#include <cstddef>
#include <cstdint>

#include "base/spin_lock.h"
#include "base/thread_annotations.h"
#include "central/recent_threads.h"
#include "page_heap/span_source.h"
#include "pages/page_types.h"
#include "pages/span.h"

namespace tcmalloc {

// A SpanSource for all central free lists. Once two threads have asked for spans, the next ones of
// each thread lie together, whatever their size classes. Spans that threads get in turn would lie
// in turn, too, and a processor that fetches lines ahead fetches those that another one writes:
// see Takers.
//
// Remembers where the last kMost threads go on, which costs no memory: the pages there are free.
// Each further thread goes on in the place of the one that is forgotten, so that any number of
// threads begins no more than kMost zones. Thread safe.
template <PlacingSpanSource PageHeap>
class SpanZones {
 public:
  constexpr explicit SpanZones(PageHeap& page_heap) : page_heap_(page_heap) {}
  SpanZones(const SpanZones&) = delete;
  SpanZones& operator=(const SpanZones&) = delete;

  Span* New(Length n) TCMALLOC_EXCLUDES(lock_) {
    // A long span touches few others.
    if (n > kMostZoned) return page_heap_.New(n);
    const void* thread = __builtin_thread_pointer();
    const Place place = PlaceOf(thread);
    // Without the lock, because this may take long.
    Span* span = place.alone ? page_heap_.New(n) : page_heap_.NewNear(n, place.next);
    if (span != nullptr) GoOnBehind(span, thread);
    return span;
  }
  Span* NewAligned(Length n, Length alignment) { return page_heap_.NewAligned(n, alignment); }
  void Delete(Span* span) { page_heap_.Delete(span); }
  bool is_shared() const { return page_heap_.is_shared(); }

 private:
  static constexpr uint32_t kMost = 16;
  static constexpr Length kMostZoned = Length::FromBytesCeil(size_t{16} << 10);

  // Where the next span of a thread shall begin.
  struct Place {
    PageId next;
    bool alone;  // no other thread has asked for spans
  };

  Place PlaceOf(const void* thread) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    const PageId next = nexts_.Find(thread).place;
    return {next, nexts_.count() == 1};
  }
  void GoOnBehind(const Span* span, const void* thread) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    nexts_.Find(thread).place = span->end();
  }

  PageHeap& page_heap_;
  SpinLock lock_{LockRank::kSpanZones};
  RecentThreads<PageId, kMost> nexts_ TCMALLOC_GUARDED_BY(lock_);
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CENTRAL_SPAN_ZONES_H_
