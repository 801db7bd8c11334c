// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// How much the heap holds for long spans that come and go.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "page_heap/huge/huge_page_heap.h"
#include "unit/page_heap/test_heap.h"

namespace tcmalloc::testing {
namespace {

class HugePageHeapGrowthTest : public PageHeapFixture<HugeTestHeap> {
 protected:
  static constexpr uintptr_t kReserved = 400;  // hugepages

  HugePageHeapGrowthTest() : PageHeapFixture(kReserved * kHugePageSize) {
    heap_->set_release_rate(ReleasePacer::kDefaultRate);
  }

  void NotePeak() { peak_ = std::max(peak_, heap_->stats().committed()); }

  // Frees spans at random, and takes others of up to twice their length instead.
  void Replace(std::vector<Span*>* spans, Length most, uintptr_t longest) {
    std::shuffle(spans->begin(), spans->end(), random_);
    for (Span* old : std::exchange(*spans, {})) {
      heap_->Delete(old);
      Fill(spans, most, longest);
    }
  }
  void Fill(std::vector<Span*>* spans, Length most, uintptr_t longest) {
    while (true) {
      const Length n(kHuge / 2 + random_() % longest);
      if (heap_->stats().in_use() + n > most) return;
      spans->push_back(New(n.pages()));
      NotePeak();
    }
  }

  std::mt19937_64 random_{1};
  Length peak_;
};

TEST_F(HugePageHeapGrowthTest, ASpanThatIsLongerEachTimeTakesWhatTheLastOneLeft) {
  constexpr uintptr_t kLongest = 100 * kHuge;
  for (int pass = 0; pass < 3; ++pass) {
    for (uintptr_t n = 20 * kHuge; n <= kLongest; n += kHuge / 3) {
      heap_->Delete(New(n));
      NotePeak();
      if (pass == 0) {
        ASSERT_LE(peak_.pages() * 10, n * 11);
      }
    }
  }
  EXPECT_LE(peak_.pages() * 10, kLongest * 11);
  EXPECT_LE(heap_->stats().system.pages() * 10, kLongest * 12);
}

TEST_F(HugePageHeapGrowthTest, FreeAndReturnedRangesSideBySideServeOneSpan) {
  Span* first = New(10 * kHuge);
  Span* second = New(10 * kHuge);
  Span* third = New(10 * kHuge);
  heap_->Delete(second);
  heap_->ReleaseAtLeast(Length::Max());
  heap_->Delete(first);
  heap_->Delete(third);
  const PageHeapStats before = heap_->stats();
  Span* all = New(30 * kHuge);
  EXPECT_EQ(heap_->stats().growths, before.growths);
  EXPECT_FALSE(all->zeroed);
  heap_->Delete(all);
}

TEST_F(HugePageHeapGrowthTest, OnlyWhatIsMissingIsAdded) {
  heap_->Delete(New(50 * kHuge));
  New(60 * kHuge);
  EXPECT_EQ(heap_->stats().system, Length(60 * kHuge));
}

TEST_F(HugePageHeapGrowthTest, WhereTheSystemAddsMemoryElsewhereTheHeapGrowsTwice) {
  heap_.system.gap = kHugePageSize;
  heap_->Delete(New(50 * kHuge));
  New(60 * kHuge);
  EXPECT_EQ(heap_->stats().system, Length((50 + 10 + 60) * kHuge));
}

// Two generations, and one in place of the other.
TEST_F(HugePageHeapGrowthTest, SpansOfOtherLengthsReplaceFreeMemory) {
  constexpr Length kMost(100 * kHuge);
  std::vector<Span*> spans;
  Fill(&spans, kMost, 4 * kHuge);
  for (Span* span : spans) heap_->Delete(span);
  spans.clear();
  Fill(&spans, kMost, 12 * kHuge);
  EXPECT_LE(peak_.pages() * 10, kMost.pages() * 11);
  Replace(&spans, kMost, 8 * kHuge);
  EXPECT_LE(peak_.pages() * 10, kMost.pages() * 12);
}

TEST_F(HugePageHeapGrowthTest, AnotherThreadDoesNotTakeWhatWasAddedForASpan) {
  std::vector<Span*> spans;
  for (int i = 0; i < 20; ++i) {
    spans.push_back(New(4 * kHuge));
    New(kHuge);
  }
  for (Span* span : spans) heap_->Delete(span);
  int calls = 0;
  // The other thread asks while this one gives back free memory, because the heap has grown.
  heap_.system.on_release = [&](const FakeSystemMemory::Block&) {
    if (++calls == 1) New(30 * kHuge);
  };
  New(30 * kHuge);
  EXPECT_GT(calls, 0);
}

TEST_F(HugePageHeapGrowthTest, NothingIsReleasedForThemAtRateZero) {
  heap_->set_release_rate(0);
  std::vector<Span*> spans;
  for (uintptr_t i = 0; i < 20; ++i) {
    spans.push_back(New(2 * kHuge));
    New(kHuge);
  }
  for (Span* span : spans) heap_->Delete(span);
  New(30 * kHuge);
  EXPECT_EQ(heap_->stats().released(), Length(0));
}

}  // namespace
}  // namespace tcmalloc::testing
