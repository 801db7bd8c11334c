// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A page heap with everything that it stands on, for tests.

#ifndef TCMALLOC_TESTS_UNIT_PAGE_HEAP_TEST_HEAP_H_
#define TCMALLOC_TESTS_UNIT_PAGE_HEAP_TEST_HEAP_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "fakes/fake_metadata.h"
#include "fakes/fake_system_memory.h"
#include "page_heap/classic/page_heap.h"
#include "page_heap/huge/huge_page_heap.h"
#include "page_heap/span_source.h"
#include "pages/metadata_arena.h"
#include "pages/page_map.h"

namespace tcmalloc::testing {

// Pages of a hugepage.
inline constexpr uintptr_t kHuge = kPagesPerHugePage.pages();

// Releases nothing by itself and grows by what is asked for only, unless a test says otherwise.
template <typename PageHeap>
struct TestHeapOf {
  using Heap = PageHeap;
  static_assert(SpanSource<Heap>);

  explicit TestHeapOf(size_t reserved_bytes = kPageSize << 17)
      : system(reserved_bytes, std::max(kPageSize << 8, kHugePageSize)) {
    heap->set_release_rate(0);
    heap->set_growth(Length(1), Length(1));
  }

  Heap* operator->() { return heap.get(); }

  std::vector<Span> SpansByAddress() {
    std::vector<Span> spans;
    heap->ForEachSpan([&](const Span& span) { spans.push_back(span); });
    std::sort(spans.begin(), spans.end(),
              [](const Span& a, const Span& b) { return a.first < b.first; });
    return spans;
  }

  FakeMetadata metadata;
  FakeSystemMemory system;
  MetadataArena arena{FakeMetadata::Source};
  // Both are large for a stack.
  std::unique_ptr<PageMap> map = std::make_unique<PageMap>(arena);
  std::unique_ptr<Heap> heap = std::make_unique<Heap>(system, *map, arena);
};

using TestHeap = TestHeapOf<ClassicPageHeap<FakeSystemMemory>>;
using HugeTestHeap = TestHeapOf<HugePageHeap<FakeSystemMemory>>;

// Spans of one heap; at the end, its invariants hold.
template <typename Heap>
class PageHeapFixture : public ::testing::Test {
 protected:
  PageHeapFixture() = default;
  explicit PageHeapFixture(size_t reserved_bytes) : heap_(reserved_bytes) {}
  ~PageHeapFixture() override { heap_->CheckInvariants(); }

  Span* New(uintptr_t pages) {
    Span* span = TryNew(pages);
    EXPECT_NE(span, nullptr);
    return span;
  }
  Span* TryNew(uintptr_t pages) { return heap_->New(Length(pages)); }

  void RefuseGrowth() {
    heap_.system.fail_allocate = [] { return true; };
  }

  // In pages.
  std::vector<uintptr_t> ReleasedLengths() const {
    std::vector<uintptr_t> lengths;
    for (const auto& block : heap_.system.released()) lengths.push_back(block.bytes >> kPageShift);
    return lengths;
  }

  Heap heap_;
};

inline void Fill(const Span* span, char byte) {
  std::fill(span->start(), span->start() + span->bytes(), byte);
}

inline bool ReadsAsZero(const Span* span) {
  // Zero is first, and each byte is as the one before it: many times as fast as a loop.
  return span->start()[0] == 0 &&
         std::memcmp(span->start(), span->start() + 1, span->bytes() - 1) == 0;
}

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_UNIT_PAGE_HEAP_TEST_HEAP_H_
