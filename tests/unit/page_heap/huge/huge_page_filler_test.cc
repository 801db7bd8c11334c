// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/huge/huge_page_filler.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>

#include "fakes/fake_metadata.h"
#include "pages/metadata_arena.h"

namespace tcmalloc {
namespace {

class HugePageFillerTest : public ::testing::Test {
 protected:
  static constexpr size_t kPages = HugePageTracker::kPages;

  HugePageFillerTest() { EXPECT_TRUE(filler_->Reserve(arena_)); }
  ~HugePageFillerTest() override { filler_->CheckInvariants(); }

  // A hugepage whose longest unused run has `run` pages, with `allocations` in front of it.
  HugePageTracker* Insert(size_t run, size_t allocations = 1) {
    HugePageTracker& tracker = trackers_.emplace_back();
    tracker.hugepage = HugePage(trackers_.size());
    tracker.Reset(/*returned=*/false, /*zeroed=*/false);
    for (size_t i = 1; i < allocations; ++i) tracker.Claim(i - 1, 1, true);
    const size_t begin = allocations - 1;
    if (begin + run < kPages) tracker.Claim(begin, kPages - run - begin, true);
    filler_->Insert(&tracker);
    return &tracker;
  }

  template <typename Change>
  void With(HugePageTracker* tracker, Change change) {
    filler_->Remove(tracker);
    change();
    filler_->Insert(tracker);
  }

  // Of a hugepage with a free run at its end.
  void Return(HugePageTracker* tracker, size_t first, size_t n) {
    With(tracker, [&] {
      tracker->Claim(first, n, true);
      tracker->Unclaim(first, n, /*returned=*/true, /*zeroed=*/true);
    });
  }

  HugePageTracker* Find(size_t n, size_t alignment = 1) {
    return filler_->Find(Length(n), Length(alignment));
  }

  std::unique_ptr<HugePageFiller> filler_ = std::make_unique<HugePageFiller>();

