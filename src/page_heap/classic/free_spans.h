// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The unused spans of one state.

#ifndef TCMALLOC_PAGE_HEAP_CLASSIC_FREE_SPANS_H_
#define TCMALLOC_PAGE_HEAP_CLASSIC_FREE_SPANS_H_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/intrusive_list.h"
#include "page_heap/classic/span_tree.h"
#include "page_heap/free_runs.h"
#include "pages/page_types.h"
#include "pages/span.h"

namespace tcmalloc {

// A list for each length below kLists pages, with a bit for each list that is not empty, and a tree
// of the longer spans. A list returns the span that came last, which is most likely still in the
// processor's caches. Not thread safe.
class FreeSpans {
 public:
  static constexpr size_t kLists = 128;

  constexpr FreeSpans() = default;
  FreeSpans(const FreeSpans&) = delete;
  FreeSpans& operator=(const FreeSpans&) = delete;

  void Insert(Span* span);
  void Remove(Span* span);

  // Returns a shortest span of at least `n` pages, or null.
  Span* BestFit(Length n) const;
  // Returns a longest span, or null.
  Span* Longest() const;

  Length total() const { return total_; }

  // Takes the same time for any number of spans.
  void AddRuns(Length FreeRuns::* memory, FreeRunCounts* counts) const;

  // Crashes if a list, the bits, the tree or the total are wrong, or if a span is not in `state`.
  // Returns the number of spans.
  size_t CheckInvariants(Span::State state) const;

 private:
  static constexpr size_t kWordBits = 64;
  static constexpr size_t kWords = kLists / kWordBits;

  void Mark(uintptr_t length) {
    nonempty_[length / kWordBits] |= uint64_t{1} << (length % kWordBits);
  }
  void Unmark(uintptr_t length) {
    nonempty_[length / kWordBits] &= ~(uint64_t{1} << (length % kWordBits));
  }
  bool IsMarked(uintptr_t length) const {
    return (nonempty_[length / kWordBits] >> (length % kWordBits) & 1) != 0;
  }

  IntrusiveList<Span> lists_[kLists];  // by length; the first one stays empty
  uint64_t nonempty_[kWords] = {};
  uint32_t counts_[kLists] = {};  // of the spans in each list
  SpanTree long_;
  size_t long_count_ = 0;
  Length total_;
};

// These three run once or twice in every New and Delete.

inline void FreeSpans::Insert(Span* span) {
  const uintptr_t length = span->length.pages();
  total_ += span->length;
  if (length < kLists) {
    lists_[length].PushFront(span);
    ++counts_[length];
    Mark(length);
  } else {
    long_.Insert(span);
    ++long_count_;
  }
}

inline void FreeSpans::Remove(Span* span) {
  const uintptr_t length = span->length.pages();
  total_ -= span->length;
  if (length < kLists) {
    lists_[length].Remove(span);
    --counts_[length];
    if (lists_[length].empty()) Unmark(length);
  } else {
    long_.Remove(span);
    --long_count_;
  }
}

inline Span* FreeSpans::BestFit(Length n) const {
  if (n.pages() < kLists) {
    size_t word = n.pages() / kWordBits;
    uint64_t bits = nonempty_[word] & (~uint64_t{0} << (n.pages() % kWordBits));
    while (bits == 0 && ++word < kWords) bits = nonempty_[word];
    if (bits != 0) {
      return lists_[word * kWordBits + static_cast<size_t>(std::countr_zero(bits))].front();
    }
  }
  return long_.BestFit(n);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_CLASSIC_FREE_SPANS_H_
