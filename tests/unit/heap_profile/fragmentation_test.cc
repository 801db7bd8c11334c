// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Spans that known call sites keep from going back to the page heap.

#include "heap_profile/fragmentation.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "allocator/allocate.h"
#include "allocator/deallocate.h"
#include "allocator/slow_path.h"
#include "heap_profile/collected_profile.h"
#include "heap_profile/profiles.h"

namespace tcmalloc {
namespace {

// Sites are told apart by the alignment that they ask for, because the frames of this program say
// nothing without symbols. All have objects of one class.
constexpr size_t kSize = 64;
constexpr size_t kPins = 16;
constexpr size_t kDense = 32;
constexpr size_t kTemporary = 64;

std::map<uint32_t, double> PinnedBySite() {
  CollectedProfile* profile = CollectedProfile::Take(ProfileKind::kFragmentation);
  std::map<uint32_t, double> pinned;
  for (const ProfileRow& row : profile->rows.rows()) {
    pinned[row.sample.alignment] += row.sample.weight * row.pinned;
  }
  profile->Delete();
  return pinned;
}

void EmptyCaches() {
  SlowPath slow_path(SlowPath::Patient{});
  slow_path.Shed(Length(0), ReleaseCause::kProgram);
}

// Returns the free bytes in the spans of the class, when no cache has objects of it.
double FreeBytes() {
  EmptyCaches();
  const CentralStats stats = heap.central(SizeClassFor(kSize)).stats();
  return static_cast<double>((stats.free_objects + stats.uncarved_objects) * kSize);
}

class FragmentationTest : public ::testing::Test {
 protected:
  void SetUp() override { heap.sample_period() = 2048; }
  void TearDown() override {
    for (void* block : blocks_) Deallocate(block);
    EmptyCaches();
  }

  void Keep(size_t site) { blocks_.push_back(AllocateAligned(kSize, site)); }
  // Allocates spans full of blocks and frees all but `pins` of each.
  void PinSpans(int spans, int pins) {
    std::vector<void*> temporary;
    const auto objects = static_cast<int>(kSizeClasses[SizeClassFor(kSize)].objects);
    for (int span = 0; span < spans; ++span) {
      for (int i = 0; i < objects; ++i) {
        if (i % (objects / pins) == 0) {
          Keep(kPins);
        } else {
          temporary.push_back(AllocateAligned(kSize, kTemporary));
        }
      }
    }
    for (void* block : temporary) Deallocate(block);
  }

  std::vector<void*> blocks_;
};

TEST_F(FragmentationTest, WhoeverPinsSpansIsNamedAndOthersOfTheClassAreNot) {
  for (int i = 0; i < 200'000; ++i) Keep(kDense);
  PinSpans(4000, 1);
  const double free_bytes = FreeBytes();
  std::map<uint32_t, double> pinned = PinnedBySite();
  EXPECT_GT(free_bytes, 4000 * 100.0 * kSize);
  // About 120 samples.
  EXPECT_NEAR(pinned[kPins], free_bytes, free_bytes / 3);
  EXPECT_LT(pinned[kDense], free_bytes / 20);
  EXPECT_EQ(pinned[kTemporary], 0);
}

TEST_F(FragmentationTest, SpansWithSeveralPinsCountOnce) {
  PinSpans(2000, 8);
  const double free_bytes = FreeBytes();
  EXPECT_NEAR(PinnedBySite()[kPins], free_bytes, free_bytes / 5);
}

// Where samples are frequent, several of one span lie elsewhere.
TEST_F(FragmentationTest, SamplesOfOneSpanShareIt) {
  heap.sample_period() = 512;
  // Until the thread notices.
  for (int i = 0; i < 10'000; ++i) Deallocate(Allocate(kSize));
  PinSpans(2000, 8);
  const double free_bytes = FreeBytes();
  EXPECT_NEAR(PinnedBySite()[kPins], free_bytes, free_bytes / 10);
}

TEST_F(FragmentationTest, FullSpansPinNothing) {
  for (int i = 0; i < 200'000; ++i) Keep(kDense);
  EmptyCaches();
  EXPECT_LT(PinnedBySite()[kDense], 200'000.0 * kSize / 50);
}

}  // namespace
}  // namespace tcmalloc
