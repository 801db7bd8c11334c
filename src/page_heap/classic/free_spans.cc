// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/classic/free_spans.h"

#include <bit>

#include "base/check.h"

namespace tcmalloc {

Span* FreeSpans::Longest() const {
  if (!long_.empty()) return long_.Longest();
  for (size_t word = kWords; word-- > 0;) {
    if (nonempty_[word] == 0) continue;
    return lists_[word * kWordBits + static_cast<size_t>(std::bit_width(nonempty_[word])) - 1]
        .back();
  }
  return nullptr;
}

void FreeSpans::AddRuns(Length FreeRuns::* memory, FreeRunCounts* counts) const {
  static_assert(FreeRunCounts::kListed == kLists - 1);
  Length listed;
  for (size_t length = 1; length < kLists; ++length) {
    counts->Add(Length(length), counts_[length], memory);
    listed += Length(length * counts_[length]);
  }
  counts->longer.count += long_count_;
  counts->longer.*memory += total_ - listed;
}

size_t FreeSpans::CheckInvariants(Span::State state) const {
  size_t count = 0;
  Length listed;
  for (size_t length = 0; length < kLists; ++length) {
    const IntrusiveList<Span>& list = lists_[length];
    TCMALLOC_CHECK_EQ(list.size(), counts_[length]);
    TCMALLOC_CHECK_EQ(IsMarked(length), !list.empty());
    for (const Span* span = list.front(); span != nullptr; span = list.next(span)) {
      TCMALLOC_CHECK_EQ(span->length, Length(length));
      TCMALLOC_CHECK(span->state == state);
      listed += span->length;
      ++count;
    }
  }
  TCMALLOC_CHECK_EQ(long_.CheckInvariants(), long_count_);
  TCMALLOC_CHECK_LE(listed, total_);
  return count + long_count_;
}

}  // namespace tcmalloc
