// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/huge/huge_spans.h"

#include <algorithm>

#include "base/bits.h"
#include "base/check.h"
#include "page_heap/fit.h"

namespace tcmalloc {
namespace {

using Place = HugePageTracker::Place;
using Contents = HugePageTracker::Contents;
using State = Span::State;

PageId HugePageEnd(PageId page) { return HugePage::Containing(page).end_page(); }

// Returns true if some unused pages are free and others returned.
bool IsMixed(const HugePageTracker* tracker) {
  return tracker->free() > Length(0) && tracker->returned() > Length(0);
}

// Returns the index of a page in the hugepage of `tracker`.
size_t OffsetIn(const HugePageTracker* tracker, PageId page) {
  return (page - tracker->hugepage.first_page()).pages();
}

}  // namespace

HugeSpans::SharedPlace HugeSpans::FindShared(Length n, Length alignment) const {
  HugePageTracker* tracker = filler_.Find(n, alignment);
  if (tracker == nullptr) return {};
  return {tracker, tracker->BestFit(n.pages(), alignment.pages())};
}

const Span* HugeSpans::FindFree(Length n, Length alignment, Length most_returned) {
  const Span* range = ranges_.Find(State::kFree, n, alignment);
  if (range == nullptr && ReclaimEmpty(most_returned)) {
    range = ranges_.Find(State::kFree, n, alignment);
  }
  return range;
}

PageId HugeSpans::FindWhole(Length n, Length alignment, Length most_returned) {
  const Span* range = FindFree(n, alignment, most_returned);
  if (range == nullptr) range = ranges_.Find(State::kReturned, n, alignment);
  return range != nullptr ? AlignedStart(range, alignment) : PageId(0);
}

PageId HugeSpans::FindLong(Length n, Length alignment, Length most_returned) {
  const Span* range = FindFree(n, alignment, most_returned);
  if (range != nullptr) return AlignedStart(range, alignment);
  const PageId across = ranges_.FindAcross(n, alignment);
  if (across != PageId(0)) return across;
  range = ranges_.Find(State::kReturned, n, alignment);
  return range != nullptr ? AlignedStart(range, alignment) : PageId(0);
}

Length HugeSpans::LengthAvailableAtEnd() const {
  const HeapRegions::Region* newest = blocks_.first();
  return newest != nullptr ? ranges_.LengthEndingAt(newest->end()) : Length(0);
}

bool HugeSpans::ReclaimEmpty(Length most_returned) {
  bool reclaimed = false;
  HugePageTracker* tracker = filler_.FindEmpty();
  while (tracker != nullptr && tracker->returned() <= most_returned) {
    most_returned -= tracker->returned();
    Span* record = pool_.New();
    if (record == nullptr) break;
    const Length returned = tracker->returned();
    returned_ -= returned;
    free_ += returned;
    filler_.Remove(tracker);
    MakeRange(record, {tracker->hugepage.first_page(), kPagesPerHugePage}, State::kFree, false);
    reclaimed = true;
    tracker = filler_.FindEmpty();
  }
  return reclaimed;
}

PageId HugeSpans::StartBefore(PageId first, Length n, Length alignment) const {
  const HugePageTracker* tracker = SharedAt(first - Length(1));
  if (tracker == nullptr || tracker->place != Place::kFiller) return first;
  Length left_over;
  tracker->ForEachUnusedRun([&](size_t page, size_t pages) {
    if (page + pages == HugePageTracker::kPages) left_over = Length(pages);
  });
  const PageId start(AlignUp((first - left_over).index(), alignment.pages()));
  return start + n > first ? std::min(start, first) : first;
}

PageId HugeSpans::FindAnywhere(Length n, Length alignment) const {
  PageId begin;
  PageId end;
  PageId found;
  ForEach([&](const Span& span) {
    if (found != PageId(0)) return;
    const bool unused = span.state == State::kFree || span.state == State::kReturned;
    if (span.first != end || !unused) begin = span.first;
    end = unused ? span.end() : PageId(0);
    const PageId start(AlignUp(begin.index(), alignment.pages()));
    if (unused && start + n <= end) found = start;
  });
  return found;
}

Length HugeSpans::CountReturned(PageRange pages) const {
  Length returned;
  const PageId end = pages.first + pages.length;
  for (PageId page = pages.first; page < end;) {
    PageId piece_end = std::min(end, HugePageEnd(page));
    if (const HugePageTracker* tracker = SharedAt(page)) {
      returned +=
          Length(tracker->CountReturned(OffsetIn(tracker, page), (piece_end - page).pages()));
    } else {
      const Span* range = ranges_.Containing(page);
      piece_end = std::min(end, range->end());
      if (range->state == State::kReturned) returned += piece_end - page;
    }
    page = piece_end;
  }
  return returned;
}

Span* HugeSpans::Take(PageRange pages) {
  Span* span = pool_.New();
  if (span == nullptr) return nullptr;
  bool zeroed = true;
  if (!Claim(pages, /*extends=*/false, &zeroed)) {
    pool_.Delete(span);
    return nullptr;
  }
  span->first = pages.first;
  span->length = pages.length;
  span->zeroed = zeroed;
  span->state = State::kLarge;
  map_.SetEnds(span);
  return span;
}

Span* HugeSpans::Take(SharedPlace place, Length n) {
  Span* span = pool_.New();
  if (span == nullptr) return nullptr;
  span->first = place.tracker->hugepage.first_page() + Length(place.first);
  span->length = n;
  span->zeroed = ClaimInFiller(place.tracker, place.first, n, /*new_allocation=*/true);
  span->state = State::kLarge;
  map_.SetEnds(span);
  return span;
}

// Makes trackers for the hugepages at both ends, because they may have to be shared.
bool HugeSpans::MakeTrackers(PageRange pages) {
  const PageId end = pages.first + pages.length;
  for (const PageId border : {pages.first, end}) {
    if (!IsHugeAligned(border) && trackers_.GetOrMake(HugePage::Containing(border)) == nullptr) {
      return false;
    }
  }
  return true;
}

// Only the first step can fail, before anything has changed: all later steps take a range from its
// beginning.
bool HugeSpans::Claim(PageRange pages, bool extends, bool* zeroed) {
  if (!MakeTrackers(pages)) return false;
  const PageId end = pages.first + pages.length;
  for (PageId page = pages.first; page < end;) {
    HugePageTracker* tracker = SharedAt(page);
    if (tracker == nullptr) {
      Span* range = ranges_.Containing(page);
      const PageId whole_end =
          std::min(PageId(AlignDown(end.index(), kPagesPerHugePage.pages())), range->end());
      if (IsHugeAligned(page) && page < whole_end) {
        const Length n = whole_end - page;
        const State state = range->state;
        *zeroed &= range->zeroed;
        if (!ranges_.Carve(range, page, n)) return false;
        (state == State::kFree ? free_ : returned_) -= n;
        page = whole_end;
        continue;
      }
      tracker = ShareFrom(range, HugePage::Containing(page).first_page(), Contents::kBlocks);
      if (tracker == nullptr) return false;
      const bool tail = pages.length > kPagesPerHugePage;
      filler_.Update(tracker, [&] { tracker->tail = tail; });
    }
    const PageId piece_end = std::min(end, HugePageEnd(page));
    const bool continued = extends && page == pages.first && !IsHugeAligned(page);
    *zeroed &= ClaimIn(tracker, page, piece_end, !continued);
    page = piece_end;
  }
  return true;
}

// Claims pages in the filler. Returns true if they read as zero.
bool HugeSpans::ClaimInFiller(HugePageTracker* tracker, size_t first, Length n,
                              bool new_allocation) {
  HugePageTracker::Claimed claimed;
  filler_.Update(tracker, [&] { claimed = tracker->Claim(first, n.pages(), new_allocation); });
  returned_ -= claimed.returned;
  free_ -= n - claimed.returned;
  return claimed.zeroed;
}

// Claims pages of a hugepage in any place, which may thereby come to lie wholly inside one span.
bool HugeSpans::ClaimIn(HugePageTracker* tracker, PageId first, PageId end, bool new_allocation) {
  const size_t offset = OffsetIn(tracker, first);
  const Length n = end - first;
  if (tracker->place == Place::kFiller) {
    const bool zeroed = ClaimInFiller(tracker, offset, n, new_allocation);
    // A hugepage wholly inside one span is not shared. Hugepages inside a span that are not shared
    // are thus always adjacent.
    const bool inside = tracker->used() == kPagesPerHugePage && tracker->allocations() == 1;
    if (inside) filler_.Remove(tracker);
    return zeroed;
  }
  const auto claimed = tracker->Claim(offset, n.pages(), new_allocation);
  returned_ -= claimed.returned;
  free_ -= n - claimed.returned;
  return claimed.zeroed;
}

HugePageTracker* HugeSpans::Share(PageId first, Contents contents) {
  if (trackers_.GetOrMake(HugePage::Containing(first)) == nullptr) return nullptr;
  return ShareFrom(ranges_.Containing(first), first, contents);
}

// Requires that the hugepage has a tracker.
HugePageTracker* HugeSpans::ShareFrom(Span* range, PageId first, Contents contents) {
  const bool returned = range->state == State::kReturned;
  const bool zeroed = range->zeroed;
  if (!ranges_.Carve(range, first, kPagesPerHugePage)) return nullptr;
  HugePageTracker* tracker = trackers_.Get(HugePage::Containing(first));
  tracker->Reset(returned, zeroed);
  tracker->contents = contents;
  if (returned) tracker->backed = false;
  filler_.Insert(tracker);
  return tracker;
}

bool HugeSpans::AddRegion(PageId first) {
  Span* range = ranges_.Containing(first);
  const bool returned = range->state == State::kReturned;
  const bool zeroed = range->zeroed;
  if (range->first != first) return false;
  if (!regions_.Add(HugePage::Containing(first), returned, zeroed)) return false;
  const bool carved = ranges_.Carve(range, first, HugeRegions::kLength);
  TCMALLOC_DCHECK(carved);
  return carved;
}

Span* HugeSpans::AddFresh(PageId first, Length length, bool zeroed) {
  const size_t hugepages = length.pages() / kPagesPerHugePage.pages();
  if (!filler_.Reserve(arena_)) return nullptr;
  if (!trackers_.Ensure(HugePage::Containing(first), hugepages)) return nullptr;
  Span* record = pool_.New();
  if (record == nullptr) return nullptr;
  if (!blocks_.Add(first, length)) {
    pool_.Delete(record);
    return nullptr;
  }
  returned_ += length;
  MakeRange(record, {first, length}, State::kReturned, zeroed);
  return record;
}

Length HugeSpans::UnusedFrom(PageId page, Length most) const {
  Length unused;
  while (unused < most) {
    const PageId next = page + unused;
    if (const HugePageTracker* tracker = SharedAt(next)) {
      const size_t offset = OffsetIn(tracker, next);
      const size_t used = tracker->NextUsed(offset);
      unused += Length(used - offset);
      if (used < HugePageTracker::kPages) break;
    } else {
      const Span* range = ranges_.BeginningAt(next);
      if (range == nullptr) break;
      unused += range->length;
    }
  }
  return unused;
}

bool HugeSpans::Extend(Span* span, Length n, Length most_returned) {
  const PageRange missing{span->end(), n - span->length};
  if (UnusedFrom(missing.first, missing.length) < missing.length) return false;
  if (CountReturned(missing) > most_returned) return false;
  bool zeroed = true;
  if (!Claim(missing, /*extends=*/true, &zeroed)) return false;
  span->length = n;
  span->zeroed = false;
  map_.SetEnds(span);
  return true;
}

Length HugeSpans::MissingAtEnd(const Span* span, Length n, Length most_returned) const {
  const Length gained = n - span->length;
  const Length unused = UnusedFrom(span->end(), gained);
  if (unused >= gained || span->end() + unused != blocks_.first()->end()) return Length(0);
  const Length missing = gained - unused;
  const Length returned = CountReturned({span->end(), unused});
  return returned + missing <= most_returned ? missing : Length(0);
}

Span* HugeSpans::SplitTail(Span* span, Length n) {
  const PageId cut = span->first + n;
  const bool splits = !IsHugeAligned(cut);
  if (splits && trackers_.GetOrMake(HugePage::Containing(cut)) == nullptr) return nullptr;
  Span* tail = pool_.New();
  if (tail == nullptr) return nullptr;
  if (splits) SplitAllocationAt(cut);
  tail->first = cut;
  tail->length = span->length - n;
  tail->state = span->state;
  tail->zeroed = span->zeroed;
  span->length = n;
  map_.SetEnds(span);
  map_.SetEnds(tail);
  return tail;
}

void HugeSpans::SplitAllocationAt(PageId cut) {
  HugePageTracker* tracker = trackers_.Get(HugePage::Containing(cut));
  if (tracker->place != Place::kNone) {
    Update(tracker, [&] { tracker->SplitAllocation(); });
    return;
  }
  tracker->ResetUsed();
  tracker->contents = Contents::kBlocks;
  tracker->SplitAllocation();
  filler_.Insert(tracker);
}

void HugeSpans::Retire(Span* record) {
  record->state = State::kUnused;
  pool_.Delete(record);
}

void HugeSpans::MakeRange(Span* record, PageRange pages, State state, bool zeroed) {
  record->first = pages.first;
  record->length = pages.length;
  record->state = state;
  record->zeroed = zeroed && state == State::kReturned;
  record->size_class = 0;
  ranges_.Put(record);
}

void HugeSpans::Free(Span* span, State state, bool zeroed) {
  const PageId first = span->first;
  const PageId end = span->end();
  (state == State::kFree ? free_ : returned_) += span->length;
  PageRange whole;
  for (PageId page = first; page < end;) {
    const PageId piece_end = std::min(end, HugePageEnd(page));
    if (HugePageTracker* tracker = SharedAt(page)) {
      FreeIn(tracker, page, piece_end, state, zeroed);
    } else {
      if (whole.length == Length(0)) whole.first = page;
      TCMALLOC_DCHECK(whole.first + whole.length == page);
      whole.length += kPagesPerHugePage;
    }
    page = piece_end;
  }
  if (whole.length > Length(0)) {
    MakeRange(span, whole, state, zeroed);
  } else {
    Retire(span);
  }
  FreeTrackers(first, end);
}

void HugeSpans::FreeInOne(HugePageTracker* tracker, Span* span) {
  free_ += span->length;
  const size_t first = OffsetIn(tracker, span->first);
  filler_.Update(tracker, [&] { tracker->Unclaim(first, span->length.pages(), false, false); });
  Retire(span);
  if (tracker->used() == Length(0)) Vacate(tracker);
}

void HugeSpans::FreeIn(HugePageTracker* tracker, PageId first, PageId end, State state,
                       bool zeroed) {
  const bool returned = state == State::kReturned;
  Update(tracker, [&] {
    if (returned) NoteBroken(tracker);
    tracker->Unclaim(OffsetIn(tracker, first), (end - first).pages(), returned, zeroed);
  });
}

void HugeSpans::NoteBroken(HugePageTracker* tracker) {
  if (tracker->backed) {
    tracker->backed = false;
    ++broken_;
  }
  if (tracker->newly_broken) return;
  tracker->newly_broken = true;
  tracker->next_broken = newly_broken_;
  newly_broken_ = tracker;
}

HugePageTracker* HugeSpans::NextBroken() {
  while (HugePageTracker* tracker = newly_broken_) {
    newly_broken_ = tracker->next_broken;
    tracker->newly_broken = false;
    const bool shared = tracker->place != Place::kNone && tracker->used() > Length(0);
    if (shared && tracker->returned() > Length(0)) return tracker;
  }
  return nullptr;
}

// Stops sharing the hugepages that nobody uses any longer.
void HugeSpans::FreeTrackers(PageId first, PageId end) {
  for (PageId page = first; page < end; page = HugePageEnd(page)) {
    HugePageTracker* tracker = SharedAt(page);
    if (tracker != nullptr && tracker->used() == Length(0)) Vacate(tracker);
  }
}

void HugeSpans::Vacate(HugePageTracker* tracker) {
  if (tracker->place == Place::kFiller) {
    // Short spans may soon need the hugepage again. One such hugepage is kept, so that it does not
    // go back and forth with every other span. Long spans can get it too: see ReclaimEmpty.
    if (IsMixed(tracker)) return;
    if (tracker->free() > Length(0) && filler_.empty_ones() == 1) return;
    filler_.Remove(tracker);
    MakeWhole(tracker);
    return;
  }
  HugePage first;
  if (!regions_.Dissolve(tracker->hugepage, &first)) return;
  for (size_t i = 0; i < HugeRegions::kHugePages; ++i) MakeWhole(trackers_.Get(first + i));
}

// Makes an unused hugepage whole. If it is mixed, or if no memory for a record can be had, it stays
// shared, for the time being by nobody.
void HugeSpans::MakeWhole(HugePageTracker* tracker) {
  const bool returned = tracker->free() == Length(0);
  Span* record = IsMixed(tracker) ? nullptr : pool_.New();
  if (record == nullptr) {
    filler_.Insert(tracker);
    return;
  }
  MakeRange(record, {tracker->hugepage.first_page(), kPagesPerHugePage},
            returned ? State::kReturned : State::kFree,
            tracker->ReadsAsZero(0, HugePageTracker::kPages));
}

void HugeSpans::AssumeBacked(HugePageTracker* tracker) {
  Length were_returned;
  Update(tracker, [&] {
    were_returned = tracker->AssumeResident();
    tracker->backed = true;
  });
  returned_ -= were_returned;
  free_ += were_returned;
}

HugePageTracker* HugeSpans::ProposeCollapse() {
  HugePageTracker* tracker = filler_.FindCollapsible();
  if (tracker != nullptr) filler_.Update(tracker, [&] { tracker->collapse_tried = true; });
  return tracker;
}

PageRange HugeSpans::NextRelease(Length most, Breaking breaking) const {
  if (const Span* range = ranges_.Longest(State::kFree)) {
    // The end goes first, because requests are served from the beginning.
    const Length n = std::min<Length>(range->length, RoundDownToHugePages(most));
    return {range->end() - n, n};
  }
  const HugePageTracker* tracker = filler_.FindEmptiest(
      breaking == Breaking::kOfBlocks ? kMostTried : 1, [&](const auto* shared) {
        return shared->used() == Length(0) || MayBreak(shared, breaking);
      });
  if (tracker == nullptr || tracker->used() > Length(0)) {
    const HugePageTracker* in_region =
        regions_.FindWithFreeMemory(breaking == Breaking::kForbidden);
    if (in_region != nullptr && (tracker == nullptr || in_region->used() == Length(0))) {
      tracker = in_region;
    }
  }
  if (tracker == nullptr) return {};
  const HugePageTracker::Run run = tracker->LongestFree();
  const size_t n = std::min(run.length, most.pages());
  return {tracker->hugepage.first_page() + Length(run.first + run.length - n), Length(n)};
}

Span* HugeSpans::BeginRelease(Length most, Breaking breaking) {
  const PageRange pages = NextRelease(most, breaking);
  Span* span = pages.length > Length(0) ? Take(pages) : nullptr;
  if (span != nullptr) BeginRelease(span);
  return span;
}

void HugeSpans::BeginRelease(Span* span) {
  span->state = State::kInTransit;
  releasing_.PushFront(span);
  in_transit_ += span->length;
  ++releases_begun_;
}

void HugeSpans::EndRelease(Span* span, bool released, bool zeroed) {
  releasing_.Remove(span);
  in_transit_ -= span->length;
  ++releases_ended_;
  Free(span, released ? State::kReturned : State::kFree, zeroed);
}

PageHeapStats HugeSpans::stats() const {
  PageHeapStats stats;
  stats.system = blocks_.total();
  stats.free = free_;
  stats.returned = returned_;
  stats.in_transit = in_transit_;
  stats.spans = pool_.live();
  return stats;
}

const HeapRegions::Region* HugeSpans::BlockFrom(PageId page) const {
  const HeapRegions::Region* lowest = nullptr;
  for (const HeapRegions::Region* block = blocks_.first(); block != nullptr; block = block->next) {
    if (block->end() > page && (lowest == nullptr || block->first < lowest->first)) lowest = block;
  }
  return lowest;
}

size_t HugeSpans::CountFreeRunsAt(PageId page, PageId* end, FreeRunCounts* counts) const {
  *end = HugePageEnd(page);
  const HugePageTracker* tracker = SharedAt(page);
  if (tracker == nullptr) {
    if (const Span* range = ranges_.BeginningAt(page)) {
      const bool returned = range->state == State::kReturned;
      counts->Add(range->length, 1, returned ? &FreeRuns::without : &FreeRuns::with_memory);
      *end = range->end();
    }
    return 1;
  }
  size_t records = 1;
  if (!IsMixed(tracker)) {
    const auto memory = tracker->free() > Length(0) ? &FreeRuns::with_memory : &FreeRuns::without;
    tracker->ForEachUnusedRun([&](size_t, size_t n) {
      counts->Add(Length(n), 1, memory);
      ++records;
    });
    return records;
  }
  for (size_t at = tracker->NextUnused(0); at < HugePageTracker::kPages;) {
    const HugePageTracker::Run run = tracker->UnusedRun(at);
    const bool returned = tracker->IsReturned(at);
    counts->Add(Length(run.length), 1, returned ? &FreeRuns::without : &FreeRuns::with_memory);
    at = tracker->NextUnused(at + run.length);
    ++records;
  }
  return records;
}

bool HugeSpans::CountFreeRuns(PageId* next, FreeRunCounts* counts) const {
  size_t records = 0;
  if (*next == PageId(0)) {
    for (const Span* span = releasing_.front(); span != nullptr; span = releasing_.next(span)) {
      counts->Add(span->length, 1, &FreeRuns::with_memory);
      ++records;
    }
  }
  bool more = true;
  while (more && records < kRecordsPerPart) {
    const HeapRegions::Region* block = BlockFrom(*next);
    more = block != nullptr;
    if (!more) break;
    *next = std::max(*next, block->first);
    while (*next < block->end() && records < kRecordsPerPart) {
      records += CountFreeRunsAt(*next, next, counts);
    }
  }
  counts->NoteHold(records);
  return more;
}

const Span* HugeSpans::SpanAt(PageId page, Span* buffer) const {
  const HugePageTracker* tracker = SharedAt(page);
  if (tracker == nullptr) return map_.Get(page);
  const size_t offset = OffsetIn(tracker, page);
  if (tracker->IsUsed(offset)) return map_.Get(page);
  const HugePageTracker::Run run = tracker->UnusedRun(offset);
  buffer->first = page;
  buffer->length = Length(run.length);
  buffer->state = tracker->IsReturned(offset) ? State::kReturned : State::kFree;
  buffer->zeroed = tracker->IsReturned(offset) && tracker->ReadsAsZero(offset, run.length);
  return buffer;
}

namespace {

// The result of a walk over all spans.
struct HugeCensus {
  Length total;
  Length free;
  Length returned;
  Length in_transit;
  size_t records = 0;
  size_t ranges = 0;
  size_t parts = 0;  // of spans, in shared hugepages

