// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Pages of samples, for every page size that may be configured.

#undef TCMALLOC_PAGE_SHIFT
#define TCMALLOC_PAGE_SHIFT TCM_PAGE_SHIFT_OF_TEST

#include "central/sampled_page.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace tcmalloc::testing {
namespace {

TEST(SampledPageTest, AUnitHasAClass) {
  EXPECT_EQ(kSizeClasses[SampledPage::kUnitClass].size, SampledPage::kUnitBytes);
}

TEST(SampledPageTest, ObjectsOfEachClassOfLessThanAPageFillIt) {
  for (uint8_t c = 1; kSizeClasses[c].size < kPageSize; ++c) {
    const size_t size = kSizeClasses[c].size;
    SampledPage page;
    size_t count = 0;
    for (size_t place = page.FindRoom(c); place != SampledPage::kNoPlace;
         place = page.FindRoom(c)) {
      const size_t offset = place * SampledPage::kUnitBytes;
      ASSERT_EQ(offset & MisplacedBits(c), 0u) << size;
      ASSERT_LE(offset + size, kPageSize) << size;
      page.Take(place, c, SampleId{1});
      EXPECT_EQ(page.FindAround(offset + size - 1), place) << size;
      ++count;
    }
    EXPECT_GE(count, 1u) << size;
    EXPECT_LE(count * size, kPageSize) << size;
  }
}

}  // namespace
}  // namespace tcmalloc::testing
