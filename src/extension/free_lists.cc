// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "extension/free_lists.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "allocator/slow_path.h"
#include "extension/statistics.h"
#include "extension/weak_references.h"
#include "heap/heap.h"
#include "pages/page_types.h"
#include "pages/span.h"

namespace tcmalloc {
namespace {

using FreeListInfo = MallocExtension::FreeListInfo;

// Runs of up to so many pages have a list for each length.
constexpr size_t kListedPages = 128;

constexpr size_t kMostLists = 3 * (kSizeClassCount - 1) + 2 * kListedPages + 2;

// Free pages by the length of their runs; the last entry counts all that are longer.
struct FreePages {
  Length with_memory[kListedPages + 1];
  Length without[kListedPages + 1];
};

void CountFreePages(FreePages* pages) {
  heap.page_heap().ForEachSpan([pages](const Span& span) {
    if (span.in_use() || span.state == Span::State::kUnused) return;
    const size_t i = std::min<size_t>(span.length.pages() - 1, kListedPages);
    (span.state == Span::State::kReturned ? pages->without : pages->with_memory)[i] += span.length;
  });
}

// Allocates nothing, for there is room for kMostLists.
void AppendSizeClass(uint8_t c, std::vector<FreeListInfo>* lists) {
  const SizeClassStatistics of = CurrentSizeClassStatistics(c);
  const size_t least = kSizeClasses[c - 1].size + 1;
  const auto append = [&](const char* type, size_t objects) {
    lists->push_back({least, of.object_bytes, objects * of.object_bytes, type});
  };
  append("tcmalloc.central", of.central_free);
  append("tcmalloc.transfer", of.transfer_free);
  append("tcmalloc.thread", of.thread_free + of.cpu_free);
}

void AppendPages(const FreePages& pages, std::vector<FreeListInfo>* lists) {
  for (size_t i = 0; i < kListedPages; ++i) {
    const size_t least = i * kPageSize;
    const size_t most = least + kPageSize;
    lists->push_back({least, most, pages.with_memory[i].bytes(), "tcmalloc.page"});
    lists->push_back({least, most, pages.without[i].bytes(), "tcmalloc.page_unmapped"});
  }
  constexpr size_t kLeast = kListedPages * kPageSize;
  lists->push_back({kLeast, SIZE_MAX, pages.with_memory[kListedPages].bytes(), "tcmalloc.large"});
  lists->push_back(
      {kLeast, SIZE_MAX, pages.without[kListedPages].bytes(), "tcmalloc.large_unmapped"});
}

}  // namespace

void ListFreeLists(std::vector<FreeListInfo>* lists) {
  lists->clear();
  lists->reserve(kMostLists);
  SlowPath slow_path;
  if (slow_path.reentrant()) return;
  for (size_t c = 1; c < kSizeClassCount; ++c) AppendSizeClass(static_cast<uint8_t>(c), lists);
  FreePages pages;
  CountFreePages(&pages);
  AppendPages(pages, lists);
}

}  // namespace tcmalloc
