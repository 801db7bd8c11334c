// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/classic/heap_spans.h"

#include <algorithm>

#include "base/bits.h"
#include "base/check.h"
#include "page_heap/fit.h"
#include "page_heap/huge/huge_page.h"

namespace tcmalloc {
namespace {

// Returns the number of pages that has room for n aligned pages wherever it begins.
Length LengthForAny(Length n, Length alignment) { return n + alignment - kOnePage; }

// Returns the alignment of n pages in `span`.
Length AlignmentIn(const Span* span, Length n, const Placement& placement) {
  if (!placement.zoned) return placement.alignment;
  const bool new_zone = span->state == Span::State::kReturned && span->first != placement.near &&
                        Fits(span, n, Placement::kZone);
  return new_zone ? Placement::kZone : kOnePage;
}

}  // namespace

Length HeapSpans::RoomIn(const Span* span) const {
  if (span->state != Span::State::kReturned) return Length(0);
  const Span* left = map_.Get(span->first - kOnePage);
  const bool grows = left != nullptr && left->state == Span::State::kLarge && left->grows;
  return grows ? left->length.value() : Length(0);
}

PageId HeapSpans::StartIn(const Span* span, Length n, const Placement& placement) const {
  const Length alignment = AlignmentIn(span, n, placement);
  const Length room = RoomIn(span);
  if (TCMALLOC_LIKELY(room == Length(0))) return AlignedStart(span, alignment);
  const Length needed = std::min<Length>(span->length, placement.roomy ? n + n : n);
  const Length spare = span->length - needed;
  const PageId behind(AlignUp((span->first + std::min(room, spare)).index(), alignment.pages()));
  const PageId last(AlignDown((span->end() - n).index(), alignment.pages()));
  return std::min(behind, last);
}

// Returns the shortest span of `state` with n pages, or the longest one if the shortest is the room
// of a growing block and the longest is not.
Span* HeapSpans::Shortest(Span::State state, Length n) const {
  Span* shortest = list(state).BestFit(n);
  if (shortest == nullptr || TCMALLOC_LIKELY(RoomIn(shortest) == Length(0))) return shortest;
  Span* longest = returned_.Longest();
  return RoomIn(longest) == Length(0) ? longest : shortest;
}

// Returns a span in which n pages that shall be able to grow by as many leave the room of a growing
// block alone.
Span* HeapSpans::FindRoomy(Span::State state, Length n) const {
  Span* span = Shortest(state, n + n);
  return span != nullptr && span->length >= RoomIn(span) + n + n ? span : nullptr;
}

// Returns the span at `near` or the shortest one, as for any request. Where nothing is resident,
// one with a whole zone comes before the shortest: it costs addresses only.
Span* HeapSpans::FindInZone(Span::State state, Length n, PageId near) const {
  Span* shortest = Shortest(state, n);
  if (shortest == nullptr) return nullptr;
  Span* next = map_.Get(near);
  const bool fits =
      next != nullptr && next->state == state && next->first == near && next->length >= n;
  if (fits) return next;
  if (state == Span::State::kFree) return shortest;
  Span* with_zone =
      returned_.BestFit(LengthForAny(std::max(n, Placement::kZone), Placement::kZone));
  return with_zone != nullptr ? with_zone : shortest;
}

// Returns a span no shorter than `span` in which n aligned pages fit; null if there is none of the
// first few lengths, and none that has room for them wherever it begins.
Span* HeapSpans::FindAligned(Span* span, Length n, Length alignment) const {
  const FreeSpans& spans = list(span->state);
  for (int i = 0; span != nullptr && !Fits(span, n, alignment); ++i) {
    const Length longer = span->length + kOnePage;
    span =
        spans.BestFit(i < kAlignedProbes ? longer : std::max(longer, LengthForAny(n, alignment)));
  }
  return span;
}

Span* HeapSpans::Find(Span::State state, Length n, const Placement& placement) const {
  if (placement.zoned) return FindInZone(state, n, placement.near);
  if (placement.roomy) return FindRoomy(state, n);
  Span* span = Shortest(state, n);
  if (TCMALLOC_LIKELY(placement.alignment == kOnePage) || span == nullptr) return span;
  return FindAligned(span, n, placement.alignment);
}

// Counts those of the first n pages of a span, which become resident now, that went back to offset
// growth.
void HeapSpans::NoteTaken(Span* span, Length n) {
  if (span->state != Span::State::kReturned) return;
  const uintptr_t again = std::min(span->details, n.pages());
  span->details -= again;
  retaken_ += Length(again);
}

// Gives each part of a returned span that was cut in two its share of the pages that went back to
// offset growth: the first ones, because most are taken first.
void HeapSpans::ShareOffset(Span* head, Span* tail, uintptr_t pages) {
  head->details = std::min(pages, head->length.pages());
  tail->details = pages - head->details;
}

Span* HeapSpans::Take(Span* span, Length n, const Placement& placement) {
  list(span->state).Remove(span);
  const PageId start = StartIn(span, n, placement);
  if (start != span->first) {
    Span* head = SplitHead(span, start - span->first);
    if (head == nullptr) {
      MergeAndList(span);
      return nullptr;
    }
    list(head->state).Insert(head);
  }
  if (span->length > n) {
    Span* rest = span;
    span = SplitHead(rest, n);
    if (span == nullptr) {
      MergeAndList(rest);
      return nullptr;
    }
    list(rest->state).Insert(rest);
  }
  NoteTaken(span, n);
  span->state = Span::State::kLarge;
  return span;
}

Span* HeapSpans::Free(Span* span) {
  span->state = Span::State::kFree;
  span->size_class = 0;
  span->grows = false;
  span->zeroed = false;
  span->details = 0;
  MergeAndList(span);
  return span;
}

Span* HeapSpans::AddFresh(PageId first, Length length, bool zeroed) {
  Span* span = pool_.New();
  if (span == nullptr) return nullptr;
  if (!regions_.Add(first, length)) {
    pool_.Delete(span);
    return nullptr;
  }
  span->first = first;
  span->length = length;
  span->zeroed = zeroed;
  span->state = Span::State::kReturned;
  map_.SetEnds(span);
  MergeAndList(span);
  return span;
}

bool HeapSpans::Extend(Span* span, Length n, Length most_returned) {
  Length returned;
  for (Length reach = span->length; reach < n;) {
    const Span* right = map_.Get(span->first + reach);
    if (right == nullptr || !IsFreeOrReturned(right)) return false;
    if (right->state == Span::State::kReturned)
      returned += std::min<Length>(right->length, n - reach);
    reach += right->length;
  }
  if (returned > most_returned) return false;
  while (span->length < n) {
    Span* right = map_.Get(span->end());
    list(right->state).Remove(right);
    const Length missing = n - span->length;
    NoteTaken(right, missing);
    if (right->length > missing) {
      right->first = right->first + missing;
      right->length -= missing;
      span->length = n;
      map_.SetEnds(right);
      list(right->state).Insert(right);
    } else {
      span->length += right->length;
      Retire(right);
    }
  }
  span->zeroed = false;
  map_.SetEnds(span);
  return true;
}

Length HeapSpans::MissingAtEnd(const Span* span, Length n, Length most_returned) const {
  const PageId heap_end = regions_.first()->end();
  PageId end = span->end();
  Length returned;
  while (end < heap_end) {
    const Span* right = map_.Get(end);
    if (right == nullptr || !IsFreeOrReturned(right)) return Length(0);
    if (right->state == Span::State::kReturned) returned += right->length;
    end = right->end();
  }
  if (end != heap_end || end >= span->first + n) return Length(0);
  const Length missing = span->first + n - end;
  return returned + missing <= most_returned ? missing : Length(0);
}

Length HeapSpans::MakeFree(PageId first, Length most) {
  Span* span = map_.Get(first);
  const bool is_returned =
      span != nullptr && span->state == Span::State::kReturned && span->Contains(first);
  if (!is_returned || most == Length(0)) return Length(0);
  returned_.Remove(span);
  if (span->first < first) {
    Span* head = span;
    span = SplitTail(head, first - head->first);
    returned_.Insert(head);
    if (span == nullptr) return Length(0);
  }
  if (span->length > most) {
    Span* tail = SplitTail(span, most);
    if (tail == nullptr) {
      MergeAndList(span);
      return Length(0);
    }
    returned_.Insert(tail);
  }
  const Length made = span->length;
  span->state = Span::State::kFree;
  span->zeroed = false;
  span->details = 0;
  MergeAndList(span);
  return made;
}

Span* HeapSpans::SplitTail(Span* span, Length n) {
  Span* tail = pool_.New();
  if (tail == nullptr) return nullptr;
  tail->first = span->first + n;
  tail->length = span->length - n;
  tail->state = span->state;
  tail->zeroed = span->zeroed;
  span->length = n;
  if (span->state == Span::State::kReturned) ShareOffset(span, tail, span->details);
  map_.SetEnds(span);
  map_.SetEnds(tail);
  return tail;
}

Span* HeapSpans::SplitHead(Span* span, Length n) {
  Span* head = pool_.New();
  if (head == nullptr) return nullptr;
  head->first = span->first;
  head->length = n;
  head->state = span->state;
  head->zeroed = span->zeroed;
  span->first = head->end();
  span->length -= n;
  ShareOffset(head, span, span->details);
  map_.SetEnds(head);
  map_.Set(span->first, span);
  return head;
}

void HeapSpans::Retire(Span* record) {
  record->state = Span::State::kUnused;
  pool_.Delete(record);
}

void HeapSpans::AbsorbLeft(Span* span, Span* left) {
  list(left->state).Remove(left);
  span->first = left->first;
  span->length += left->length;
  span->details += left->details;
  span->zeroed &= left->zeroed;
  map_.Set(span->first, span);
  Retire(left);
}

void HeapSpans::AbsorbRight(Span* span, Span* right) {
  list(right->state).Remove(right);
  span->length += right->length;
  span->details += right->details;
  span->zeroed &= right->zeroed;
  map_.Set(right->first, span);
  map_.Set(span->end() - kOnePage, span);
  Retire(right);
}

void HeapSpans::MergeAndList(Span* span) {
  Span* left = map_.Get(span->first - kOnePage);
  if (left != nullptr && left->state == span->state) AbsorbLeft(span, left);
  Span* right = map_.Get(span->end());
  if (right != nullptr && right->state == span->state) AbsorbRight(span, right);
  list(span->state).Insert(span);
}

Span* HeapSpans::FirstOfRun(Length n, Length most_returned) const {
  const Span* first = nullptr;
  PageId end;
  Length returned;
  bool found = false;
  ForEach([&](const Span& span) {
    if (found || !IsFreeOrReturned(&span)) return;
    if (first == nullptr || span.first != end || returned > most_returned) {
      first = &span;
      returned = Length(0);
    }
    end = span.end();
    if (span.state == Span::State::kReturned) returned += span.length;
    found = end - first->first >= n && returned <= most_returned;
  });
  return found ? map_.Get(first->first) : nullptr;
}

Span* HeapSpans::MergeRun(Length n, Length alignment, Length most_returned) {
  const Length needed = LengthForAny(n, alignment);
  Span* span = FirstOfRun(needed, most_returned);
  if (span == nullptr) return nullptr;
  list(span->state).Remove(span);
  NoteTaken(span, span->length);
  while (span->length < needed) {
    Span* right = map_.Get(span->end());
    NoteTaken(right, right->length);
    AbsorbRight(span, right);
  }
  span->zeroed = false;
  span->state = Span::State::kFree;
  MergeAndList(span);
  return span;
}

// Returns the page of `span` from which on no more than `most` pages go.
PageId HeapSpans::CutForRelease(const Span* span, Length most, Cuts cuts) {
  const PageId cut = span->end() - most;
  return cuts == Cuts::kAnywhere ? cut : PageId(AlignUp(cut.index(), kPagesPerHugePage.pages()));
}

Span* HeapSpans::BeginRelease(Length most, Cuts cuts) {
  Span* span = free_.Longest();
  if (span == nullptr) return nullptr;
  if (span->length > most) {
    const PageId cut = CutForRelease(span, most, cuts);
    if (cut >= span->end()) return nullptr;
    free_.Remove(span);
    Span* tail = SplitTail(span, cut - span->first);
    free_.Insert(span);
    if (tail != nullptr) {
      free_.Insert(tail);
      span = tail;
    }
  }
  BeginRelease(span);
  return span;
}

void HeapSpans::BeginRelease(Span* free) {
  free_.Remove(free);
  free->state = Span::State::kInTransit;
  releasing_.PushFront(free);
  in_transit_ += free->length;
  ++releases_begun_;
}

void HeapSpans::EndRelease(Span* span, bool released, bool zeroed) {
  releasing_.Remove(span);
  in_transit_ -= span->length;
  ++releases_ended_;
  span->state = released ? Span::State::kReturned : Span::State::kFree;
  span->zeroed = released && zeroed;
  MergeAndList(span);
}

PageHeapStats HeapSpans::stats() const {
  PageHeapStats stats;
  stats.system = regions_.total();
  stats.free = free_.total();
  stats.returned = returned_.total();
  stats.in_transit = in_transit_;
  stats.spans = pool_.live();
  return stats;
}

bool HeapSpans::CountFreeRuns(PageId*, FreeRunCounts* counts) const {
  free_.AddRuns(&FreeRuns::with_memory, counts);
  returned_.AddRuns(&FreeRuns::without, counts);
  size_t records = 2 * FreeSpans::kLists;
  for (const Span* span = releasing_.front(); span != nullptr; span = releasing_.next(span)) {
    counts->Add(span->length, 1, &FreeRuns::with_memory);
    ++records;
  }
  counts->NoteHold(records);
  return false;
}

namespace {

// The result of a walk over all spans.
struct HeapCensus {
  Length total;
  Length free;
  Length returned;
  Length in_transit;
  size_t spans = 0;
  size_t free_spans = 0;
  size_t returned_spans = 0;

