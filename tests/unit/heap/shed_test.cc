// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What the heap gives up for its limits.

#include <gtest/gtest.h>

#include <cstdint>

#include "heap/heap.h"
#include "transfer/batch_source.h"
#include "unit/heap/whole_heap_test.h"
#include "unit/mebibytes.h"

namespace tcmalloc::testing {
namespace {

class ShedTest : public WholeHeapTest {
 protected:
  // Leaves a chain of class `c` in a transfer cache, and its spans in use.
  static void FillTransferCache(uint8_t c) {
    const LinkCodec& codec = heap.codec();
    Chain chain{codec.end, 0};
    while (chain.count < heap.transfer(c).batch()) {
      void* object = FetchOne(heap.transfer(c), codec);
      ASSERT_NE(object, nullptr);
      codec.Link(object, chain.head);
      chain = {ReferenceTo(object), chain.count + 1};
    }
    heap.transfer(c).Insert(chain);
  }
};

TEST_F(ShedTest, EmptiesEveryStage) {
  constexpr size_t kSize = 320;
  const uint8_t c = SizeClassFor(kSize);
  heap.Shed(nullptr, Length::Max());
  FillTransferCache(c);
  const size_t objects = heap.transfer(c).stats().objects;
  ASSERT_GT(objects, 0u);
  const Length committed = heap.page_heap().committed();
  const ShedBytes shed = heap.Shed(nullptr, Length::Max());
  EXPECT_EQ(shed.transfer, objects * kSize);
  EXPECT_EQ(heap.transfer(c).stats().objects, 0u);
  EXPECT_EQ(heap.page_heap().committed(), committed - Length(shed.page_heap >> kPageShift));
  EXPECT_GE(shed.page_heap, shed.transfer) << "the spans of the objects went back too";
  EXPECT_EQ(heap.page_heap().stats().free, Length(0));
}

TEST_F(ShedTest, ReleasesNoMoreThanItIsTold) {
  heap.Shed(nullptr, Length::Max());
  Span* span = heap.page_heap().New(MiB(8));
  heap.page_heap().Delete(span);
  EXPECT_EQ(heap.Shed(nullptr, Length(0)).page_heap, 0u);
  EXPECT_GT(heap.page_heap().stats().free, MiB(7));
}

TEST_F(ShedTest, OneThreadLooksAtATime) {
  SpinLockHolder holder(heap.limits().lock());
  // Would wait for ever if it waited.
  heap.FollowLimits(nullptr);
}

TEST_F(ShedTest, WhatTheSoftLimitReleasesIsCountedAsSuch) {
  heap.page_heap().Delete(heap.page_heap().New(MiB(64)));
  const PageHeapStats before = heap.page_heap().stats();
  const uint64_t shrinks = heap.limits().stats().soft_shrinks;
  heap.SetSoftLimit((before.committed() - MiB(10)).bytes());
  heap.FollowLimits(nullptr);
  heap.SetSoftLimit(0);
  const Length released = heap.page_heap().stats().released(ReleaseCause::kSoftLimit) -
                          before.released(ReleaseCause::kSoftLimit);
  EXPECT_GE(released, MiB(10));
  EXPECT_EQ(heap.page_heap().stats().released() - before.released(), released);
  EXPECT_EQ(heap.limits().stats().soft_shrinks, shrinks + 1);
}

TEST_F(ShedTest, CommittedIsWhatTheStatisticsSay) {
  Span* span = heap.page_heap().New(MiB(3));
  EXPECT_EQ(heap.page_heap().committed(), heap.page_heap().stats().committed());
  heap.page_heap().Delete(span);
  EXPECT_EQ(heap.page_heap().committed(), heap.page_heap().stats().committed());
  heap.page_heap().ReleaseAtLeast(Length::Max());
  EXPECT_EQ(heap.page_heap().committed(), heap.page_heap().stats().committed());
}

}  // namespace
}  // namespace tcmalloc::testing
