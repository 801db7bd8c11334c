// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/huge/huge_ranges.h"

#include <algorithm>

#include "base/bits.h"
#include "base/check.h"

namespace tcmalloc {
namespace {

bool IsRange(const Span* span) {
  return span->state == Span::State::kFree || span->state == Span::State::kReturned;
}

bool Fits(const Span* range, Length n, Length alignment) {
  return PageId(AlignUp(range->first.index(), alignment.pages())) + n <= range->end();
}

}  // namespace

Span* HugeRanges::Find(Span::State state, Length n, Length alignment) const {
  n = RoundUpToHugePages(n);
  alignment = std::max(alignment, kPagesPerHugePage);
  Span* range = tree(state).BestFit(n);
  if (range == nullptr || Fits(range, n, alignment)) return range;
  return tree(state).BestFit(n + alignment - kPagesPerHugePage);
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
