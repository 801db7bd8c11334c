// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Counting what nobody uses, and how much of a large heap that looks at with the lock held.

#include "page_heap/free_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <vector>

#include "base/check.h"
#include "page_heap/huge/huge_spans.h"
#include "unit/page_heap/test_heap.h"

namespace tcmalloc::testing {
namespace {

template <typename Heap>
FreeRunCounts Count(Heap& heap) {
  FreeRunCounts counts;
  heap->CountFreeRuns(&counts);
  return counts;
}

// Counts free runs by a walk over all spans.
template <typename Heap>
FreeRunCounts Walk(Heap& heap) {
  FreeRunCounts counts;
  heap->ForEachSpan([&](const Span& span) {
    if (span.in_use()) return;
    const bool returned = span.state == Span::State::kReturned;
    counts.Add(span.length, 1, returned ? &FreeRuns::without : &FreeRuns::with_memory);
  });
  return counts;
}

void ExpectSame(const FreeRuns& a, const FreeRuns& b) {
  EXPECT_EQ(a.count, b.count);
  EXPECT_EQ(a.with_memory, b.with_memory);
  EXPECT_EQ(a.without, b.without);
}

void ExpectSame(const FreeRunCounts& a, const FreeRunCounts& b) {
  for (size_t i = 0; i <= FreeRunCounts::kListed; ++i) {
    SCOPED_TRACE(i);
    ExpectSame(a.of_length[i], b.of_length[i]);
  }
  ExpectSame(a.longer, b.longer);
}

template <typename Heap>
class FreeRunsTest : public PageHeapFixture<Heap> {};

using Heaps = ::testing::Types<TestHeap, HugeTestHeap>;
TYPED_TEST_SUITE(FreeRunsTest, Heaps);

TYPED_TEST(FreeRunsTest, AreThoseThatAWalkFinds) {
  ExpectSame(Count(this->heap_), Walk(this->heap_));
  std::vector<Span*> spans;
  for (size_t i = 0; i < 400; ++i) spans.push_back(this->New(1 + i * i % 300));
  for (size_t i = 0; i < spans.size(); i += 2) this->heap_->Delete(spans[i]);
  ExpectSame(Count(this->heap_), Walk(this->heap_));
  this->heap_->ReleaseAtLeast(Length(2000));
  ExpectSame(Count(this->heap_), Walk(this->heap_));
  for (size_t i = 1; i < spans.size(); i += 2) this->heap_->Delete(spans[i]);
  this->heap_->ReleaseAtLeast(Length(20000));
  ExpectSame(Count(this->heap_), Walk(this->heap_));
}

TYPED_TEST(FreeRunsTest, CountWhatIsOnItsWayAsFree) {
  this->heap_->Delete(this->New(1000));
  FreeRunCounts within;
  this->heap_.system.on_release = [&](const auto&) { within = Count(this->heap_); };
  this->heap_->ReleaseAtLeast(Length(1000));
  this->heap_.system.on_release = nullptr;
  const FreeRunCounts after = Count(this->heap_);
  EXPECT_GE(within.longer.with_memory, Length(1000));
  EXPECT_EQ(after.longer.with_memory, Length(0));
}

// The bound is on the records that are looked at while other threads wait: some milliseconds would
// be hundreds of thousands.
TYPED_TEST(FreeRunsTest, LookAtFewRecordsAtOnceAmongAMillion) {
  constexpr size_t kHeapBytes = size_t{10} << 30;
  // Paranoid builds visit spans in every call.
  constexpr size_t kSpans = kParanoidChecks ? 50'000 : 1'200'000;
  TypeParam heap{kHeapBytes};
  heap->set_growth(Length::FromBytesCeil(size_t{64} << 20));
  std::vector<Span*> spans(std::min(kSpans, kHeapBytes / kPageSize / 8 * 7));
  for (Span*& span : spans) ASSERT_NE(span = heap->New(Length(1)), nullptr);
  for (size_t i = 0; i < spans.size(); i += 2) heap->Delete(spans[i]);

  const std::clock_t start = std::clock();
  const FreeRunCounts counts = Count(heap);
  const double milliseconds = static_cast<double>(std::clock() - start) * 1000 / CLOCKS_PER_SEC;
  std::printf(
      "%zu spans, %zu free runs of a page, counted in %.2f ms of CPU time, at most %zu at once\n",
      spans.size(), static_cast<size_t>(counts.of_length[1].count), milliseconds,
      counts.most_at_once);
  EXPECT_GE(counts.of_length[1].count + 1, spans.size() / 2);
  EXPECT_LE(counts.most_at_once, HugeSpans::kRecordsPerPart + kPagesPerHugePage.pages());
  for (size_t i = 1; i < spans.size(); i += 2) heap->Delete(spans[i]);
}

}  // namespace
}  // namespace tcmalloc::testing
