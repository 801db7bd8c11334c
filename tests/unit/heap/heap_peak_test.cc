// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What the heap counts at its peak.

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "heap/heap.h"
#include "transfer/batch_source.h"
#include "unit/heap/whole_heap_test.h"
#include "unit/mebibytes.h"

namespace tcmalloc::testing {
namespace {

class PeakOfHeapTest : public WholeHeapTest {
 protected:
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
  heap.UpdatePeak();
  const PeakStats before = Known();
  std::vector<void*> objects(kObjects);
  for (void*& object : objects) object = FetchOne(heap.transfer(c), heap.codec());
  Span* span = heap.page_heap().New(MiB(20));
  ASSERT_NE(span, nullptr);
  EXPECT_TRUE(heap.peak().IsDue(heap.page_heap().committed()));
  heap.UpdatePeak();
  const PeakStats peak = Known();
  EXPECT_EQ(peak.in_use, before.in_use + 20 * kMiB + kObjects * kSizeClasses[c].size);
  EXPECT_EQ(peak.committed, heap.page_heap().committed());
  EXPECT_GE(peak.physical, peak.in_use);
  EXPECT_LE(peak.physical, peak.committed.bytes() + heap.CountMetadata());

  heap.page_heap().Delete(span);
  Return(c, objects);
  heap.UpdatePeak();
  EXPECT_EQ(Known().in_use, peak.in_use);
}

TEST_F(PeakOfHeapTest, WhatIsCachedIsNotInUse) {
  const uint8_t c = SizeClassFor(kMaxSmallSize);
  heap.Shed(nullptr, Length::Max());
  Span* span = heap.page_heap().New(Known().committed + MiB(5));
  heap.UpdatePeak();
  const PeakStats before = Known();
  std::vector<void*> objects(12);
  for (void*& object : objects) object = FetchOne(heap.transfer(c), heap.codec());
  Return(c, objects);
  ASSERT_GT(heap.transfer(c).stats().objects, 0u);
  ASSERT_GT(heap.page_heap().committed(), before.committed);
  heap.UpdatePeak();
  EXPECT_GT(Known().committed, before.committed);
  EXPECT_EQ(Known().in_use, before.in_use);
  heap.page_heap().Delete(span);
  heap.Shed(nullptr, Length(0));
}

TEST_F(PeakOfHeapTest, OneThreadLooksAtATime) {
  SpinLock& lock = heap.peak().lock();
  SpinLockHolder holder(lock);
  // Would wait for ever if it waited.
  heap.UpdatePeak();
}

}  // namespace
}  // namespace tcmalloc::testing
