// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/classic/free_spans.h"

#include <gtest/gtest.h>

#include <deque>

namespace tcmalloc {
namespace {

class FreeSpansTest : public ::testing::Test {
 protected:
  Span* Insert(uintptr_t length) {
    Span& span = spans_.emplace_back();
    span.first = PageId(next_page_);
    span.length = Length(length);
    span.state = Span::State::kFree;
    next_page_ += length + 1;
    free_.Insert(&span);
    return &span;
  }

  FreeSpans free_;

 private:
  std::deque<Span> spans_;
  uintptr_t next_page_ = 1;
};

TEST_F(FreeSpansTest, EmptyHasNothing) {
  EXPECT_EQ(free_.BestFit(Length(1)), nullptr);
  EXPECT_EQ(free_.BestFit(Length(1000)), nullptr);
  EXPECT_EQ(free_.Longest(), nullptr);
  EXPECT_EQ(free_.CheckInvariants(Span::State::kFree), 0u);
}

TEST_F(FreeSpansTest, BestFitForEveryLength) {
  // Lengths on both sides of each border: words of bits, and lists against tree.
  std::deque<Span*> spans;
  for (uintptr_t length : {1u, 3u, 62u, 63u, 64u, 65u, 126u, 127u, 128u, 129u, 500u}) {
    spans.push_back(Insert(length));
  }
  size_t expected = 0;
  for (uintptr_t n = 1; n <= 500; ++n) {
    while (spans[expected]->length < Length(n)) ++expected;
    ASSERT_EQ(free_.BestFit(Length(n)), spans[expected]) << n;
  }
  EXPECT_EQ(free_.BestFit(Length(501)), nullptr);
}

TEST_F(FreeSpansTest, EmptiedListsAreNotFound) {
  for (uintptr_t length : {1u, 63u, 64u, 127u, 128u}) {
    Span* span = Insert(length);
    Span* twin = Insert(length);
    free_.Remove(span);
    EXPECT_EQ(free_.BestFit(Length(1)), twin);
    free_.Remove(twin);
    EXPECT_EQ(free_.BestFit(Length(1)), nullptr);
  }
  EXPECT_EQ(free_.total(), Length(0));
}

TEST_F(FreeSpansTest, ShortSpansComeBackLastInFirstOut) {
  Insert(5);
  Span* last = Insert(5);
  EXPECT_EQ(free_.BestFit(Length(5)), last);
}

TEST_F(FreeSpansTest, LongestLooksInTreeThenInLists) {
  Span* shortest = Insert(2);
  Span* middle = Insert(100);
  Span* longest = Insert(1000);
  EXPECT_EQ(free_.Longest(), longest);
  free_.Remove(longest);
  EXPECT_EQ(free_.Longest(), middle);
  free_.Remove(middle);
  EXPECT_EQ(free_.Longest(), shortest);
}

TEST_F(FreeSpansTest, TotalCountsPages) {
  Insert(2);
  Insert(127);
  Span* span = Insert(128);
  EXPECT_EQ(free_.total(), Length(257));
  EXPECT_EQ(free_.CheckInvariants(Span::State::kFree), 3u);
  free_.Remove(span);
  EXPECT_EQ(free_.total(), Length(129));
  EXPECT_EQ(free_.CheckInvariants(Span::State::kFree), 2u);
}

TEST_F(FreeSpansTest, SpansInTheWrongStateAreNoticed) {
  Insert(7)->state = Span::State::kLarge;
  EXPECT_DEATH(free_.CheckInvariants(Span::State::kFree), "check failed");
}

}  // namespace
}  // namespace tcmalloc
