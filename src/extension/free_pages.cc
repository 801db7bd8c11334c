// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "extension/free_pages.h"

#include "heap/heap.h"
#include "pages/span.h"

namespace tcmalloc {

void CountFreePages(FreePages* pages) {
  heap.page_heap().ForEachSpan([pages](const Span& span) {
    if (span.in_use() || span.state == Span::State::kUnused) return;
    const bool listed = span.length <= Length(FreePages::kListed);
    FreeRuns& runs = listed ? pages->of_length[span.length.pages()] : pages->longer;
    ++runs.count;
    (span.state == Span::State::kReturned ? runs.without : runs.with_memory) += span.length;
  });
}

}  // namespace tcmalloc
