// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Spans that come and go, without touching their memory.

#include "page_heap/classic/page_heap.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "common/harness.h"
#include "heap/heap.h"

namespace tcmalloc::bench {
namespace {

void RunPairs(Harness& harness) {
  PageHeap& page_heap = heap.page_heap();
  for (uintptr_t pages : {1, 8, 100, 1000}) {
    harness.Run("page_heap/new_delete/pages:" + std::to_string(pages), [&](uint64_t n) {
      for (uint64_t i = 0; i < n; ++i) page_heap.Delete(page_heap.New(Length(pages)));
    });
  }
  harness.Run("page_heap/new_aligned_delete/pages:8", [&](uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) page_heap.Delete(page_heap.NewAligned(Length(8), Length(64)));
  });
}

// An operation replaces one of many spans by one of another length.
void RunReplacements(Harness& harness, uintptr_t most_pages) {
  constexpr size_t kSpans = 2000;
  PageHeap& page_heap = heap.page_heap();
  std::mt19937_64 random(1);
  const auto random_span = [&] { return page_heap.New(Length(1 + random() % most_pages)); };
  std::vector<Span*> spans;
  for (size_t i = 0; i < kSpans; ++i) spans.push_back(random_span());
  harness.Run("page_heap/replace/most_pages:" + std::to_string(most_pages), [&](uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) {
      Span*& span = spans[random() % kSpans];
      page_heap.Delete(span);
      span = random_span();
    }
  });
  for (Span* span : spans) page_heap.Delete(span);
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) {
  tcmalloc::bench::Harness harness(argc, argv);
  tcmalloc::heap.EnsureInitialized();
  tcmalloc::bench::RunPairs(harness);
  for (uintptr_t most_pages : {8, 300}) tcmalloc::bench::RunReplacements(harness, most_pages);
}
