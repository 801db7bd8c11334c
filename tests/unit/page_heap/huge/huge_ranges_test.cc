// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/huge/huge_ranges.h"

#include <gtest/gtest.h>

#include <memory>

#include "fakes/fake_metadata.h"

namespace tcmalloc {
namespace {

using State = Span::State;

class HugeRangesTest : public ::testing::Test {
 protected:
  static constexpr Length kOne = kPagesPerHugePage;

  HugeRangesTest() { EXPECT_TRUE(map_->Ensure(At(0), kOne * 1000)); }

  static PageId At(uintptr_t hugepage) { return HugePage(1000 + hugepage).first_page(); }

  void Put(uintptr_t first, uintptr_t n, State state, bool zeroed = false) {
    Span* range = pool_.New();
    ASSERT_NE(range, nullptr);
    range->first = At(first);
    range->length = kOne * n;
    range->state = state;
    range->zeroed = zeroed;
    ranges_.Put(range);
  }

  testing::FakeMetadata metadata_;
  MetadataArena arena_{testing::FakeMetadata::Source};
  std::unique_ptr<PageMap> map_ = std::make_unique<PageMap>(arena_);
  MetadataPool<Span> pool_{arena_};
  HugeRanges ranges_{*map_, pool_};
};

TEST_F(HugeRangesTest, TheShortestThatIsLongEnough) {
  Put(0, 5, State::kFree);
  Put(10, 2, State::kFree);
  Put(20, 1, State::kReturned);
  EXPECT_EQ(ranges_.Find(State::kFree, kOne, Length(1))->first, At(10));
  EXPECT_EQ(ranges_.Find(State::kFree, kOne + Length(1), Length(1))->first, At(10));
  EXPECT_EQ(ranges_.Find(State::kFree, kOne * 3, Length(1))->first, At(0));
  EXPECT_EQ(ranges_.Find(State::kFree, kOne * 6, Length(1)), nullptr);
  EXPECT_EQ(ranges_.Longest(State::kFree)->first, At(0));
  EXPECT_EQ(ranges_.Find(State::kReturned, Length(1), Length(1))->first, At(20));
}

TEST_F(HugeRangesTest, AlignmentBeyondAHugepage) {
  // 1000 is a multiple of eight.
  Put(1, 2, State::kFree);
  Put(9, 9, State::kFree);
  EXPECT_EQ(ranges_.Find(State::kFree, kOne, kOne * 2)->first, At(1));
  EXPECT_EQ(ranges_.Find(State::kFree, kOne * 2, kOne * 8)->first, At(9));
}

TEST_F(HugeRangesTest, AcrossRangesWithFewReturnedPages) {
  EXPECT_EQ(ranges_.FindAcross(kOne, Length(1)), PageId(0));
  Put(0, 4, State::kReturned);
  Put(4, 3, State::kFree);
  Put(7, 1, State::kReturned);
  EXPECT_EQ(ranges_.FindAcross(kOne * 4, Length(1)), At(4));
  // There is too little behind.
  EXPECT_EQ(ranges_.FindAcross(kOne * 6, Length(1)), At(2));
  EXPECT_EQ(ranges_.FindAcross(kOne * 8, Length(1)), At(0));
  EXPECT_EQ(ranges_.FindAcross(kOne * 9, Length(1)), PageId(0));
  Put(20, 2, State::kFree);
  Put(22, 1, State::kReturned);
  Put(23, 2, State::kFree);
  EXPECT_EQ(ranges_.FindAcross(kOne * 5, Length(1)), At(20)) << "one page is returned, and not two";
}

TEST_F(HugeRangesTest, AcrossRangesAtAnAlignment) {
  // 1000 is a multiple of eight.
  Put(1, 3, State::kFree);
  Put(4, 8, State::kReturned);
  EXPECT_EQ(ranges_.FindAcross(kOne * 5, kOne * 2), At(2));
  EXPECT_EQ(ranges_.FindAcross(kOne * 4, kOne * 8), PageId(0)) << "all of it would be returned";
  EXPECT_EQ(ranges_.FindAcross(kOne * 5, kOne * 8), PageId(0));
}

TEST_F(HugeRangesTest, ReachesBackOverAllThatTouches) {
  EXPECT_EQ(ranges_.LengthEndingAt(At(3)), Length(0));
  Put(0, 1, State::kFree);
  Put(2, 1, State::kFree);
  Put(3, 2, State::kReturned);
  EXPECT_EQ(ranges_.LengthEndingAt(At(5)), kOne * 3);
  EXPECT_EQ(ranges_.LengthEndingAt(At(1)), kOne);
}

TEST_F(HugeRangesTest, NeighboursOfOneStateMerge) {
  Put(0, 1, State::kFree);
  Put(2, 1, State::kFree);
  Put(3, 1, State::kReturned);
  Put(1, 1, State::kFree);
  EXPECT_EQ(ranges_.CheckInvariants(), 2u);
  EXPECT_EQ(ranges_.Longest(State::kFree)->length, kOne * 3);
  EXPECT_EQ(ranges_.total(State::kFree), kOne * 3);
  EXPECT_EQ(ranges_.total(State::kReturned), kOne);
  EXPECT_EQ(pool_.live(), 2u);
}

TEST_F(HugeRangesTest, OneDirtyPartMakesTheWholeDirty) {
  Put(0, 1, State::kReturned, true);
  Put(1, 1, State::kReturned, true);
  EXPECT_TRUE(ranges_.BeginningAt(At(0))->zeroed);
  Put(2, 1, State::kReturned, false);
  EXPECT_FALSE(ranges_.BeginningAt(At(0))->zeroed);
}

TEST_F(HugeRangesTest, StaleEntriesOfThePageMapAreNoNeighbours) {
  Put(0, 3, State::kFree);
  ASSERT_TRUE(ranges_.Carve(ranges_.BeginningAt(At(0)), At(0), kOne * 3));
  // The entry behind still names the record, which describes another range now.
  Put(10, 1, State::kFree);
  Put(3, 1, State::kFree);
  EXPECT_EQ(ranges_.BeginningAt(At(3))->length, kOne);
  EXPECT_EQ(ranges_.BeginningAt(At(0)), nullptr);
}

TEST_F(HugeRangesTest, CarvesFromEveryPlace) {
  Put(0, 6, State::kReturned, true);
  ASSERT_TRUE(ranges_.Carve(ranges_.BeginningAt(At(0)), At(0), kOne));
  ASSERT_TRUE(ranges_.Carve(ranges_.BeginningAt(At(1)), At(5), kOne));
  ASSERT_TRUE(ranges_.Carve(ranges_.BeginningAt(At(1)), At(2), kOne));
  EXPECT_EQ(ranges_.CheckInvariants(), 2u);
  EXPECT_EQ(ranges_.BeginningAt(At(1))->length, kOne);
  EXPECT_EQ(ranges_.BeginningAt(At(3))->length, kOne * 2);
  EXPECT_TRUE(ranges_.BeginningAt(At(3))->zeroed);
  EXPECT_EQ(ranges_.Containing(At(4) + Length(1))->first, At(3));
  ASSERT_TRUE(ranges_.Carve(ranges_.BeginningAt(At(1)), At(1), kOne));
  EXPECT_EQ(ranges_.total(State::kReturned), kOne * 2);
  EXPECT_EQ(pool_.live(), 1u);
}

TEST_F(HugeRangesTest, OnlyTheMiddleNeedsARecord) {
  Put(0, 6, State::kFree);
  while (pool_.New() != nullptr) metadata_.exhausted = true;
  Span* range = ranges_.BeginningAt(At(0));
  EXPECT_FALSE(ranges_.Carve(range, At(2), kOne));
  EXPECT_EQ(range->length, kOne * 6);
  EXPECT_TRUE(ranges_.Carve(range, At(0), kOne));
  EXPECT_TRUE(ranges_.Carve(range, At(5), kOne));
  EXPECT_EQ(range->length, kOne * 4);
}

}  // namespace
}  // namespace tcmalloc
