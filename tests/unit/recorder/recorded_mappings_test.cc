// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "recorder/recorded_mappings.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <random>

namespace tcmalloc {
namespace {

class RecordedMappingsTest : public ::testing::Test {
 protected:
  StackId Name(uintptr_t frame) {
    void* const frames[] = {reinterpret_cast<void*>(frame)};
    return stacks_->NameOf(frames);
  }
  StackTotals Sum() const {
    StackTotals sum;
    stacks_->ForEach(
        [&](std::span<const uintptr_t>, const StackTotals& totals) { sum.Add(totals); });
    return sum;
  }

  std::unique_ptr<StackTable> table_ = std::make_unique<StackTable>();
  std::unique_ptr<RecordedStacks> stacks_ = std::make_unique<RecordedStacks>(*table_);
  RecordedMappings mappings_{*stacks_};
};

TEST_F(RecordedMappingsTest, AMappingIsUnmappedInPieces) {
  EXPECT_EQ(mappings_.Add(1000, 100, Name(1)), 0u);
  EXPECT_EQ(mappings_.Remove(2000, 100), 0u);
  EXPECT_EQ(mappings_.Remove(1040, 20), 20u);
  EXPECT_EQ(mappings_.Remove(1040, 20), 0u);
  EXPECT_EQ(mappings_.Remove(990, 20), 10u);
  EXPECT_EQ(mappings_.Remove(1090, 20), 10u);
  EXPECT_EQ(Sum().bytes_in_use(), 60u);
  EXPECT_EQ(Sum().objects_in_use(), 1u);
  EXPECT_EQ(mappings_.Remove(0, 5000), 60u);
  EXPECT_EQ(Sum().bytes_in_use(), 0u);
  EXPECT_EQ(Sum().objects_in_use(), 0u);
  EXPECT_EQ(Sum().allocations, 1u);
}

TEST_F(RecordedMappingsTest, AMappingTakesThePlaceOfOthers) {
  mappings_.Add(1000, 100, Name(1));
  mappings_.Add(1100, 100, Name(2));
  EXPECT_EQ(mappings_.Add(1050, 100, Name(3)), 100u);
  EXPECT_EQ(Sum().bytes_in_use(), 200u);
  EXPECT_EQ(mappings_.Add(1060, 10, Name(1)), 10u);
  EXPECT_EQ(Sum().bytes_in_use(), 200u);
  mappings_.Clear();
  EXPECT_EQ(mappings_.Remove(0, 5000), 0u);
}

// Compares with an array that has the owner of each address.
TEST_F(RecordedMappingsTest, AgreesWithAModelThroughRandomActions) {
  constexpr size_t kAddresses = 2000;
  std::array<uint32_t, kAddresses> owners = {};
  std::mt19937 random(1);
  for (uint32_t i = 1; i < 20'000; ++i) {
    const size_t start = random() % kAddresses;
    const size_t bytes = 1 + random() % std::min<size_t>(kAddresses - start, 100);
    size_t mapped = 0;
    const bool add = random() % 2 == 0;
    for (size_t k = start; k < start + bytes; ++k) {
      mapped += owners[k] != 0 ? 1 : 0;
      owners[k] = add ? i : 0;
    }
    if (add) {
      ASSERT_EQ(mappings_.Add(start, bytes, Name(1 + i % 7)), mapped);
    } else {
      ASSERT_EQ(mappings_.Remove(start, bytes), mapped);
    }
  }
  const auto in_use = kAddresses - static_cast<size_t>(std::ranges::count(owners, 0u));
  EXPECT_EQ(Sum().bytes_in_use(), in_use);
  EXPECT_EQ(mappings_.Remove(0, kAddresses), in_use);
  EXPECT_EQ(Sum().bytes_in_use(), 0u);
  EXPECT_LE(Sum().frees, Sum().allocations);
}

}  // namespace
}  // namespace tcmalloc