  void Count(const Span& span) {
    total += span.length;
    TCMALLOC_CHECK(span.length > Length(0));
    TCMALLOC_CHECK(span.state != State::kUnused);
    if (span.state == State::kFree) free += span.length;
    if (span.state == State::kReturned) returned += span.length;
    if (span.state == State::kInTransit) in_transit += span.length;
  }
};

}  // namespace

void HugeSpans::CheckInvariants() const {
  HugeCensus census;
  size_t allocations = 0;
  size_t shared = 0;
  ForEach([&](const Span& span) {
    census.Count(span);
    const bool unused = span.state == State::kFree || span.state == State::kReturned;
    const bool is_range = unused && SharedAt(span.first) == nullptr;
    if (is_range) {
      ++census.ranges;
      TCMALLOC_CHECK(IsHugeAligned(span.first) && IsHugeAligned(span.end()));
      const Span* right = ranges_.BeginningAt(span.end());
      TCMALLOC_CHECK(right == nullptr || right->state != span.state);
    }
    if (is_range || !unused) {
      ++census.records;
      TCMALLOC_CHECK(map_.Get(span.first) == &span);
      TCMALLOC_CHECK(map_.Get(span.end() - kOnePage) == &span);
    }
    for (PageId page = span.first; page < span.end(); page = HugePageEnd(page)) {
      const HugePageTracker* tracker = SharedAt(page);
      TCMALLOC_CHECK(tracker == nullptr || !is_range);
      TCMALLOC_CHECK(tracker != nullptr || page == HugePage::Containing(page).first_page());
      TCMALLOC_CHECK(tracker != nullptr || HugePageEnd(page) <= span.end());
      if (tracker == nullptr) continue;
      const PageId piece_end = std::min(span.end(), HugePageEnd(page));
      const size_t next = unused ? tracker->NextUsed(OffsetIn(tracker, page))
                                 : tracker->NextUnused(OffsetIn(tracker, page));
      TCMALLOC_CHECK_LE(OffsetIn(tracker, piece_end), next);
      if (!unused) ++census.parts;
      if (piece_end == HugePageEnd(page)) {
        allocations += tracker->allocations();
        ++shared;
        if (tracker->place == Place::kRegion) tracker->CheckInvariants();
      }
    }
  });
  TCMALLOC_CHECK_EQ(census.total, blocks_.total());
  TCMALLOC_CHECK_EQ(census.free, free_);
  TCMALLOC_CHECK_EQ(census.returned, returned_);
  TCMALLOC_CHECK_EQ(census.in_transit, in_transit_);
  TCMALLOC_CHECK_EQ(census.records, pool_.live());
  TCMALLOC_CHECK_EQ(census.ranges, ranges_.CheckInvariants());
  TCMALLOC_CHECK_EQ(census.parts, allocations);
  TCMALLOC_CHECK_EQ(shared, filler_.hugepages() + regions_.count() * HugeRegions::kHugePages);
  filler_.CheckInvariants();
}

}  // namespace tcmalloc
