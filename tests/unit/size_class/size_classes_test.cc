// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

// Instead of an option of the compiler, with which it would not use the headers that are compiled
// once.
#undef TCMALLOC_PAGE_SHIFT
#define TCMALLOC_PAGE_SHIFT TCM_PAGE_SHIFT_OF_TEST

#include "size_class/size_classes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>

#include "model/smallest_class.h"

namespace tcmalloc {
namespace {

using testing::IsForAlignedOnly;
using testing::SmallestClass;

constexpr size_t kAlignments[] = {1,    2,    4,    8,    16,    32,    64,    128,    256,   512,
                                  1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144};

template <typename Check>
void ForEachClass(Check check) {
  for (size_t i = 1; i < kSizeClassCount; ++i) {
    SCOPED_TRACE(::testing::Message() << "class " << i << ", size " << kSizeClasses[i].size);
    check(static_cast<uint8_t>(i), kSizeClasses[i]);
  }
}

TEST(SizeClasses, ClassZeroIsEmpty) {
  EXPECT_EQ(kSizeClasses[0].size, 0u);
  EXPECT_EQ(kSizeClasses[0].objects, 0u);
}

TEST(SizeClasses, SizesGrowAndAreAligned) {
  ForEachClass([](uint8_t size_class, const SizeClassInfo& info) {
    EXPECT_GT(info.size, kSizeClasses[size_class - 1].size);
    EXPECT_EQ(info.size % (info.size >= 16 ? 16 : 8), 0u);
  });
  EXPECT_EQ(kSizeClasses[kSizeClassCount - 1].size, kMaxSmallSize);
}

TEST(SizeClasses, EverySizeGetsTheSmallestClassThatHoldsIt) {
  size_t expected = 1;
  for (size_t size = 0; size <= kMaxSmallSize; ++size) {
    while (kSizeClasses[expected].size < size || IsForAlignedOnly(kSizeClasses[expected].size)) {
      ++expected;
    }
    ASSERT_EQ(SizeClassFor(size), expected) << size;
  }
}

// Returns the number of cache lines, of 64 bytes in 64 sets, in whose sets objects begin.
size_t SetsInWhichObjectsBegin(size_t object_bytes) {
  std::set<size_t> sets;
  for (size_t i = 0; i < 4096; ++i) sets.insert(i * object_bytes / 64 % 64);
  return sets.size();
}

TEST(SizeClasses, ObjectsOfPowersOfTwoBeginInAllSetsOfACache) {
  for (const size_t size : {256, 512, 1024}) {
    EXPECT_EQ(SetsInWhichObjectsBegin(kSizeClasses[SizeClassFor(size)].size), 64u) << size;
    EXPECT_EQ(kSizeClasses[SizeClassFor(size)].size, size + (size < 1024 ? 16 : 32));
  }
}

TEST(SizeClasses, NoSmallerRequestGetsAClass) {
  ForEachClass([](uint8_t size_class, const SizeClassInfo& info) {
    if (size_class == 1 || IsForAlignedOnly(info.size)) return;
    const size_t least = LeastRequest(size_class);
    EXPECT_EQ(SizeClassFor(least), size_class);
    EXPECT_LT(SizeClassFor(least - 1), size_class);
  });
}

TEST(SizeClasses, AClassIsFoundByItsOwnSize) {
  ForEachClass([](uint8_t size_class, const SizeClassInfo& info) {
    EXPECT_EQ(SmallestSizeClassFor(info.size), size_class);
    if (!IsForAlignedOnly(info.size)) {
      EXPECT_EQ(SizeClassFor(info.size), size_class);
    }
  });
}

TEST(SizeClasses, RoundingWastesAtMostAnEighthAndATenthOnAverage) {
  double sum = 0;
  size_t count = 0;
  for (size_t size = 113; size <= kMaxSmallSize; ++size) {
    const size_t waste = kSizeClasses[SizeClassFor(size)].size - size;
    ASSERT_LE(waste * 8, kSizeClasses[SizeClassFor(size)].size) << size;
    if (size < 1024) continue;
    sum += static_cast<double>(waste) / static_cast<double>(kSizeClasses[SizeClassFor(size)].size);
    ++count;
  }
  EXPECT_LT(sum / static_cast<double>(count), 0.10);
}

TEST(SizeClasses, ObjectsFillTheirSpan) {
  ForEachClass([](uint8_t, const SizeClassInfo& info) {
    EXPECT_GE(info.objects, 1u);
    EXPECT_LE(size_t{info.objects} * info.size, info.span_bytes());
    EXPECT_GT((size_t{info.objects} + 1) * info.size, info.span_bytes());
  });
}

TEST(SizeClasses, SpansHoldSeveralObjects) {
  ForEachClass([](uint8_t, const SizeClassInfo& info) {
    if (info.size <= 8192) {
      EXPECT_GE(info.objects, 8u);
    }
    if (info.size <= 32768) {
      EXPECT_GE(info.objects, 4u);
    }
  });
}

TEST(SizeClasses, TailsAreShort) {
  ForEachClass([](uint8_t, const SizeClassInfo& info) {
    const size_t tail = info.span_bytes() - size_t{info.objects} * info.size;
    if (info.size <= 1024) {
      EXPECT_LE(tail * 1000, info.span_bytes() * 5);
    }
    if (info.size <= 4096) {
      EXPECT_LE(tail * 1000, info.span_bytes() * 15);
    }
  });
}

TEST(SizeClasses, RoundingAndTailTogetherWasteAtMostAnEighth) {
  ForEachClass([](uint8_t size_class, const SizeClassInfo& info) {
    if (info.size < 128) return;
    const size_t least = LeastRequest(size_class);
    EXPECT_LE((info.span_bytes() - info.objects * least) * 8, info.span_bytes());
  });
}

TEST(SizeClasses, ManyObjectsCostAtMostOnePercentMore) {
  ForEachClass([](uint8_t, const SizeClassInfo& info) {
    if (info.size > 1024) return;
    const double bytes = static_cast<double>(info.span_bytes() + 64 + 9 * size_t{info.pages});
    EXPECT_LE(bytes / info.objects, 1.01 * info.size);
  });
}

TEST(SizeClasses, BatchesAreBoundedAndShrinkWithSize) {
  ForEachClass([](uint8_t size_class, const SizeClassInfo& info) {
    EXPECT_GE(info.batch, 2u);
    EXPECT_LE(info.batch, kDefaultMaxBatch);
    if (size_class > 1) {
      EXPECT_LE(info.batch, kSizeClasses[size_class - 1].batch);
    }
    // Above four objects a batch stays within 64 KiB; four of up to 32 KiB may be 128 KiB.
    if (info.batch > 4) {
      EXPECT_LE(info.batch * info.size, 65536u);
    } else if (info.batch > 2) {
      EXPECT_LE(info.size, 32768u);
    }
  });
}

TEST(SizeClasses, AlignedRequestsGetTheSmallestClassThatIsAligned) {
  for (size_t alignment : kAlignments) {
    if (alignment > kPageSize) {
      EXPECT_EQ(SizeClassForAligned(1, alignment), 0);
      continue;
    }
    for (size_t size = 0; size <= kMaxSmallSize; size += size < 2048 ? 1 : 61) {
      ASSERT_EQ(SizeClassForAligned(size, alignment), SmallestClass(size, alignment))
          << size << " aligned to " << alignment;
    }
  }
}

TEST(SizeClasses, AlignedRequestsThatAreTooLargeGetNone) {
  EXPECT_EQ(SizeClassForAligned(kMaxSmallSize + 1, 16), 0);
  EXPECT_EQ(SizeClassForAligned(SIZE_MAX, 16), 0);
  EXPECT_EQ(SizeClassForAligned(SIZE_MAX, kPageSize), 0);
  EXPECT_NE(SizeClassForAligned(kMaxSmallSize, kPageSize), 0);
}

TEST(SizeClasses, ObjectIndexIsExactInTheWholeSpan) {
  ForEachClass([](uint8_t size_class, const SizeClassInfo& info) {
    // The quotient can only be wrong beside a multiple of the size.
    for (size_t i = 0; i <= info.objects; ++i) {
      const size_t start = i * info.size;
      if (start >= info.span_bytes()) break;
      ASSERT_EQ(ObjectIndex(start, size_class), i);
      ASSERT_EQ(ObjectIndex(std::min(start + info.size, info.span_bytes()) - 1, size_class), i);
    }
  });
}

TEST(SizeClasses, NoObjectOfClass0Begins) {
  for (const size_t offset : {size_t{0}, size_t{8}, kPageSize, SIZE_MAX}) {
    EXPECT_FALSE(IsObjectStart(offset, uint8_t{0})) << offset;
  }
}

TEST(SizeClasses, OnlyStartsOfObjectsAreObjectStarts) {
  ForEachClass([](uint8_t size_class, const SizeClassInfo& info) {
    const size_t step = info.size < 4096 ? 1 : 8;
    for (size_t offset = 0; offset < info.span_bytes(); offset += step) {
      const bool expected = offset % info.size == 0 && offset + info.size <= info.span_bytes();
      ASSERT_EQ(IsObjectStart(offset, size_class), expected) << offset;
    }
    for (uint64_t factor = info.objects; factor < uint64_t{1} << 40; factor = factor * 3 + 1) {
      ASSERT_FALSE(IsObjectStart(factor * info.size, size_class)) << factor;
      ASSERT_FALSE(IsObjectStart(-factor * info.size, size_class)) << factor;
    }
  });
}

}  // namespace
}  // namespace tcmalloc
