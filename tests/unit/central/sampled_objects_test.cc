// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "central/sampled_objects.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <vector>

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

TEST_F(SampledObjectsTest, ObjectsOfAClassShareASpanWithoutAClassInTheWindow) {
  const uint8_t c = SizeClassFor(100);
  void* first = objects_.New(c);
  void* second = objects_.New(c);
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_NE(first, second);
  Span* span = SpanOf(first);
  EXPECT_EQ(SpanOf(second), span);
  EXPECT_EQ(span->state, Span::State::kSampled);
  EXPECT_EQ(span->size_class, c);
  EXPECT_EQ(space_.map->window()[PageId::Containing(first).index()], 0);
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
  for (const size_t size : {8, 100, 1024, 8192, 10'000, 262'144}) {
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

}  // namespace
}  // namespace tcmalloc::testing
