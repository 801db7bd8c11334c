// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "upkeep/peak.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "heap/heap.h"
#include "transfer/batch_source.h"

namespace tcmalloc::testing {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

Length MiB(uint64_t n) { return Length::FromBytesCeil(n * kMiB); }

PeakStats Moment(uint64_t committed, uint64_t in_use) {
  return {.committed = MiB(committed), .in_use = in_use, .physical = committed};
}

TEST(Peak, IsTheMomentWhenTheMostWasCommitted) {
  Peak peak;
  EXPECT_EQ(peak.Note(Moment(10, 7)).in_use, 7u);
  EXPECT_EQ(peak.Note(Moment(9, 8)).in_use, 7u);
  const PeakStats higher = peak.Note(Moment(12, 2));
  EXPECT_EQ(higher.committed, MiB(12));
  EXPECT_EQ(higher.in_use, 2u);
  EXPECT_EQ(higher.physical, 12u);
}

TEST(Peak, WithinAStepItIsTheMomentWhenTheMostWasInUse) {
  Peak peak;
  peak.Note(Moment(10, 7));
  EXPECT_EQ(peak.Note(Moment(10, 9)).in_use, 9u);
  EXPECT_EQ(peak.Note(Moment(10, 8)).in_use, 9u);
  EXPECT_EQ(peak.Note(Moment(11, 8)).committed, MiB(10)) << "blocks were freed since the peak";
  EXPECT_EQ(peak.Note(Moment(11, 10)).committed, MiB(11));
}

TEST(Peak, SomebodyLooksAfterAStep) {
  Peak peak;
  EXPECT_FALSE(peak.IsDue(Peak::kLeastStep));
  EXPECT_TRUE(peak.IsDue(Peak::kLeastStep + Length(1)));
  for (const uint64_t committed : {uint64_t{10}, uint64_t{1000}}) {
    peak.Note(Moment(committed, 1));
    const Length step = Peak::StepAbove(MiB(committed));
    EXPECT_LE(step.bytes(), std::max(kMiB, committed * kMiB / 32));
    EXPECT_FALSE(peak.IsDue(MiB(committed) + step));
    EXPECT_TRUE(peak.IsDue(MiB(committed) + step + Length(1)));
    peak.Note(Moment(committed / 2, 1));
    EXPECT_FALSE(peak.IsDue(MiB(committed) + step)) << "a heap that shrank is not looked at";
  }
}

// On the process's heap.
class PeakOfHeapTest : public ::testing::Test {
 protected:
  PeakOfHeapTest() {
    heap.EnsureInitialized();
    heap.page_heap().set_release_rate(0);
  }

  static PeakStats Known() { return heap.peak().Note({}); }
  static void Return(uint8_t c, const std::vector<void*>& objects) {
    for (void* object : objects) {
      heap.codec().Link(object, heap.codec().end);
      heap.transfer(c).Insert({ReferenceTo(object), 1});
    }
  }
};

TEST_F(PeakOfHeapTest, CountsWhatIsInUse) {
  constexpr size_t kSize = 1000;
  constexpr size_t kObjects = 10000;
  const uint8_t c = SizeClassFor(kSize);
  heap.Shed(nullptr, Length(0));
  heap.peak().Look();
  const PeakStats before = Known();
  std::vector<void*> objects(kObjects);
  for (void*& object : objects) object = FetchOne(heap.transfer(c), heap.codec());
  Span* span = heap.page_heap().New(MiB(20));
  ASSERT_NE(span, nullptr);
  EXPECT_TRUE(heap.peak().IsDue(heap.page_heap().committed()));
  heap.peak().Look();
  const PeakStats peak = Known();
  EXPECT_EQ(peak.in_use, before.in_use + 20 * kMiB + kObjects * kSizeClasses[c].size);
  EXPECT_EQ(peak.committed, heap.page_heap().committed());
  EXPECT_GE(peak.physical, peak.in_use);
  EXPECT_LE(peak.physical, peak.committed.bytes() + heap.arena().stats().used_bytes);

  heap.page_heap().Delete(span);
  Return(c, objects);
  heap.peak().Look();
  EXPECT_EQ(Known().in_use, peak.in_use);
}

TEST_F(PeakOfHeapTest, WhatIsCachedIsNotInUse) {
  const uint8_t c = SizeClassFor(kMaxSmallSize);
  heap.Shed(nullptr, Length::Max());
  Span* span = heap.page_heap().New(Known().committed + MiB(5));
  heap.peak().Look();
  const PeakStats before = Known();
  std::vector<void*> objects(12);
  for (void*& object : objects) object = FetchOne(heap.transfer(c), heap.codec());
  Return(c, objects);
  ASSERT_GT(heap.transfer(c).stats().objects, 0u);
  ASSERT_GT(heap.page_heap().committed(), before.committed);
  heap.peak().Look();
  EXPECT_GT(Known().committed, before.committed);
  EXPECT_EQ(Known().in_use, before.in_use);
  heap.page_heap().Delete(span);
  heap.Shed(nullptr, Length(0));
}

TEST_F(PeakOfHeapTest, OneThreadLooksAtATime) {
  SpinLock& lock = heap.peak().lock();
  SpinLockHolder holder(lock);
  // Would wait for ever if it waited.
  heap.peak().Look();
}

}  // namespace
}  // namespace tcmalloc::testing
