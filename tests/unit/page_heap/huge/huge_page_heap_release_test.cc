// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Giving memory back to the system.

#include <gtest/gtest.h>

#include <vector>

#include "page_heap/huge/huge_page_heap.h"
#include "unit/page_heap/test_heap.h"

namespace tcmalloc::testing {
namespace {

using State = Span::State;

constexpr uint64_t kHalfLife = 8000;

class HugePageHeapReleaseTest : public PageHeapFixture<HugeTestHeap> {
 protected:
  // Fills a hugepage, and frees the first `n` pages of it.
  void MakeFree(uintptr_t n) {
    Span* span = New(n);
    New(kHuge - n);
    heap_->Delete(span);
  }

  // Lets time pass in steps, and returns what went back.
  Length Pass(uint64_t ns) {
    Length released;
    for (uint64_t passed = 0; passed < ns; passed += kHalfLife / 8) {
      now_ += kHalfLife / 8;
      released += heap_->ReleaseUnused(now_, Length::Max());
    }
    return released;
  }

  uint64_t now_ = 1;
};

using Lengths = std::vector<uintptr_t>;

TEST_F(HugePageHeapReleaseTest, WholeHugepagesFirstThenTheEmptiest) {
  MakeFree(2);
  MakeFree(3);
  Span* whole = New(2 * kHuge);
  heap_->Delete(whole);
  EXPECT_EQ(heap_->ReleaseAtLeast(Length(1)), Length(2 * kHuge));
  EXPECT_EQ(heap_->ReleaseAtLeast(Length(4)), Length(5));
  EXPECT_EQ(ReleasedLengths(), (Lengths{2 * kHuge, 3, 2}));
  const PageHeapStats stats = heap_->stats();
  EXPECT_EQ(stats.free, Length(0));
  EXPECT_EQ(stats.releases, 3u);
  EXPECT_EQ(stats.released(), Length(2 * kHuge + 5));
}

TEST_F(HugePageHeapReleaseTest, FreeMemoryOfRegionsGoesBackToo) {
  std::vector<Span*> spans;
  while (heap_->huge_stats().regions == 0) spans.push_back(New(kHuge + 1));
  for (int i = 0; i < 4; ++i) spans.push_back(New(kHuge + 1));
  for (size_t i = 0; i + 1 < spans.size(); ++i) heap_->Delete(spans[i]);
  EXPECT_EQ(heap_->huge_stats().regions, 1u);
  heap_->ReleaseAtLeast(Length::Max());
  EXPECT_EQ(heap_->stats().free, Length(0));
  heap_->CheckInvariants();
}

TEST_F(HugePageHeapReleaseTest, TheHeapIsUsableDuringARelease) {
  MakeFree(5);
  int calls = 0;
  heap_.system.on_release = [&](const FakeSystemMemory::Block& block) {
    if (++calls != 1) return;
    EXPECT_EQ(heap_->stats().in_transit, Length(5));
    heap_->CheckInvariants();
    Span* span = New(2);
    EXPECT_NE(span->start(), block.start);
    heap_->Delete(span);
  };
  EXPECT_EQ(heap_->ReleaseAtLeast(Length(5)), Length(5));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(heap_->stats().in_transit, Length(0));
}

TEST_F(HugePageHeapReleaseTest, AHugepageMayEmptyDuringARelease) {
  Span* a = New(3);
  Span* b = New(kHuge - 3);
  heap_->Delete(a);
  heap_.system.on_release = [&](const FakeSystemMemory::Block&) {
    if (b != nullptr) heap_->Delete(b);
    b = nullptr;
  };
  heap_->ReleaseAtLeast(Length(3));
  heap_->CheckInvariants();
  EXPECT_EQ(heap_->stats().returned, Length(3));
  heap_->ReleaseAtLeast(Length::Max());
  EXPECT_EQ(heap_->huge_stats().shared, 0u);
  EXPECT_EQ(heap_->stats().returned, kPagesPerHugePage);
}

TEST_F(HugePageHeapReleaseTest, TheRateReleasesWholeHugepagesOnly) {
  heap_->set_release_rate(10);
  EXPECT_EQ(heap_->release_rate(), 10);
  MakeFree(kHuge / 2);
  for (int i = 0; i < 10000; ++i) heap_->Delete(New(1));
  EXPECT_TRUE(heap_.system.released().empty());
  heap_->Delete(New(3 * kHuge));
  for (int i = 0; i < 10000; ++i) heap_->Delete(New(kHuge));
  EXPECT_FALSE(heap_.system.released().empty());
  for (uintptr_t n : ReleasedLengths()) EXPECT_EQ(n % kHuge, 0u);
}

TEST_F(HugePageHeapReleaseTest, AggressiveDecommitReleasesAtOnce) {
  heap_->set_aggressive_decommit(true);
  EXPECT_TRUE(heap_->aggressive_decommit());
  std::vector<Span*> spans = {New(2), New(3), New(2 * kHuge + 1)};
  heap_->Truncate(spans[2], Length(kHuge));
  for (Span* span : spans) heap_->Delete(span);
  EXPECT_EQ(heap_->stats().free, Length(0));
  EXPECT_EQ(heap_->stats().returned, heap_->stats().system);
  EXPECT_EQ(ReleasedLengths(), (Lengths{kHuge + 1, 2, 3, kHuge}));
}

TEST_F(HugePageHeapReleaseTest, NoTimeNoRelease) {
  heap_->Delete(New(2 * kHuge));
  EXPECT_EQ(Pass(100 * kHalfLife), Length(0)) << "the half-life is 0";
}

TEST_F(HugePageHeapReleaseTest, UnneededHugepagesDecay) {
  heap_->set_release_half_life(kHalfLife);
  Span* span = New(64 * kHuge);
  Pass(kHalfLife);
  heap_->Delete(span);
  Pass(kHalfLife);
  const Length before = heap_->stats().free;
  Pass(kHalfLife);
  const Length after = heap_->stats().free;
  EXPECT_LE(after.pages(), before.pages() * 6 / 10);
  EXPECT_GE(after.pages(), before.pages() * 4 / 10);
  Pass(30 * kHalfLife);
  EXPECT_EQ(heap_->stats().free, Length(0)) << "an idle heap keeps nothing";
  for (uintptr_t n : ReleasedLengths()) EXPECT_EQ(n % kHuge, 0u);
}

TEST_F(HugePageHeapReleaseTest, MostBoundsACall) {
  heap_->set_release_half_life(kHalfLife);
  Span* span = New(64 * kHuge);
  heap_->ReleaseUnused(1, Length::Max());
  heap_->Delete(span);
  heap_->ReleaseUnused(1 + kHalfLife, Length(2 * kHuge));
  EXPECT_EQ(heap_->ReleaseUnused(1 + 10 * kHalfLife, Length(3 * kHuge)), Length(3 * kHuge));
  EXPECT_EQ(heap_->ReleaseUnused(1 + 20 * kHalfLife, Length(kHuge / 2)), Length(0))
      << "no part of a hugepage that nobody uses";
}

TEST_F(HugePageHeapReleaseTest, HugepagesAreBrokenOnlyWhenDemandWasLowForLong) {
  heap_->set_release_half_life(kHalfLife);
  std::vector<Span*> spans;
  for (int i = 0; i < 8; ++i) {
    spans.push_back(New(kHuge / 2));
    New(kHuge / 2);
  }
  Pass(kHalfLife);
  for (Span* span : spans) heap_->Delete(span);
  EXPECT_EQ(Pass((DemandWindow::kEpochs - 1) * kHalfLife), Length(0));
  EXPECT_GT(Pass(4 * kHalfLife), Length(0));
}

}  // namespace
}  // namespace tcmalloc::testing
