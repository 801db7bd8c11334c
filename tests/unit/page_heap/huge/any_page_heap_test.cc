// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/any_page_heap.h"

#include <gtest/gtest.h>

#include <memory>

#include "unit/page_heap/test_heap.h"

namespace tcmalloc::testing {
namespace {

using Any = AnyPageHeap<FakeSystemMemory>;
static_assert(SpanSource<Any>);

class AnyPageHeapTest : public ::testing::TestWithParam<PageHeapKind> {
 protected:
  AnyPageHeapTest() {
    heaps_->Choose(GetParam());
    heap_ = &heaps_->chosen();
    heap_->set_growth(Length(1), Length(1));
  }
  bool huge() const { return GetParam() == PageHeapKind::kHuge; }

  FakeMetadata metadata_;
  FakeSystemMemory system_{kPageSize << 17};
  MetadataArena arena_{FakeMetadata::Source};
  std::unique_ptr<PageMap> map_ = std::make_unique<PageMap>(arena_);
  std::unique_ptr<Any> heaps_ = std::make_unique<Any>(system_, *map_, arena_);
  PageHeap* heap_ = nullptr;
};

TEST_P(AnyPageHeapTest, TheChosenHeapServes) {
  EXPECT_EQ(heap_->kind(), GetParam());
  Span* span = heaps_->New(Length(3));
  ASSERT_NE(span, nullptr);
  EXPECT_EQ(heap_->stats().system, huge() ? kPagesPerHugePage : Length(3));
  EXPECT_EQ(heap_->huge_stats().shared, huge() ? 1u : 0u);
  Span* aligned = heaps_->NewAligned(Length(3), Length(4));
  ASSERT_NE(aligned, nullptr);
  EXPECT_EQ(aligned->first.index() % 4, 0u);
  heaps_->Delete(aligned);
  heaps_->Delete(span);
  EXPECT_EQ(heap_->stats().in_use(), Length(0));
}

TEST_P(AnyPageHeapTest, EitherDoesWhatTheInterfaceSays) {
  Span* span = heap_->NewAligned(Length(6), Length(4));
  ASSERT_NE(span, nullptr);
  EXPECT_EQ(span->first.index() % 4, 0u);
  heap_->Truncate(span, Length(2));
  EXPECT_EQ(heap_->stats().free, Length(4));
  EXPECT_TRUE(heap_->TryExtend(span, Length(3)));
  EXPECT_EQ(heap_->ReleaseAtLeast(Length(3)), Length(3));
  size_t in_use = 0;
  heap_->ForEachSpan([&](const Span& visited) { in_use += visited.in_use() ? 1 : 0; });
  EXPECT_EQ(in_use, 1u);
  heap_->set_limit(Length(100));
  EXPECT_EQ(heap_->limit(), Length(100));
  EXPECT_EQ(heap_->New(Length(98)), nullptr);
  heap_->set_release_rate(2);
  EXPECT_EQ(heap_->release_rate(), 2);
  heap_->set_aggressive_decommit(true);
  EXPECT_TRUE(heap_->aggressive_decommit());
  heaps_->CheckInvariants();
  heap_->Delete(span);
  EXPECT_EQ(heap_->stats().free, Length(0));
}

TEST_P(AnyPageHeapTest, OnlyTheHugeHeapTakesMemoryForItself) {
  const size_t made = huge() ? sizeof(HugePageHeap<FakeSystemMemory>) : 0;
  EXPECT_GE(arena_.stats().used_bytes, made);
  EXPECT_LT(arena_.stats().used_bytes, made + 4096);
}

TEST(AnyPageHeapWithoutMemoryTest, ItStaysTheClassicOne) {
  FakeSystemMemory system(kPageSize << 10);
  MetadataArena arena([](size_t) -> void* { return nullptr; });
  auto map = std::make_unique<PageMap>(arena);
  Any heap(system, *map, arena);
  heap.Choose(PageHeapKind::kHuge);
  EXPECT_EQ(heap.chosen().kind(), PageHeapKind::kClassic);
}

INSTANTIATE_TEST_SUITE_P(Kinds, AnyPageHeapTest,
                         ::testing::Values(PageHeapKind::kClassic, PageHeapKind::kHuge),
                         [](const ::testing::TestParamInfo<PageHeapKind>& kind) {
                           return kind.param == PageHeapKind::kHuge ? "Huge" : "Classic";
                         });

}  // namespace
}  // namespace tcmalloc::testing
