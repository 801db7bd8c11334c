// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "central/takers.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "pages/page_types.h"
#include "pages/span.h"

namespace tcmalloc::testing {
namespace {

class TakersTest : public ::testing::Test {
 protected:
  TakersTest() {
    span_.first = PageId(100);
    span_.length = Length(4);
  }

  // The thread takes from the span and leaves something there.
  Takers::Taker& TakeFromSpan(const char* thread) {
    Takers::Taker& taker = takers_.Take(thread);
    taker.continue_at = span_.first;
    taker.holds_span = true;
    return taker;
  }

  Takers takers_;
  Span span_;
  char threads_[Takers::kMost + 1] = {};
};

TEST_F(TakersTest, AThreadKeepsItsEntry) {
  Takers::Taker& first = TakeFromSpan(&threads_[0]);
  takers_.Take(&threads_[1]);
  EXPECT_EQ(&takers_.Take(&threads_[0]), &first);
  EXPECT_EQ(first.continue_at, span_.first);
}

TEST_F(TakersTest, OnlyOthersHoldASpan) {
  Takers::Taker& holder = TakeFromSpan(&threads_[0]);
  EXPECT_FALSE(takers_.IsHeldByOther(&span_, holder));
  EXPECT_TRUE(takers_.IsHeldByOther(&span_, takers_.Take(&threads_[1])));
}

TEST_F(TakersTest, ASpanThatHasNothingLeftIsNotHeld) {
  TakeFromSpan(&threads_[0]).holds_span = false;
  EXPECT_FALSE(takers_.IsHeldByOther(&span_, takers_.Take(&threads_[1])));
}

TEST_F(TakersTest, ASpanThatIsNewIsNotHeld) {
  TakeFromSpan(&threads_[0]);
  takers_.Release(&span_);
  EXPECT_FALSE(takers_.IsHeldByOther(&span_, takers_.Take(&threads_[1])));
}

TEST_F(TakersTest, AThreadThatTakesNothingLetsGo) {
  TakeFromSpan(&threads_[0]);
  for (uint32_t i = 1; i < Takers::kIdleTakes; ++i) {
    ASSERT_TRUE(takers_.IsHeldByOther(&span_, takers_.Take(&threads_[1])));
  }
  EXPECT_FALSE(takers_.IsHeldByOther(&span_, takers_.Take(&threads_[1])));
}

TEST_F(TakersTest, TheThreadThatCameFirstIsForgottenFirst) {
  TakeFromSpan(&threads_[0]);
  for (uint32_t i = 1; i < Takers::kMost; ++i) takers_.Take(&threads_[i]);
  EXPECT_TRUE(takers_.IsHeldByOther(&span_, takers_.Take(&threads_[1])));
  takers_.Take(&threads_[Takers::kMost]);
  EXPECT_FALSE(takers_.IsHeldByOther(&span_, takers_.Take(&threads_[1])));
  EXPECT_EQ(takers_.Take(&threads_[0]).continue_at, PageId());
}

}  // namespace
}  // namespace tcmalloc::testing