  void Count(const Span& span) {
    total += span.length;
    ++spans;
    switch (span.state) {
      case Span::State::kFree:
        free += span.length;
        ++free_spans;
        break;
      case Span::State::kReturned:
        returned += span.length;
        ++returned_spans;
        break;
      case Span::State::kInTransit:
        in_transit += span.length;
        break;
      case Span::State::kUnused:
        TCMALLOC_CHECK(span.state != Span::State::kUnused);
        break;
      case Span::State::kLarge:
      case Span::State::kSmall:
      case Span::State::kSampled:
        break;
    }
  }
};

}  // namespace

void HeapSpans::CheckInvariants() const {
  HeapCensus census;
  ForEach([&](const Span& span) {
    TCMALLOC_CHECK(span.length > Length(0));
    TCMALLOC_CHECK(map_.Get(span.first) == &span);
    TCMALLOC_CHECK(map_.Get(span.end() - kOnePage) == &span);
    const Span* right = map_.Get(span.end());
    TCMALLOC_CHECK(right == nullptr || right->first == span.end());
    TCMALLOC_CHECK(right == nullptr || !IsFreeOrReturned(&span) || right->state != span.state);
    TCMALLOC_CHECK(span.state != Span::State::kFree || (!span.zeroed && span.details == 0));
    TCMALLOC_CHECK(span.state != Span::State::kReturned || span.details <= span.length.pages());
    census.Count(span);
  });
  TCMALLOC_CHECK_EQ(census.total, regions_.total());
  TCMALLOC_CHECK_EQ(census.free, free_.total());
  TCMALLOC_CHECK_EQ(census.returned, returned_.total());
  TCMALLOC_CHECK_EQ(census.in_transit, in_transit_);
  TCMALLOC_CHECK_EQ(census.spans, pool_.live());
  TCMALLOC_CHECK_EQ(census.free_spans, free_.CheckInvariants(Span::State::kFree));
  TCMALLOC_CHECK_EQ(census.returned_spans, returned_.CheckInvariants(Span::State::kReturned));
}

}  // namespace tcmalloc
