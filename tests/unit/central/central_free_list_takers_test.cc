// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Two threads that take objects in turn.

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "central/central_free_list.h"
#include "fakes/turns.h"
#include "test_central.h"

namespace tcmalloc::testing {
namespace {

using Objects = std::vector<void*>;

class CentralFreeListTakersTest : public ::testing::Test {
 protected:
  // Lets both threads take as many objects, some times.
  void Take(int rounds, uint32_t wanted) {
    TakeTurns(rounds, [&](int thread) {
      const Objects objects = central_.Fetch(wanted);
      EXPECT_FALSE(objects.empty());
      Note(thread, objects);
    });
  }
  void Note(int thread, const Objects& objects) {
    taken_[thread].insert(taken_[thread].end(), objects.begin(), objects.end());
    for (const void* object : objects) spans_[thread].insert(central_.SpanOf(object));
  }

  size_t SharedSpans() const {
    size_t shared = 0;
    for (const Span* span : spans_[0]) shared += spans_[1].count(span);
    return shared;
  }

  static constexpr uint32_t kSize = 64;
  // Of a page of the system, which is what a fetch of fresh objects ends with.
  static constexpr uint32_t kMany = 4096 / kSize;
  static constexpr uint32_t kFew = 3;

  TestCentral central_{SizeClassFor(kSize)};
  Objects taken_[2];
  std::set<const Span*> spans_[2];
};

TEST_F(CentralFreeListTakersTest, FreshObjectsComeFromDifferentSpans) {
  Take(20, kMany);
  EXPECT_EQ(SharedSpans(), 0u);
  central_->CheckInvariants();
}

TEST_F(CentralFreeListTakersTest, FewObjectsComeFromOneSpan) {
  Take(2, kFew);
  EXPECT_EQ(central_.space.spans.spans_in_use(), 1u);
}

TEST(CentralFreeListTakersOfFewSpansTest, LargerObjectsComeFromOneSpan) {
  TestCentral central(SizeClassFor(512));
  TakeTurns(1, [&](int) { EXPECT_FALSE(central.Fetch(4).empty()); });
  EXPECT_EQ(central.space.spans.spans_in_use(), 1u);
}

TEST(CentralFreeListTakersOfFewSpansTest, LargerObjectsOfManySpansComeFromDifferentOnes) {
  TestCentral central(SizeClassFor(512));
  const std::vector<void*> all = central.FetchAll(size_t{32} * central.info().objects);
  std::vector<void*> freed;
  for (size_t i = 0; i < all.size(); i += 2) freed.push_back(all[i]);
  central.Insert(freed);
  const Span* spans[2];
  TakeTurns(1, [&](int thread) { spans[thread] = central.SpanOf(central.Fetch(2).front()); });
  EXPECT_NE(spans[0], spans[1]);
}

TEST_F(CentralFreeListTakersTest, FreedObjectsComeFromDifferentSpans) {
  // Every second object of many spans.
  const uint32_t per_span = central_.info().objects;
  const Objects all = central_.FetchAll(size_t{40} * per_span);
  Objects freed;
  for (size_t i = 0; i < all.size(); i += 2) freed.push_back(all[i]);
  central_.Insert(freed);
  Take(20, per_span / 4);
  EXPECT_EQ(SharedSpans(), 0u);
  central_->CheckInvariants();
}

TEST_F(CentralFreeListTakersTest, AThreadTakesWhatAnotherOneLeftLongAgo) {
  TakeTurns(1, [&](int thread) {
    Note(thread, central_.Fetch(kMany / 2));
    for (uint32_t i = 0; thread == 1 && i < 2 * Takers::kIdleTakes; ++i) {
      Note(thread, central_.Fetch(kMany / 2));
    }
  });
  EXPECT_EQ(SharedSpans(), 1u);
}

TEST_F(CentralFreeListTakersTest, ASpanThatComesBackIsNotHeld) {
  int asked = 0;
  central_.space.spans.fail = [&] {
    ++asked;
    return false;
  };
  TakeTurns(1, [&](int) { central_.Insert(central_.Fetch(kMany / 2)); });
  EXPECT_EQ(central_.space.spans.fresh_spans(), 1u);
  EXPECT_EQ(asked, 2);
}

TEST_F(CentralFreeListTakersTest, WithoutMemoryTheySpareNothing) {
  TakeTurns(1, [&](int thread) {
    Note(thread, central_.Fetch(kMany));
    central_.space.spans.fail = [] { return true; };
  });
  EXPECT_FALSE(taken_[1].empty());
  EXPECT_EQ(SharedSpans(), 1u);
}

}  // namespace
}  // namespace tcmalloc::testing
