// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "central/central_free_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "test_central.h"

namespace tcmalloc::testing {
namespace {

using Objects = std::vector<void*>;

Objects Part(const Objects& objects, size_t from, size_t to) {
  return {objects.begin() + static_cast<long>(from), objects.begin() + static_cast<long>(to)};
}

// One class of each kind: smallest, small, crossing pages, few in a span, largest.
class CentralFreeListTest : public ::testing::TestWithParam<uint32_t> {
 protected:
  uintptr_t LastLine(const Objects& objects) const {
    return (reinterpret_cast<uintptr_t>(objects.back()) + central_.info().size - 1) / 64;
  }

  TestCentral central_{SizeClassFor(GetParam())};
};

TEST_P(CentralFreeListTest, NothingIsTakenBeforeItIsNeeded) {
  EXPECT_EQ(central_.space.spans.spans_in_use(), 0u);
  central_->CheckInvariants();
}

TEST_P(CentralFreeListTest, ObjectsAreDistinctAndOfTheirClass) {
  std::set<void*> seen;
  while (seen.size() < 3 * size_t{central_.info().objects}) {
    const Objects objects = central_.Fetch(central_.info().batch);
    ASSERT_FALSE(objects.empty());
    ASSERT_LE(objects.size(), central_.info().batch);
    for (void* object : objects) {
      ASSERT_TRUE(seen.insert(object).second);
      const Span* span = central_.SpanOf(object);
      ASSERT_NE(span, nullptr);
      ASSERT_EQ(span->state, Span::State::kSmall);
      ASSERT_EQ(span->size_class, central_.size_class);
      ASSERT_TRUE(IsObjectStart(static_cast<size_t>(static_cast<char*>(object) - span->start()),
                                central_.size_class));
      ASSERT_EQ(central_.space.map->window()[PageId::Containing(object).index()],
                central_.size_class);
    }
    central_->CheckInvariants();
  }
  EXPECT_EQ(central_->stats().allocated_objects, seen.size());
}

TEST_P(CentralFreeListTest, NewMemoryComesInAddressOrder) {
  Objects objects;
  while (objects.size() < central_.info().objects) {
    const Objects some = central_.Fetch(1);
    ASSERT_FALSE(some.empty());
    objects.insert(objects.end(), some.begin(), some.end());
  }
  EXPECT_TRUE(std::is_sorted(objects.begin(), objects.end()));
  EXPECT_EQ(objects.front(), central_.space.spans.begin());
  EXPECT_EQ(central_.space.spans.fresh_spans(), 1u);
}

TEST_P(CentralFreeListTest, SpansSideBySideAreTakenInAddressOrder) {
  constexpr size_t kSpans = 60;
  const uint32_t per_span = central_.info().objects;
  if (per_span < 8) GTEST_SKIP() << "one object more or less is another rank";
  // One object of each span stays, so that none goes back to the page heap.
  Objects kept;
  std::vector<Objects> spans(kSpans);
  for (Objects& span : spans) {
    while (span.size() < per_span) {
      const Objects some = central_.Fetch(per_span - static_cast<uint32_t>(span.size()));
      ASSERT_FALSE(some.empty());
      span.insert(span.end(), some.begin(), some.end());
    }
    kept.push_back(span.back());
    span.pop_back();
  }
  std::shuffle(spans.begin(), spans.end(), std::mt19937(1));
  for (const Objects& span : spans) central_.Insert(span);
  central_->CheckInvariants();
  size_t steps_back = 0;
  const void* before = nullptr;
  for (size_t i = 0; i < kSpans; ++i) {
    const Objects objects = central_.FetchAll(per_span - 1);
    ASSERT_EQ(objects.size(), per_span - 1);
    EXPECT_EQ(central_.SpanOf(objects.front()), central_.SpanOf(objects.back()));
    if (objects.front() < before) ++steps_back;
    before = objects.front();
  }
  // A row begins at most 32 spans before the one that comes first in the list.
  EXPECT_LE(steps_back, 2u);
  central_->CheckInvariants();
}

TEST_P(CentralFreeListTest, NewChainsShareNoCacheLine) {
  uintptr_t line_before = 0;
  for (uint32_t wanted : {1u, 1u, 2u, 3u, 5u, 1u, 9u, 100u, 1u, 200u, 1u, 200u, 1u}) {
    const Objects objects = central_.Fetch(wanted);
    ASSERT_LE(objects.size(), std::max(wanted, TestCentral::List::kLineObjects));
    ASSERT_NE(reinterpret_cast<uintptr_t>(objects.front()) / 64, line_before);
    line_before = LastLine(objects);
  }
}

TEST_P(CentralFreeListTest, ALineIsNobodyElses) {
  EXPECT_TRUE(central_.FetchLine().empty()) << "there is no span yet";
  const Objects before = central_.Fetch(1);
  if (central_.info().objects == before.size()) GTEST_SKIP() << "the span holds no more";
  const Objects line = central_.FetchLine();
  ASSERT_FALSE(line.empty());
  ASSERT_LE(line.size(), TestCentral::List::kLineObjects);
  const Objects after = central_.Fetch(1);
  central_->CheckInvariants();
  EXPECT_EQ(central_->stats().allocated_objects, before.size() + line.size() + after.size());
  EXPECT_LT(LastLine(before), reinterpret_cast<uintptr_t>(line.front()) / 64);
  EXPECT_LT(LastLine(line), reinterpret_cast<uintptr_t>(after.front()) / 64);
}

TEST_P(CentralFreeListTest, ALineIsNoReasonForAnotherSpan) {
  const Objects objects = central_.FetchAll(central_.info().objects);
  EXPECT_TRUE(central_.FetchLine().empty()) << "all of the span is in use";
  if (objects.size() == 1) return;
  central_.Insert(Part(objects, 1, objects.size()));
  EXPECT_TRUE(central_.FetchLine().empty()) << "somebody had these";
  EXPECT_EQ(central_->stats().spans, 1u);
}

TEST_P(CentralFreeListTest, UntouchedMemoryIsCarvedPageByPage) {
  constexpr uintptr_t kSmallestPage = 4096;
  for (size_t taken = 0; taken < central_.info().objects;) {
    const Objects objects = central_.Fetch(UINT16_MAX);
    taken += objects.size();
    ASSERT_FALSE(objects.empty());
    // But for those that share cache lines across the boundary.
    const bool fill_lines = central_.info().size % 64 == 0;
    if (!fill_lines && objects.size() <= TestCentral::List::kLineObjects) continue;
    ASSERT_EQ(reinterpret_cast<uintptr_t>(objects.front()) / kSmallestPage,
              reinterpret_cast<uintptr_t>(objects.back()) / kSmallestPage);
  }
}

TEST_P(CentralFreeListTest, TouchedMemoryIsCarvedAtOnce) {
  central_.space.spans.fresh_is_zeroed = false;
  const uint32_t wanted = std::min<uint32_t>(central_.info().batch, central_.info().objects);
  EXPECT_EQ(central_.Fetch(wanted).size(), wanted);
}

TEST_P(CentralFreeListTest, SparseMeansAThirdFree) {
  EXPECT_FALSE(central_->IsSparse());
  const size_t per_span = central_.info().objects;
  if (per_span < 4) GTEST_SKIP() << "too few to leave some in each span";
  // A multiple of three, so that a third is a number of objects.
  const size_t spans = (size_t{3} << 20) / central_.info().span_bytes() / 3 * 3;
  const Objects objects = central_.FetchAll(spans * per_span);
  EXPECT_FALSE(central_->IsSparse());
  Objects kept;
  Objects freed;
  for (size_t i = 0; i < objects.size(); ++i) (i % 3 != 0 ? kept : freed).push_back(objects[i]);
  ASSERT_EQ(freed.size() * 3, objects.size());
  central_.Insert(Part(freed, 0, freed.size() - 1));
  EXPECT_FALSE(central_->IsSparse());
  central_.Insert({freed.back()});
  EXPECT_TRUE(central_->IsSparse());
  EXPECT_EQ(central_->stats().spans, spans) << "none could drain";
  central_.Insert(Part(kept, 0, kept.size() - 1));
  EXPECT_FALSE(central_->IsSparse()) << "what is left is not worth the trouble";
}

TEST_P(CentralFreeListTest, StatisticsAddUp) {
  const size_t per_span = central_.info().objects;
  const Objects objects = central_.FetchAll(2 * per_span + 1);
  CentralStats stats = central_->stats();
  EXPECT_EQ(stats.spans, 3u);
  EXPECT_EQ(stats.span_bytes, 3 * central_.info().span_bytes());
  EXPECT_EQ(stats.allocated_objects, objects.size());
  EXPECT_EQ(stats.free_objects, 0u);
  EXPECT_EQ(stats.uncarved_objects, 3 * per_span - objects.size());
  central_.Insert({objects.front()});
  stats = central_->stats();
  // A span that has only one object goes back at once.
  EXPECT_EQ(stats.free_objects, per_span == 1 ? 0u : 1u);
  EXPECT_EQ(stats.allocated_objects, objects.size() - 1);
}

TEST_P(CentralFreeListTest, DrainedSpansGoBack) {
  const size_t per_span = central_.info().objects;
  const Objects objects = central_.FetchAll(5 * per_span);
  ASSERT_EQ(central_.space.spans.spans_in_use(), 5u);
  for (size_t i = 0; i < objects.size(); ++i) {
    central_.Insert({objects[i]});
    central_->CheckInvariants();
    ASSERT_EQ(central_.space.spans.spans_in_use(), 5 - (i + 1) / per_span);
  }
  const CentralStats stats = central_->stats();
  EXPECT_EQ(stats.spans, 0u);
  EXPECT_EQ(stats.span_bytes, 0u);
  EXPECT_EQ(stats.allocated_objects, 0u);
  EXPECT_EQ(stats.free_objects, 0u);
  EXPECT_EQ(stats.uncarved_objects, 0u);
}

TEST_P(CentralFreeListTest, OneChainMayDrainSeveralSpans) {
  central_.Insert(central_.FetchAll(5 * size_t{central_.info().objects}));
  EXPECT_EQ(central_.space.spans.spans_in_use(), 0u);
}

TEST_P(CentralFreeListTest, AChainMayEndBeforeItsCountSays) {
  const Objects objects = central_.FetchAll(central_.info().objects);
  Chain chain = central_.space.MakeChain(objects);
  chain.count += 100;
  central_->Insert(chain);
  EXPECT_EQ(central_.space.spans.spans_in_use(), 0u);
  EXPECT_EQ(central_->stats().allocated_objects, 0u);
}

TEST_P(CentralFreeListTest, PartlyCarvedSpanGoesBackToo) {
  central_.Insert(central_.Fetch(1));
  EXPECT_EQ(central_.space.spans.spans_in_use(), 0u);
  EXPECT_EQ(central_->stats().uncarved_objects, 0u);
}

TEST_P(CentralFreeListTest, ReturnedObjectsAreReused) {
  const size_t per_span = central_.info().objects;
  if (per_span < 4) GTEST_SKIP() << "a span of so few objects is never partly free for long";
  const Objects objects = central_.FetchAll(per_span);
  const Objects returned = Part(objects, 1, per_span - 1);
  central_.Insert(returned);
  Objects again = central_.FetchAll(returned.size());
  EXPECT_EQ(std::set<void*>(again.begin(), again.end()),
            std::set<void*>(returned.begin(), returned.end()));
  EXPECT_EQ(central_.space.spans.fresh_spans(), 1u);
}

TEST_P(CentralFreeListTest, FreedObjectsComeInAddressOrder) {
  const size_t per_span = central_.info().objects;
  Objects objects;
  while (objects.size() < 2 * per_span) {
    const Objects some = central_.Fetch(1);
    objects.insert(objects.end(), some.begin(), some.end());
  }
  std::shuffle(objects.begin() + 1, objects.end() - 1, std::mt19937(1));
  central_.Insert(Part(objects, 1, objects.size() - 1));
  while (central_->stats().free_objects > 0) {
    const Objects some = central_.Fetch(central_.info().batch);
    for (size_t i = 1; i < some.size(); ++i) {
      if (central_.SpanOf(some[i]) != central_.SpanOf(some[i - 1])) continue;
      ASSERT_LT(some[i - 1], some[i]);
    }
  }
}

TEST_P(CentralFreeListTest, ArraysHoldWhatChainsWould) {
  const size_t per_span = central_.info().objects;
  const uint32_t wanted = central_.info().batch;
  std::vector<void*> array(std::max(wanted, TestCentral::List::kLineObjects));
  Objects objects;
  while (objects.size() < 3 * per_span) {
    const uint32_t count = central_->FetchArray(array.data(), wanted);
    ASSERT_GT(count, 0u);
    objects.insert(objects.end(), array.begin(), array.begin() + count);
  }
  EXPECT_EQ(std::set<void*>(objects.begin(), objects.end()).size(), objects.size());
  std::shuffle(objects.begin(), objects.end(), std::mt19937(1));
  const size_t half = objects.size() / 2;
  central_.Insert(Part(objects, 0, half));
  const uint32_t count = central_->FetchArray(array.data(), wanted);
  for (uint32_t i = 0; i < count; ++i) {
    EXPECT_EQ(std::count(objects.begin() + static_cast<long>(half), objects.end(), array[i]), 0);
    if (i == 0 || central_.SpanOf(array[i]) != central_.SpanOf(array[i - 1])) continue;
    EXPECT_GT(array[i - 1], array[i]);
  }
  central_->CheckInvariants();
}

TEST_P(CentralFreeListTest, ARefusalIsAnEmptyChain) {
  const size_t per_span = central_.info().objects;
  bool refuse = true;
  central_.space.spans.fail = [&] { return refuse; };
  EXPECT_TRUE(central_->Fetch(1).empty());
  refuse = false;
  const Objects objects = central_.FetchAll(per_span);
  ASSERT_EQ(objects.size(), per_span);
  refuse = true;
  EXPECT_TRUE(central_->Fetch(1).empty());
  central_->CheckInvariants();
  EXPECT_EQ(central_->stats().allocated_objects, per_span);
  central_.Insert(objects);
  EXPECT_EQ(central_->stats().spans, 0u);
}

TEST_P(CentralFreeListTest, WithoutMemoryForBitsTheSpanHasThem) {
  // The first span brings the entries of the page map.
  const size_t per_span = central_.info().objects;
  central_.FetchAll(per_span);
  central_.space.ExhaustMetadata();
  const size_t words = FreeBits::WordsFor(per_span);
  const size_t size = central_.info().size;
  const size_t lost = words == 1 ? 0 : (words * sizeof(uint64_t) + size - 1) / size;
  Objects objects = central_.FetchAll(per_span - lost);
  EXPECT_EQ(central_.space.spans.spans_in_use(), 2u);
  EXPECT_EQ(central_.SpanOf(objects.back())->capacity, per_span - lost);
  for (int round = 0; round < 3; ++round) {
    for (void* object : objects) std::memset(object, 0xff, size);
    const size_t count = objects.size();
    central_.Insert(objects);
    central_->CheckInvariants();
    objects = central_.FetchAll(count);
    ASSERT_EQ(objects.size(), count);
  }
}

TEST_P(CentralFreeListTest, MemoryOutsideTheWindowServesAsWell) {
  TestCentral outside(central_.size_class, Window::kNone);
  const Objects objects = outside.FetchAll(3 * size_t{outside.info().objects});
  outside->CheckInvariants();
  outside.Insert(objects);
  EXPECT_EQ(outside.space.spans.spans_in_use(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Sizes, CentralFreeListTest,
                         ::testing::Values(8, 24, 48, 64, 112, 240, 1152, 16384, kMaxSmallSize));

class CentralFreeListRankTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kSize = 512;

  TestCentral central_{SizeClassFor(kSize)};
};

TEST_F(CentralFreeListRankTest, TakesFromTheFullestSpan) {
  const size_t per_span = central_.info().objects;
  const Objects objects = central_.FetchAll(3 * per_span);
  // Of three full spans one keeps a quarter of its objects, one three quarters, one half.
  central_.Insert(Part(objects, 0, per_span * 3 / 4));
  central_.Insert(Part(objects, per_span, per_span + per_span / 4));
  central_.Insert(Part(objects, 2 * per_span, 2 * per_span + per_span / 2));
  for (size_t span : {1, 2, 0}) {
    const Span* expected = central_.SpanOf(objects[(span + 1) * per_span - 1]);
    while (expected->allocated < expected->capacity) {
      const Objects one = central_.Fetch(1);
      ASSERT_EQ(one.size(), 1u);
      ASSERT_EQ(central_.SpanOf(one.front()), expected) << "span " << span;
    }
  }
  EXPECT_EQ(central_.space.spans.fresh_spans(), 3u);
}

TEST_F(CentralFreeListRankTest, FreedObjectsComeBeforeFreshOnes) {
  central_.space.spans.fresh_is_zeroed = false;
  const Objects objects = central_.FetchAll(10);
  central_.Insert(Part(objects, 2, 6));
  const Objects again = central_.FetchAll(4);
  const Objects freed = Part(objects, 2, 6);
  EXPECT_EQ(std::set<void*>(again.begin(), again.end()),
            std::set<void*>(freed.begin(), freed.end()));
  EXPECT_GT(central_.FetchAll(1).front(), objects.back());
}

TEST_F(CentralFreeListRankTest, KnowsItsFreeObjects) {
  const Objects objects = central_.FetchAll(central_.info().objects);
  central_.Insert(Part(objects, 3, 9));
  for (size_t i = 0; i < objects.size(); ++i) {
    EXPECT_EQ(central_->IsFree(objects[i]), 3 <= i && i < 9);
  }
  EXPECT_FALSE(central_->IsFree(static_cast<char*>(objects[3]) + 8));
  EXPECT_FALSE(central_->IsFree(&objects));
}

TEST_F(CentralFreeListRankTest, ACheckEndsWithItsNumber) {
  const size_t per_span = central_.info().objects;
  const Objects objects = central_.FetchAll(2 * per_span);
  central_.Insert(Part(objects, 0, 3));
  central_.Insert(Part(objects, per_span, per_span + 3));
  // A span counts as one, and so does each of its objects.
  for (size_t limit = 0; limit <= 9; ++limit) {
    size_t most = limit;
    central_->CheckFreeObjects(false, &most);
    EXPECT_EQ(most, limit - std::min<size_t>(limit, 8)) << limit;
  }
}

}  // namespace
}  // namespace tcmalloc::testing
