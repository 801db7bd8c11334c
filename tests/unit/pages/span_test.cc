// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "pages/span.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace tcmalloc {
namespace {

using State = Span::State;

// The pool recycles records without a destructor's help.
static_assert(std::is_trivially_destructible_v<Span>);

TEST(Span, StartsUnused) {
  Span span;
  EXPECT_EQ(span.state, State::kUnused);
  EXPECT_FALSE(span.in_use());
  EXPECT_FALSE(span.zeroed);
  EXPECT_FALSE(span.linked());
}

TEST(Span, ContainsItsPagesOnly) {
  Span span;
  span.first = PageId(100);
  span.length = Length(3);
  EXPECT_FALSE(span.Contains(PageId(99)));
  EXPECT_TRUE(span.Contains(PageId(100)));
  EXPECT_TRUE(span.Contains(PageId(102)));
  EXPECT_FALSE(span.Contains(PageId(103)));
  EXPECT_EQ(span.end(), PageId(103));
  EXPECT_EQ(span.bytes(), 3 * kPageSize);
  EXPECT_EQ(span.start(), PageId(100).start());
}

TEST(Span, OnlyLargeAndSmallAreInUse) {
  Span span;
  for (State state : {State::kUnused, State::kFree, State::kReturned, State::kInTransit}) {
    span.state = state;
    EXPECT_FALSE(span.in_use());
  }
  for (State state : {State::kLarge, State::kSmall}) {
    span.state = state;
    EXPECT_TRUE(span.in_use());
  }
}

}  // namespace
}  // namespace tcmalloc
