// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/per_thread/region_sorter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "cache/per_thread/page_bins.h"
#include "cache/scatter.h"
#include "fakes/object_space.h"
#include "size_class/size_classes.h"

namespace tcmalloc::testing {
namespace {

// The objects of a span, of each class that may be sorted.
class RegionSorterTest : public ::testing::Test {
 protected:
  static constexpr size_t kMostBytes = size_t{1} << 20;

  std::vector<void*> ObjectsOf(const SizeClassInfo& info) {
    std::vector<void*> objects;
    const auto begin = reinterpret_cast<uintptr_t>(memory_.data());
    char* start = memory_.data() + (kMostBytes - begin % kMostBytes) % kMostBytes;
    for (uint32_t i = 0; i < info.objects; ++i) objects.push_back(start + size_t{i} * info.size);
    return objects;
  }

  ObjectSpace space_{Window::kAll};
  std::vector<char> memory_ = std::vector<char>(2 * kMostBytes);
};

TEST_F(RegionSorterTest, LinksInAscendingOrder) {
  std::mt19937_64 random(3);
  for (const SizeClassInfo& info : kSizeClasses) {
    if (info.size == 0 || info.size > kScatterMostSize) continue;
    const uint32_t region = PageBins::RegionBytes(info.size);
    std::vector<void*> objects = ObjectsOf(info);
    for (auto from = objects.begin(); from != objects.end();) {
      const auto number = [=](const void* object) {
        return reinterpret_cast<uintptr_t>(object) / region;
      };
      const auto end = std::find_if(
          from, objects.end(), [&](const void* object) { return number(object) != number(*from); });
      std::vector<void*> shuffled(from, end);
      std::shuffle(shuffled.begin(), shuffled.end(), random);
      RegionSorter sorter(info.size, region);
      for (void* object : shuffled) ASSERT_TRUE(sorter.Add(ReferenceTo(object))) << info.size;
      EXPECT_FALSE(sorter.Add(ReferenceTo(shuffled.front()))) << "it is there already";
      const Chain chain = sorter.Link(space_.codec);
      EXPECT_EQ(space_.Objects(chain), std::vector<void*>(from, end)) << info.size;
      from = end;
    }
  }
}

TEST_F(RegionSorterTest, OfNothingMakesAnEmptyChain) {
  EXPECT_TRUE(RegionSorter(64, 4096).Link(space_.codec).empty());
}

}  // namespace
}  // namespace tcmalloc::testing
