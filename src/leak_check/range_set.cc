// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/range_set.h"

namespace tcmalloc {
namespace {

// The beginning of an entry that is being filled.
constexpr uintptr_t kBeingAdded = 1;

}  // namespace

template <size_t most>
bool RangeSet<most>::Prepend(const Range& range) {
  const size_t used = used_.load(std::memory_order_relaxed);
  for (size_t i = 0; i < used; ++i) {
    Entry& entry = entries_[i];
    uintptr_t begin = range.end;
    if (entry.begin.load(std::memory_order_relaxed) != begin) continue;
    // Release pairs with the acquire in Copy and Remove, as in Add: the end is there.
    return entry.begin.compare_exchange_strong(begin, range.begin, std::memory_order_release,
                                               std::memory_order_relaxed);
  }
  return false;
}

template <size_t most>
void RangeSet<most>::Add(const Range& range) {
  if (range.empty() || Prepend(range)) return;
  for (size_t i = 0; i < kMost; ++i) {
    uintptr_t expected = 0;
    Entry& entry = entries_[i];
    if (entry.begin.load(std::memory_order_relaxed) != 0 ||
        !entry.begin.compare_exchange_strong(expected, kBeingAdded, std::memory_order_relaxed)) {
      continue;
    }
    entry.end = range.end;
    // Release pairs with the acquire in Copy and Remove and publishes the end.
    entry.begin.store(range.begin, std::memory_order_release);
    size_t used = used_.load(std::memory_order_relaxed);
    while (used < i + 1 && !used_.compare_exchange_weak(used, i + 1, std::memory_order_relaxed)) {
    }
    return;
  }
}

template <size_t most>
void RangeSet<most>::Remove(const Range& range) {
  const size_t used = used_.load(std::memory_order_relaxed);
  for (size_t i = 0; i < used; ++i) {
    Entry& entry = entries_[i];
    // Acquire pairs with the release in Add.
    uintptr_t begin = entry.begin.load(std::memory_order_acquire);
    const Range old = {begin, entry.end};
    if (begin <= kBeingAdded || old.Within(range).empty()) continue;
    if (!entry.begin.compare_exchange_strong(begin, 0, std::memory_order_relaxed)) continue;
    Add({old.begin, range.begin < old.begin ? old.begin : range.begin});
    Add({range.end > old.end ? old.end : range.end, old.end});
  }
}

template <size_t most>
size_t RangeSet<most>::Copy(Range* to, size_t wanted) const {
  size_t count = 0;
  const size_t used = used_.load(std::memory_order_relaxed);
  for (size_t i = 0; i < used && count < wanted; ++i) {
    // Acquire pairs with the release in Add.
    const uintptr_t begin = entries_[i].begin.load(std::memory_order_acquire);
    if (begin > kBeingAdded) to[count++] = {begin, entries_[i].end};
  }
  return count;
}

template class RangeSet<MappingSet::kMost>;
template class RangeSet<RegionSet::kMost>;

}  // namespace tcmalloc
