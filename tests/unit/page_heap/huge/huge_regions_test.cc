// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/huge/huge_regions.h"

#include <gtest/gtest.h>

#include <memory>

#include "fakes/fake_metadata.h"

namespace tcmalloc {
namespace {

constexpr HugePage kFirst(1000);

class HugeRegionsTest : public ::testing::Test {
 protected:
  static constexpr Length kOne = kPagesPerHugePage;

  HugeRegionsTest() { EXPECT_TRUE(map_->Ensure(kFirst, 100)); }

  static PageId At(Length offset) { return kFirst.first_page() + offset; }

  template <typename F>
  void ForEachPiece(PageId first, Length n, F f) {
    for (PageId page = first; page < first + n;) {
      HugePageTracker* tracker = map_->Get(HugePage::Containing(page));
      const PageId end = std::min(first + n, tracker->hugepage.end_page());
      f(tracker, (page - tracker->hugepage.first_page()).pages(), (end - page).pages());
      page = end;
    }
  }
  void Claim(PageId first, Length n) {
    ForEachPiece(first, n, [](HugePageTracker* tracker, size_t page, size_t pages) {
      tracker->Claim(page, pages, true);
    });
  }
  void Unclaim(PageId first, Length n, bool returned) {
    ForEachPiece(first, n, [&](HugePageTracker* tracker, size_t page, size_t pages) {
      tracker->Unclaim(page, pages, returned, false);
    });
  }

  testing::FakeMetadata metadata_;
  MetadataArena arena_{testing::FakeMetadata::Source};
  std::unique_ptr<HugePageMap> map_ = std::make_unique<HugePageMap>(arena_);
  HugeRegions regions_{*map_, arena_};
};

TEST_F(HugeRegionsTest, WantsWhatWouldLeaveMuchOver) {
  EXPECT_FALSE(HugeRegions::ShouldHold(Length(1)));
  EXPECT_FALSE(HugeRegions::ShouldHold(kOne));
  EXPECT_TRUE(HugeRegions::ShouldHold(kOne + Length(1)));
  EXPECT_FALSE(HugeRegions::ShouldHold(kOne * 2 - Length(1)));
  EXPECT_FALSE(HugeRegions::ShouldHold(kOne * 8 + Length(1)));
}

TEST_F(HugeRegionsTest, SpansLieSideBySide) {
  EXPECT_EQ(regions_.Find(Length(1), Length(1)), PageId(0));
  ASSERT_TRUE(regions_.Add(kFirst, /*returned=*/true, /*zeroed=*/true));
  const Length n = kOne + Length(1);
  for (uintptr_t i = 0; i < 20; ++i) {
    EXPECT_EQ(regions_.Find(n, Length(1)), At(n * i));
    Claim(At(n * i), n);
  }
  Unclaim(At(n * 3), n, false);
  EXPECT_EQ(regions_.Find(n, Length(1)), At(n * 3));
  EXPECT_EQ(regions_.Find(n + Length(1), Length(1)), At(n * 20));
  EXPECT_EQ(regions_.Find(HugeRegions::kLength, Length(1)), PageId(0));
}

TEST_F(HugeRegionsTest, AlignedPlaces) {
  ASSERT_TRUE(regions_.Add(kFirst, true, true));
  Claim(At(Length(0)), Length(1));
  EXPECT_EQ(regions_.Find(kOne, Length(4)), At(Length(4)));
  EXPECT_EQ(regions_.Find(kOne, kOne), At(kOne));
}

TEST_F(HugeRegionsTest, ReachesItsLastPage) {
  ASSERT_TRUE(regions_.Add(kFirst, true, true));
  EXPECT_EQ(regions_.Find(HugeRegions::kLength, Length(1)), At(Length(0)));
  Claim(At(Length(0)), HugeRegions::kLength);
  EXPECT_EQ(regions_.Find(Length(1), Length(1)), PageId(0));
}

TEST_F(HugeRegionsTest, FreeMemoryOfEmptyHugepagesFirst) {
  ASSERT_TRUE(regions_.Add(kFirst, true, true));
  EXPECT_EQ(regions_.FindWithFreeMemory(false), nullptr);
  Claim(At(Length(0)), kOne * 3);
  Unclaim(At(Length(0)), Length(1), false);
  EXPECT_EQ(regions_.FindWithFreeMemory(false), map_->Get(kFirst));
  EXPECT_EQ(regions_.FindWithFreeMemory(true), nullptr);
  Unclaim(At(kOne), kOne, false);
  EXPECT_EQ(regions_.FindWithFreeMemory(false), map_->Get(kFirst + 1));
  EXPECT_EQ(regions_.FindWithFreeMemory(true), map_->Get(kFirst + 1));
}

TEST_F(HugeRegionsTest, DissolvesWhenEmpty) {
  ASSERT_TRUE(regions_.Add(kFirst + HugeRegions::kHugePages, true, true));
  ASSERT_TRUE(regions_.Add(kFirst, true, true));
  Claim(At(Length(5)), Length(1));
  HugePage first;
  EXPECT_FALSE(regions_.Dissolve(kFirst + 3, &first));
  Unclaim(At(Length(5)), Length(1), true);
  EXPECT_TRUE(regions_.Dissolve(kFirst + 3, &first));
  EXPECT_EQ(first, kFirst);
  EXPECT_EQ(map_->Get(kFirst + 3)->place, HugePageTracker::Place::kNone);
  EXPECT_EQ(regions_.count(), 1u);
  EXPECT_EQ(regions_.Find(Length(1), Length(1)), At(HugeRegions::kLength));
}

TEST_F(HugeRegionsTest, WithoutMetadataThereIsNone) {
  metadata_.exhausted = true;
  while (arena_.Allocate(64, 8) != nullptr) continue;
  EXPECT_FALSE(regions_.Add(kFirst, true, true));
  EXPECT_EQ(regions_.count(), 0u);
  metadata_.exhausted = false;
  EXPECT_TRUE(regions_.Add(kFirst, true, true));
}

}  // namespace
}  // namespace tcmalloc
