// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/huge/huge_page_map.h"

#include <gtest/gtest.h>

#include <memory>

#include "fakes/fake_metadata.h"

namespace tcmalloc {
namespace {

constexpr uintptr_t kEnd = uintptr_t{1} << (kAddressBits - kHugePageShift);

class HugePageMapTest : public ::testing::Test {
 protected:
  testing::FakeMetadata metadata_;
  MetadataArena arena_{testing::FakeMetadata::Source};
  std::unique_ptr<HugePageMap> map_ = std::make_unique<HugePageMap>(arena_);
};

TEST_F(HugePageMapTest, EveryNumberMayBeLookedUp) {
  for (uintptr_t index : {uintptr_t{0}, kEnd - 1, kEnd, UINTPTR_MAX}) {
    EXPECT_EQ(map_->Get(HugePage(index)), nullptr);
  }
}

TEST_F(HugePageMapTest, ATrackerIsMadeOnce) {
  for (uintptr_t index : {uintptr_t{0}, uintptr_t{16383}, uintptr_t{16384}, kEnd - 1}) {
    const HugePage page(index);
    ASSERT_TRUE(map_->Ensure(page, 1));
    EXPECT_EQ(map_->Get(page), nullptr);
    HugePageTracker* tracker = map_->GetOrMake(page);
    ASSERT_NE(tracker, nullptr);
    EXPECT_EQ(tracker->hugepage, page);
    EXPECT_EQ(tracker->place, HugePageTracker::Place::kNone);
    EXPECT_EQ(map_->GetOrMake(page), tracker);
    EXPECT_EQ(map_->Get(page), tracker);
  }
}

TEST_F(HugePageMapTest, EnsureCoversAllLeaves) {
  ASSERT_TRUE(map_->Ensure(HugePage(16383), 2));
  EXPECT_NE(map_->GetOrMake(HugePage(16383)), nullptr);
  EXPECT_NE(map_->GetOrMake(HugePage(16384)), nullptr);
}

TEST_F(HugePageMapTest, NothingBeyondTheAddressSpace) {
  EXPECT_TRUE(map_->Ensure(HugePage(kEnd - 1), 1));
  EXPECT_FALSE(map_->Ensure(HugePage(kEnd - 1), 2));
  EXPECT_FALSE(map_->Ensure(HugePage(kEnd), 1));
}

TEST_F(HugePageMapTest, WithoutMemory) {
  ASSERT_TRUE(map_->Ensure(HugePage(1), 1));
  metadata_.exhausted = true;
  while (arena_.Allocate(256, 8) != nullptr) continue;
  EXPECT_FALSE(map_->Ensure(HugePage(1 << 20), 1));
  size_t made = 0;
  for (uintptr_t i = 0; i < 16384 && map_->GetOrMake(HugePage(i)) != nullptr; ++i) ++made;
  EXPECT_LT(made, 16384u);
  EXPECT_EQ(map_->Get(HugePage(made)), nullptr);
}

}  // namespace
}  // namespace tcmalloc
