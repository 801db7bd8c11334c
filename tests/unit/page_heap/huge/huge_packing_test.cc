// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// How well spans are packed after a long life.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "page_heap/huge/huge_page_heap.h"
#include "unit/page_heap/test_heap.h"

namespace tcmalloc::testing {
namespace {

class HugePackingTest : public ::testing::TestWithParam<uintptr_t> {
 protected:
  void New() {
    Span* span = heap_->New(Length(1 + random_() % GetParam()));
    ASSERT_NE(span, nullptr);
    spans_.push_back(span);
  }
  void DeleteAny() {
    std::swap(spans_[random_() % spans_.size()], spans_.back());
    heap_->Delete(spans_.back());
    spans_.pop_back();
  }
  // As many spans, about half of them new.
  void Churn(size_t steps) {
    for (size_t i = 0; i < steps; ++i) {
      DeleteAny();
      New();
    }
  }

  // Hugepages that hold a span, for each that its spans would need at the least.
  double Spread() {
    std::set<HugePage> touched;
    Length used;
    for (const Span* span : spans_) {
      used += span->length;
      for (PageId page = span->first; page < span->end(); ++page) {
        touched.insert(HugePage::Containing(page));
      }
    }
    const auto least = RoundUpToHugePages(used).pages() / kPagesPerHugePage.pages();
    return static_cast<double>(touched.size()) / static_cast<double>(least);
  }

  HugeTestHeap heap_;
  std::mt19937_64 random_{1};
  std::vector<Span*> spans_;
};

TEST_P(HugePackingTest, AFullHeapIsDense) {
  for (int i = 0; i < 6000; ++i) New();
  Churn(30000);
  EXPECT_LE(Spread(), 1.1);
  heap_->CheckInvariants();
}

// When three of four spans die at random, the rest lies where it was. From then on it gathers.
TEST_P(HugePackingTest, ASparseHeapDrains) {
  for (int i = 0; i < 6000; ++i) New();
  Churn(10000);
  while (spans_.size() > 1500) DeleteAny();
  EXPECT_LE(Spread(), 4.4);
  Churn(10000);
  EXPECT_LE(Spread(), 1.35);
  heap_->CheckInvariants();
}

INSTANTIATE_TEST_SUITE_P(MostPages, HugePackingTest, ::testing::Values(1, 4, 16));

}  // namespace
}  // namespace tcmalloc::testing
