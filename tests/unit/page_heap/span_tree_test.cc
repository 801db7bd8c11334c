// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/classic/span_tree.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <set>
#include <utility>

namespace tcmalloc {
namespace {

class SpanTreeTest : public ::testing::Test {
 protected:
  Span* NewSpan(uintptr_t first, uintptr_t length) {
    Span& span = spans_.emplace_back();
    span.first = PageId(first);
    span.length = Length(length);
    return &span;
  }

  SpanTree tree_;

 private:
  std::deque<Span> spans_;
};

TEST_F(SpanTreeTest, EmptyTreeHasNothing) {
  EXPECT_TRUE(tree_.empty());
  EXPECT_EQ(tree_.BestFit(Length(1)), nullptr);
  EXPECT_EQ(tree_.Longest(), nullptr);
  EXPECT_EQ(tree_.CheckInvariants(), 0u);
}

TEST_F(SpanTreeTest, BestFitIsTheShortestThatIsLongEnough) {
  Span* shorter = NewSpan(1000, 200);
  Span* longer = NewSpan(2000, 300);
  tree_.Insert(longer);
  tree_.Insert(shorter);
  EXPECT_EQ(tree_.BestFit(Length(150)), shorter);
  EXPECT_EQ(tree_.BestFit(Length(200)), shorter);
  EXPECT_EQ(tree_.BestFit(Length(201)), longer);
  EXPECT_EQ(tree_.BestFit(Length(301)), nullptr);
  EXPECT_EQ(tree_.Longest(), longer);
}

TEST_F(SpanTreeTest, LowestAddressWinsAmongEqualLengths) {
  Span* spans[] = {NewSpan(3000, 200), NewSpan(1000, 200), NewSpan(2000, 200)};
  for (Span* span : spans) tree_.Insert(span);
  EXPECT_EQ(tree_.BestFit(Length(200)), spans[1]);
  tree_.Remove(spans[1]);
  EXPECT_EQ(tree_.BestFit(Length(200)), spans[2]);
}

TEST_F(SpanTreeTest, RemovedSpansAreUnlinked) {
  Span* spans[] = {NewSpan(1, 200), NewSpan(500, 300), NewSpan(1000, 400)};
  for (Span* span : spans) tree_.Insert(span);
  for (Span* span : spans) {
    tree_.Remove(span);
    EXPECT_EQ(span->next_node, nullptr);
    EXPECT_EQ(span->prev_node, nullptr);
  }
  EXPECT_TRUE(tree_.empty());
}

// Against std::set, in the orders that degenerate a plain search tree and in random ones.
TEST_F(SpanTreeTest, AgreesWithAModel) {
  std::mt19937_64 random(1);
  std::set<std::pair<uintptr_t, uintptr_t>> model;
  std::deque<Span*> inside;
  uintptr_t address = 1;
  for (int step = 0; step < 20000; ++step) {
    const bool insert = inside.empty() || random() % 5 < (step < 10000 ? 3 : 2);
    if (insert) {
      const uintptr_t length =
          step < 2000 ? 128 + static_cast<uintptr_t>(step) : 128 + random() % 99;
      Span* span = NewSpan(address, length);
      address += length;
      tree_.Insert(span);
      inside.push_back(span);
      model.emplace(length, span->first.index());
    } else {
      std::swap(inside[random() % inside.size()], inside.back());
      Span* span = inside.back();
      inside.pop_back();
      tree_.Remove(span);
      model.erase({span->length.pages(), span->first.index()});
    }
    const uintptr_t wanted = 100 + random() % 200;
    const auto expected = model.lower_bound({wanted, 0});
    const Span* found = tree_.BestFit(Length(wanted));
    ASSERT_EQ(found == nullptr, expected == model.end());
    if (found != nullptr) {
      ASSERT_EQ(found->first, PageId(expected->second));
    }
    if (!model.empty()) {
      ASSERT_EQ(tree_.Longest()->first, PageId(model.rbegin()->second));
    }
    if (step % 500 == 0) {
      ASSERT_EQ(tree_.CheckInvariants(), model.size());
    }
  }
}

}  // namespace
}  // namespace tcmalloc
