// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Spans that come and go in both page heaps, without touching their memory.

#include "page_heap/classic/page_heap.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "common/harness.h"
#include "page_heap/huge/huge_page_heap.h"
#include "pages/metadata_arena.h"
#include "pages/page_map.h"
#include "system/memory.h"

namespace tcmalloc::bench {
namespace {

constinit SystemMemory memory;
constinit MetadataArena metadata(AllocateMetadata);
// A heap takes every free span in its map for its own.
constinit PageMap classic_map(metadata);
constinit PageMap huge_map(metadata);
constinit ClassicPageHeap<SystemMemory> classic_heap(memory, classic_map, metadata);
constinit HugePageHeap<SystemMemory> huge_heap(memory, huge_map, metadata);

template <typename PageHeap>
void RunPairs(Harness& harness, PageHeap& page_heap, const std::string& name) {
  for (uintptr_t pages : {1, 8, 100, 1000}) {
    harness.Run(name + "/new_delete/pages:" + std::to_string(pages), [&](uint64_t n) {
      for (uint64_t i = 0; i < n; ++i) page_heap.Delete(page_heap.New(Length(pages)));
    });
  }
  harness.Run(name + "/new_aligned_delete/pages:8", [&](uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) page_heap.Delete(page_heap.NewAligned(Length(8), Length(64)));
  });
}

// An operation replaces one of many spans by one of another length.
template <typename PageHeap>
void RunReplacements(Harness& harness, PageHeap& page_heap, const std::string& name,
                     uintptr_t most_pages) {
  constexpr size_t kSpans = 2000;
  std::mt19937_64 random(1);
  const auto random_span = [&] { return page_heap.New(Length(1 + random() % most_pages)); };
  std::vector<Span*> spans;
  for (size_t i = 0; i < kSpans; ++i) spans.push_back(random_span());
  harness.Run(name + "/replace/most_pages:" + std::to_string(most_pages), [&](uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) {
      Span*& span = spans[random() % kSpans];
      page_heap.Delete(span);
      span = random_span();
    }
  });
  for (Span* span : spans) page_heap.Delete(span);
}

template <typename PageHeap>
void RunAll(Harness& harness, PageHeap& page_heap, const std::string& name) {
  RunPairs(harness, page_heap, name);
  for (uintptr_t most_pages : {8, 300}) RunReplacements(harness, page_heap, name, most_pages);
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) {
  using namespace tcmalloc::bench;
  tcmalloc::bench::Harness harness(argc, argv);
  RunAll(harness, classic_heap, "page_heap/classic");
  RunAll(harness, huge_heap, "page_heap/huge");
}
