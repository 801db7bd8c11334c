// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/huge/huge_ranges.h"

#include <algorithm>

#include "base/bits.h"
#include "base/check.h"
#include "page_heap/fit.h"

namespace tcmalloc {
namespace {

bool IsRange(const Span* span) {
  return span->state == Span::State::kFree || span->state == Span::State::kReturned;
}

// Returns the number of the n pages that lie in the range.
Length Overlap(const Span* range, PageId first, Length n) {
  const PageId begin = std::max<PageId>(range->first, first);
  const PageId end = std::min(range->end(), first + n);
  return begin < end ? end - begin : Length(0);
}

}  // namespace

Span* HugeRanges::Find(Span::State state, Length n, Length alignment) const {
  n = RoundUpToHugePages(n);
  alignment = std::max(alignment, kPagesPerHugePage);
  Span* range = tree(state).BestFit(n);
  if (range == nullptr || Fits(range, n, alignment)) return range;
  return tree(state).BestFit(n + alignment - kPagesPerHugePage);
}

// Returns the window that begins with `free`. If there is too little space behind that, the window
// ends where the space ends.
auto HugeRanges::WindowAround(const Span* free, Length n, Length alignment) const -> Window {
  Window window{PageId(AlignUp(free->first.index(), alignment.pages())), Length(0)};
  PageId end = free->end();
  int steps = 0;
  while (end < window.first + n && steps++ < kMostSteps) {
    const Span* right = BeginningAt(end);
    if (right == nullptr) break;
    if (right->state == Span::State::kReturned) window.returned += Overlap(right, window.first, n);
    end = right->end();
  }
  if (window.first + n <= end) return window;
  if (end.index() < n.pages()) return {};
  window.first = PageId(AlignDown((end - n).index(), alignment.pages()));
  for (PageId begin = free->first; window.first < begin;) {
    const Span* left = EndingAt(begin);
    if (left == nullptr || steps++ >= kMostSteps) return {};
    if (left->state == Span::State::kReturned) window.returned += Overlap(left, window.first, n);
    begin = left->first;
  }
  return window;
}

PageId HugeRanges::FindAcross(Length n, Length alignment) const {
  n = RoundUpToHugePages(n);
  alignment = std::max(alignment, kPagesPerHugePage);
  Window best{PageId(0), n};
  int tried = 0;
  free_.ForEachFromLongest([&](const Span* free) {
    const Window window = WindowAround(free, n, alignment);
    if (window.first != PageId(0) && window.returned < best.returned) best = window;
    return ++tried < kMostTried;
  });
  return best.first;
}

Length HugeRanges::LengthEndingAt(PageId page) const {
  PageId begin = page;
  for (int steps = 0; steps < kMostSteps; ++steps) {
    const Span* left = EndingAt(begin);
    if (left == nullptr) break;
    begin = left->first;
  }
  return page - begin;
}

Span* HugeRanges::EndingAt(PageId page) const {
  Span* span = map_.Get(page - Length(1));
  return span != nullptr && IsRange(span) && span->end() == page ? span : nullptr;
}

Span* HugeRanges::BeginningAt(PageId page) const {
  Span* span = map_.Get(page);
  return span != nullptr && IsRange(span) && span->first == page ? span : nullptr;
}

Span* HugeRanges::Containing(PageId page) const {
  for (PageId first = HugePage::Containing(page).first_page();; first = first - kPagesPerHugePage) {
    Span* range = BeginningAt(first);
    if (range != nullptr) {
      TCMALLOC_DCHECK(range->Contains(page));
      return range;
    }
  }
}

bool HugeRanges::Carve(Span* range, PageId first, Length n) {
  const PageId end = first + n;
  TCMALLOC_DCHECK(IsHugeAligned(first) && IsHugeAligned(end));
  TCMALLOC_DCHECK(range->first <= first && end <= range->end());
  Span* behind = nullptr;
  if (range->first < first && end < range->end()) {
    behind = pool_.New();
    if (behind == nullptr) return false;
    behind->first = end;
    behind->length = range->end() - end;
    behind->state = range->state;
    behind->zeroed = range->zeroed;
  }
  Remove(range);
  if (range->first < first) {
    range->length = first - range->first;
    Insert(range);
  } else if (end < range->end()) {
    range->length = range->end() - end;
    range->first = end;
    Insert(range);
  } else {
    Retire(range);
  }
  if (behind != nullptr) Insert(behind);
  return true;
}

void HugeRanges::Put(Span* range) {
  TCMALLOC_DCHECK(IsHugeAligned(range->first) && IsHugeAligned(range->end()));
  Span* left = map_.Get(range->first - Length(1));
  if (left != nullptr && left->state == range->state && left->end() == range->first) {
    Remove(left);
    range->first = left->first;
    range->length += left->length;
    range->zeroed &= left->zeroed;
    Retire(left);
  }
  Span* right = map_.Get(range->end());
  if (right != nullptr && right->state == range->state && right->first == range->end()) {
    Remove(right);
    range->length += right->length;
    range->zeroed &= right->zeroed;
    Retire(right);
  }
  Insert(range);
}

void HugeRanges::Insert(Span* range) {
  const bool free = range->state == Span::State::kFree;
  (free ? free_ : returned_).Insert(range);
  (free ? free_total_ : returned_total_) += range->length;
  map_.SetEnds(range);
}

void HugeRanges::Remove(Span* range) {
  const bool free = range->state == Span::State::kFree;
  (free ? free_ : returned_).Remove(range);
  (free ? free_total_ : returned_total_) -= range->length;
}

void HugeRanges::Retire(Span* range) {
  range->state = Span::State::kUnused;
  pool_.Delete(range);
}

size_t HugeRanges::CheckInvariants() const {
  return free_.CheckInvariants() + returned_.CheckInvariants();
}

}  // namespace tcmalloc
