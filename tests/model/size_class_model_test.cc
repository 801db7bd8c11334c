// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The size-class tables against their slow definition, for random sizes, alignments and offsets.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>

#include "model/replay.h"
#include "model/smallest_class.h"
#include "size_class/size_classes.h"

namespace tcmalloc::testing {
namespace {

constexpr int kSteps = 200'000;

// All orders of magnitude alike.
size_t RandomSize(std::mt19937_64& random) { return random() % (size_t{2} << random() % 19); }

class SizeClassModelTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  std::mt19937_64 random_{GetParam()};
};

TEST_P(SizeClassModelTest, ClassBySize) {
  for (int step = 0; step < kSteps; ++step) {
    const size_t size = RandomSize(random_);
    if (size > kMaxSmallSize) continue;
    ASSERT_EQ(SizeClassFor(size), SmallestClass(size, 1)) << size;
  }
}

TEST_P(SizeClassModelTest, ClassBySizeAndAlignment) {
  for (int step = 0; step < kSteps; ++step) {
    const size_t size = RandomSize(random_);
    const size_t alignment = size_t{1} << random_() % 24;
    const uint8_t expected = alignment > kPageSize ? uint8_t{0} : SmallestClass(size, alignment);
    ASSERT_EQ(SizeClassForAligned(size, alignment), expected) << size << " to " << alignment;
  }
}

TEST_P(SizeClassModelTest, ObjectByOffset) {
  for (int step = 0; step < kSteps; ++step) {
    const auto c = static_cast<uint8_t>(1 + random_() % (kSizeClassCount - 1));
    const SizeClassInfo& info = kSizeClasses[c];
    const size_t index = random_() % info.objects;
    const size_t inside = random_() % info.size;
    ASSERT_EQ(ObjectIndex(index * info.size + inside, c), index);
    ASSERT_EQ(IsObjectStart(index * info.size + inside, c), inside == 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SizeClassModelTest,
                         ::testing::Range(ModelSeeds().front(), ModelSeeds().back() + 1));

}  // namespace
}  // namespace tcmalloc::testing
