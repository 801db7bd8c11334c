// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "central/sampled_objects.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "central/sampled_page.h"
#include "fakes/object_space.h"

namespace tcmalloc::testing {
namespace {

class SampledObjectsTest : public ::testing::Test {
 protected:
  Span* SpanOf(const void* object) { return space_.map->FindInUse(object); }
  SampleId Delete(void* object) { return objects_.Delete(SpanOf(object), object); }

  ObjectSpace space_;
  SampledObjects<FakeSpanSource> objects_{space_.spans, *space_.map, space_.arena};
};

TEST_F(SampledObjectsTest, ObjectsOfAllClassesShareAPageWithoutAClassInTheWindow) {
  std::vector<void*> objects;
  for (const size_t size : {8, 48, 100, 640, 1024}) {
    const uint8_t c = SizeClassFor(size);
    objects.push_back(objects_.New(c));
    ASSERT_NE(objects.back(), nullptr);
    EXPECT_EQ(ClassOfObject(SpanOf(objects.back()), objects.back()), c);
  }
  Span* span = SpanOf(objects.front());
  EXPECT_EQ(span->state, Span::State::kSampled);
  EXPECT_EQ(space_.map->window()[span->first.index()], 0);
  for (const void* object : objects) EXPECT_EQ(SpanOf(object), span);
}

TEST_F(SampledObjectsTest, ObjectsAreAlignedAsTheirClassAndApart) {
  for (int round = 0; round < 2; ++round) {
    std::map<uintptr_t, size_t> ends;
    for (uint8_t c = 1; c < kSizeClassCount && kSizeClasses[c].size < kPageSize; ++c) {
      const auto object = reinterpret_cast<uintptr_t>(objects_.New(c));
      EXPECT_EQ(object & MisplacedBits(c), 0u) << kSizeClasses[c].size;
      const auto next = ends.upper_bound(object);
      EXPECT_TRUE(next == ends.end() || next->second >= object + kSizeClasses[c].size);
      ends[object + kSizeClasses[c].size] = object;
    }
    // Every other one goes, and the next round finds room among the rest.
    bool goes = false;
    for (const auto& [end, object] : ends) {
      if ((goes = !goes)) Delete(reinterpret_cast<void*>(object));
    }
  }
}

TEST_F(SampledObjectsTest, AnObjectThatDoesNotFitGoesToAnotherPage) {
  const uint8_t c = SizeClassFor(kPageSize / 2 + 1);
  void* first = objects_.New(c);
  void* second = objects_.New(c);
  EXPECT_NE(SpanOf(second), SpanOf(first));
  EXPECT_EQ(SpanOf(objects_.New(SizeClassFor(8))), SpanOf(second));
  Delete(first);
  EXPECT_EQ(objects_.stats().span_bytes, kPageSize);
}

TEST_F(SampledObjectsTest, NoObjectBeginsInsideOfAnother) {
  // Of earlier objects nothing is left there.
  void* earlier[1024 / SampledPage::kUnitBytes + 1];
  for (void*& small : earlier) small = objects_.New(SizeClassFor(8));
  for (size_t i = 0; i + 1 < std::size(earlier); ++i) Delete(earlier[i]);
  char* object = static_cast<char*>(objects_.New(SmallestSizeClassFor(1024)));
  EXPECT_EQ(object, earlier[0]);
  const Span* span = SpanOf(object);
  for (size_t i = 8; i < 1024; i += 8) EXPECT_EQ(ClassOfSampled(span, object + i), 0);
  const auto at = static_cast<size_t>(object - span->start());
  EXPECT_EQ(SampledPage::Of(span).FindAround(at + 1023), at / SampledPage::kUnitBytes);
  EXPECT_EQ(SampledPage::Of(span).FindAround(at + 1024 + SampledPage::kUnitBytes),
            SampledPage::kNoPlace);
}

TEST_F(SampledObjectsTest, ASampleIsNamedByItsObject) {
  const uint8_t c = SizeClassFor(64);
  void* named = objects_.New(c);
  void* other = objects_.New(c);
  objects_.SetSample(named, 7);
  EXPECT_EQ(Delete(named), 7u);
  EXPECT_EQ(Delete(other), 0u);
}

TEST_F(SampledObjectsTest, EverySpanGoesBackWithItsLastObject) {
  for (const size_t size :
       {size_t{8}, size_t{100}, size_t{1024}, kPageSize * 5 / 8, kPageSize * 7 / 8}) {
    const uint8_t c = SizeClassFor(size);
    std::set<void*> objects;
    for (int i = 0; i < 2000; ++i) objects.insert(objects_.New(c));
    ASSERT_EQ(objects.size(), 2000u);
    EXPECT_EQ(objects_.stats().in_use_bytes, 2000 * size_t{kSizeClasses[c].size});
    EXPECT_GE(objects_.stats().span_bytes, objects_.stats().in_use_bytes);
    for (void* object : objects) Delete(object);
    EXPECT_EQ(objects_.stats().in_use_bytes, 0u);
    EXPECT_EQ(objects_.stats().span_bytes, 0u);
    EXPECT_EQ(space_.spans.spans_in_use(), 0u);
  }
}

TEST_F(SampledObjectsTest, ObjectsComeAndGoInAnyOrder) {
  std::mt19937 random(1);
  std::map<void*, SampleId> live;
  SampleId next = 1;
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 2 == 0 || live.empty()) {
      void* object = objects_.New(SizeClassFor(1 + random() % 3000));
      ASSERT_TRUE(live.emplace(object, next).second);
      objects_.SetSample(object, next++);
    } else {
      auto it = live.lower_bound(reinterpret_cast<void*>(uintptr_t{random()} << 16));
      if (it == live.end()) it = live.begin();
      ASSERT_EQ(Delete(it->first), it->second);
      live.erase(it);
    }
  }
  for (const auto& [object, sample] : live) EXPECT_EQ(Delete(object), sample);
  EXPECT_EQ(space_.spans.spans_in_use(), 0u);
}

using SampledObjectsDeathTest = SampledObjectsTest;

TEST_F(SampledObjectsDeathTest, ADoubleFreeEndsTheProcess) {
  const uint8_t c = SizeClassFor(48);
  void* object = objects_.New(c);
  objects_.New(c);
  Delete(object);
  EXPECT_DEATH(Delete(object), "double free of .* \\(48 bytes\\)");
}

// Of two threads that free the last object of a page, the second one may wait for the lock until
// the record is free.
TEST_F(SampledObjectsDeathTest, ADoubleFreeOfTheLastObjectOfAPageEndsTheProcess) {
  const uint8_t c = SizeClassFor(48);
  void* objects[SampledPage::kUnits];
  for (void*& object : objects) object = objects_.New(c);
  void* other_page = objects_.New(c);
  Span* span = SpanOf(objects[0]);
  Delete(other_page);
  for (void* object : objects) Delete(object);
  for (void* object : objects) EXPECT_DEATH(objects_.Delete(span, object), "double free");
}

TEST_F(SampledObjectsDeathTest, AnAddressInsideOfAnObjectEndsTheProcess) {
  char* object = static_cast<char*>(objects_.New(SizeClassFor(640)));
  EXPECT_DEATH(Delete(object + 512), "points into the block at .* \\(640 bytes\\)");
  EXPECT_DEATH(Delete(object + 1024), "not allocated by this allocator");
}

}  // namespace
}  // namespace tcmalloc::testing