 private:
  testing::FakeMetadata metadata_;
  MetadataArena arena_{testing::FakeMetadata::Source};
  std::deque<HugePageTracker> trackers_;
};

TEST_F(HugePageFillerTest, AnUpdateMovesAHugepageToWhereItBelongs) {
  HugePageTracker* tracker = Insert(4);
  filler_->Update(tracker, [&] { tracker->Claim(kPages - 1, 1, true); });
  EXPECT_EQ(Find(4), nullptr);
  EXPECT_EQ(Find(3), tracker);
  EXPECT_EQ(filler_->empty_ones(), 0u);
  filler_->Update(tracker, [&] { tracker->Unclaim(kPages - 1, 1, /*returned=*/true, false); });
  EXPECT_EQ(Find(4), tracker);
  filler_->Update(tracker, [&] { tracker->Unclaim(0, kPages - 4, /*returned=*/true, false); });
  EXPECT_EQ(filler_->FindEmpty(), tracker);
  EXPECT_EQ(filler_->empty_ones(), 1u);
}

TEST(HugePageFillerWithoutMemoryTest, HasNoRoomAndFindsNothing) {
  MetadataArena arena([](size_t) -> void* { return nullptr; });
  HugePageFiller filler;
  EXPECT_FALSE(filler.Reserve(arena));
  EXPECT_EQ(filler.Find(Length(1), Length(1)), nullptr);
  filler.CheckInvariants();
}

TEST_F(HugePageFillerTest, EmptyFindsNothing) {
  EXPECT_EQ(Find(1), nullptr);
  EXPECT_EQ(filler_->FindEmptiest(), nullptr);
  EXPECT_EQ(filler_->FindCollapsible(), nullptr);
}

TEST_F(HugePageFillerTest, TheShortestRunThatIsLongEnough) {
  HugePageTracker* two = Insert(2);
  HugePageTracker* four = Insert(4);
  HugePageTracker* seven = Insert(7);
  EXPECT_EQ(Find(1), two);
  EXPECT_EQ(Find(2), two);
  EXPECT_EQ(Find(3), four);
  EXPECT_EQ(Find(5), seven);
  EXPECT_EQ(Find(8), nullptr);
}

TEST_F(HugePageFillerTest, AmongEqualsTheMostAllocations) {
  HugePageTracker* few = Insert(3, 1);
  HugePageTracker* many = Insert(3, 5);
  Insert(3, 2);
  EXPECT_EQ(Find(2), many);
  filler_->Remove(many);
  EXPECT_NE(Find(2), few);
}

TEST_F(HugePageFillerTest, WholeHugepagesBeforeBrokenOnes) {
  HugePageTracker* broken = Insert(3);
  Return(broken, kPages - 1, 1);
  EXPECT_EQ(Find(1), broken);
  HugePageTracker* whole = Insert(6);
  EXPECT_EQ(Find(1), whole);
}

TEST_F(HugePageFillerTest, AnEmptyHugepageIsTheLastChoice) {
  HugePageTracker* empty = Insert(kPages);
  EXPECT_EQ(Find(1), empty);
  EXPECT_EQ(filler_->FindEmpty(), empty);
  HugePageTracker* broken = Insert(6);
  Return(broken, kPages - 1, 1);
  EXPECT_EQ(Find(1), broken);
  EXPECT_EQ(Find(7), empty);
}

TEST_F(HugePageFillerTest, OfBrokenOnesTheShortestRunToo) {
  HugePageTracker* with_free = Insert(6);
  Return(with_free, kPages - 1, 1);
  HugePageTracker* all_returned = Insert(3);
  Return(all_returned, kPages - 3, 3);
  EXPECT_EQ(Find(2), all_returned);
  EXPECT_EQ(Find(4), with_free);
}

TEST_F(HugePageFillerTest, AlignedRequestsNeedRoomOrLuck) {
  // Ends at a multiple of every alignment, so that a run of three holds two at a multiple of two.
  HugePageTracker* lucky = Insert(3);
  EXPECT_EQ(Find(2, 2), lucky);
  // But not one of four at a multiple of four.
  HugePageTracker* roomy = Insert(7);
  EXPECT_EQ(Find(3, 4), roomy);
  EXPECT_EQ(Find(3, kPages / 2), nullptr);
}

TEST_F(HugePageFillerTest, FollowsChanges) {
  HugePageTracker* tracker = Insert(4);
  With(tracker, [&] { tracker->Claim(kPages - 4, 2, true); });
  EXPECT_EQ(Find(3), nullptr);
  EXPECT_EQ(Find(2), tracker);
  With(tracker, [&] { tracker->Unclaim(kPages - 4, 2, false, false); });
  EXPECT_EQ(Find(3), tracker);
}

TEST_F(HugePageFillerTest, EmptiestForReleases) {
  HugePageTracker* whole = Insert(6);
  EXPECT_EQ(filler_->FindEmptiest(), whole);
  HugePageTracker* broken = Insert(3);
  Return(broken, kPages - 1, 1);
  EXPECT_EQ(filler_->FindEmptiest(), broken) << "loses less";
  HugePageTracker* returned = Insert(7);
  Return(returned, kPages - 7, 7);
  EXPECT_EQ(filler_->FindEmptiest(), broken) << "has nothing to give";
  HugePageTracker* empty = Insert(kPages);
  EXPECT_EQ(filler_->FindEmptiest(), empty) << "loses nothing";
}

TEST_F(HugePageFillerTest, NearlyFullOnesAreCollapsibleOnce) {
  Insert(kPages / 8 + 1);
  EXPECT_EQ(filler_->FindCollapsible(), nullptr);
  HugePageTracker* dense = Insert(kPages / 8);
  EXPECT_EQ(filler_->FindCollapsible(), dense);
  With(dense, [&] { dense->collapse_tried = true; });
  EXPECT_EQ(filler_->FindCollapsible(), nullptr);
  HugePageTracker* backed = Insert(0);
  With(backed, [&] { backed->backed = true; });
  EXPECT_EQ(filler_->FindCollapsible(), nullptr);
}

TEST_F(HugePageFillerTest, CountsWhatHugepagesGainAndWaste) {
  HugePageTracker* backed = Insert(3);
  With(backed, [&] { backed->backed = true; });
  Insert(5);
  EXPECT_EQ(filler_->hugepages(), 2u);
  EXPECT_EQ(filler_->backed_used(), Length(kPages - 3));
  EXPECT_EQ(filler_->backed_unused(), Length(3));
}

TEST_F(HugePageFillerTest, CountsTheSlackOfTails) {
  HugePageTracker* tail = Insert(6);
  With(tail, [&] { tail->tail = true; });
  EXPECT_EQ(filler_->tail_slack(), Length(6));
  With(tail, [&] { tail->Claim(kPages - 2, 2, true); });
  EXPECT_EQ(filler_->tail_slack(), Length(4));
  filler_->Remove(tail);
  EXPECT_EQ(filler_->tail_slack(), Length(0));
}

TEST_F(HugePageFillerTest, AChangeInPlaceIsNoticed) {
  HugePageTracker* tracker = Insert(4);
  tracker->Claim(kPages - 4, 1, true);
  EXPECT_DEATH(filler_->CheckInvariants(), "check failed");
  tracker->Unclaim(kPages - 4, 1, false, false);
}

}  // namespace
}  // namespace tcmalloc
