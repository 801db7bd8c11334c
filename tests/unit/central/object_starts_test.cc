// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "central/object_starts.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tcmalloc::testing {
namespace {

TEST(ObjectStartsTest, KnowsWhichObjectBeginsWhere) {
  for (size_t c = 1; c < kSizeClassCount; ++c) {
    const auto size_class = static_cast<uint8_t>(c);
    const SizeClassInfo& info = kSizeClasses[c];
    const ObjectStarts starts(size_class);
    const size_t span_bytes = size_t{info.pages} << kPageShift;
    for (size_t offset = 0; offset < span_bytes; offset += 8) {
      const bool begins = IsObjectStart(offset, size_class);
      ASSERT_EQ(starts.IndexAt(offset), begins ? offset / info.size : ObjectStarts::kNone)
          << info.size;
    }
    EXPECT_EQ(starts.IndexAt(span_bytes), ObjectStarts::kNone);
    EXPECT_EQ(starts.IndexAt(SIZE_MAX), ObjectStarts::kNone);
  }
}

}  // namespace
}  // namespace tcmalloc::testing
