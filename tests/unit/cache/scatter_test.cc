// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/scatter.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace tcmalloc::testing {
namespace {

constexpr uintptr_t kBase = uintptr_t{1} << 36;

// `count` objects, each `step` bytes after the one before.
std::vector<void*> Steps(intptr_t step, uint32_t count = kScatterProbes) {
  std::vector<void*> objects;
  for (uint32_t i = 0; i < count; ++i) {
    objects.push_back(reinterpret_cast<void*>(kBase + static_cast<uintptr_t>(step * i)));
  }
  return objects;
}

Scatter Judge(uint32_t size, const std::vector<void*>& objects) {
  size_t i = 0;
  const auto next = [&](const void*) { return objects[++i]; };
  return JudgeScatter(size, objects.empty() ? nullptr : objects[0],
                      static_cast<uint32_t>(objects.size()), next);
}

bool AreScattered(uint32_t size, const std::vector<void*>& objects) {
  return Judge(size, objects) == Scatter::kFarApart;
}

TEST(ScatterTest, NeighboursInEitherDirectionAreNot) {
  for (uint32_t size : {8U, 64U, 1024U, kScatterMostSize}) {
    EXPECT_FALSE(AreScattered(size, Steps(size))) << size;
    EXPECT_FALSE(AreScattered(size, Steps(-intptr_t{size}))) << size;
  }
}

TEST(ScatterTest, ObjectsOfDifferentPagesAre) {
  for (uint32_t size : {8U, 64U, 1024U}) {
    EXPECT_TRUE(AreScattered(size, Steps(1 << 16))) << size;
    EXPECT_TRUE(AreScattered(size, Steps(-(1 << 16)))) << size;
  }
}

TEST(ScatterTest, OneStepInEightDecides) {
  for (uint32_t jumps = 0; jumps < kScatterProbes; ++jumps) {
    std::vector<void*> objects;
    uintptr_t address = kBase;
    for (uint32_t i = 0; i < kScatterProbes; ++i) {
      address += i < jumps ? 1 << 20 : 64;
      objects.push_back(reinterpret_cast<void*>(address));
    }
    const uint32_t far = jumps > 0 ? jumps - 1 : 0;  // the first object has none before it
    EXPECT_EQ(AreScattered(64, objects), far > kScatterProbes / kScatterStepsForOneFar) << jumps;
  }
}

// As where a tree is freed: the last steps lead far up, those before them do not.
TEST(ScatterTest, AFewJumpsAtTheEndDoNotDecide) {
  std::vector<void*> objects = Steps(1 << 16);
  const auto last = reinterpret_cast<uintptr_t>(objects.back());
  for (uintptr_t i = 1; i <= kScatterStepsForOneFar * kScatterProbes; ++i) {
    objects.push_back(reinterpret_cast<void*>(last + 64 * i));
  }
  EXPECT_FALSE(AreScattered(64, objects));
}

// As where a program frees objects of two parts, which were allocated together, in random order.
TEST(ScatterTest, PairsOfNeighboursAre) {
  std::vector<void*> objects;
  for (uintptr_t i = 0; i < 64; ++i) {
    const uintptr_t pair = kBase + (i * 37 % 64 << 16);
    objects.push_back(reinterpret_cast<void*>(pair));
    objects.push_back(reinterpret_cast<void*>(pair + 64));
  }
  EXPECT_TRUE(AreScattered(64, objects));
}

TEST(ScatterTest, FewObjectsAndLargeOnesNeverAre) {
  EXPECT_FALSE(AreScattered(64, Steps(1 << 20, kScatterFewest - 1)));
  EXPECT_FALSE(AreScattered(64, {}));
  EXPECT_FALSE(AreScattered(kScatterMostSize + 1, Steps(1 << 20)));
}

// Neighbours, in the order of a walk that passes over some and comes back for them.
std::vector<void*> InAnyOrder(uint32_t size) {
  std::vector<void*> objects;
  const uintptr_t stride = size <= 128 ? 12 : 3;
  for (uintptr_t i = 0; i < 31; ++i) {
    objects.push_back(reinterpret_cast<void*>(kBase + i * stride % 31 * size));
  }
  return objects;
}

TEST(ScatterTest, NeighboursInAnyOrderAreNear) {
  for (uint32_t size : {kScatterLeastNear, 128U, 1024U, kScatterMostSize}) {
    EXPECT_EQ(Judge(size, InAnyOrder(size)), Scatter::kNear) << size;
    EXPECT_EQ(Judge(size, Steps(size)), Scatter::kInRows) << size;
    EXPECT_EQ(Judge(size, Steps(-intptr_t{size})), Scatter::kInRows) << size;
  }
}

TEST(ScatterTest, SmallNeighboursInAnyOrderAreInPieces) {
  EXPECT_EQ(Judge(32, InAnyOrder(32)), Scatter::kInPieces);
  EXPECT_EQ(Judge(48, InAnyOrder(48)), Scatter::kInPieces);
}

// Rows with gaps between them.
std::vector<void*> Rows(uint32_t size, uint32_t length) {
  std::vector<void*> objects;
  for (uint32_t i = 0; i < kScatterProbes; ++i) {
    objects.push_back(reinterpret_cast<void*>(kBase + i * size + i / length * 1024));
  }
  return objects;
}

TEST(ScatterTest, OneGapInARowIsNone) {
  for (uint32_t size : {16U, 48U, 128U}) {
    EXPECT_EQ(Judge(size, Rows(size, 20)), Scatter::kInRows) << size;
    EXPECT_EQ(Judge(size, Rows(size, 12)), Scatter::kInPieces) << size;
    EXPECT_EQ(Judge(size, Rows(size, 5)), Scatter::kInPieces) << size;
  }
  EXPECT_EQ(Judge(48, Rows(48, 2)), Scatter::kInPieces);
  EXPECT_EQ(Judge(128, Rows(128, 2)), Scatter::kNear);
}

}  // namespace
}  // namespace tcmalloc::testing
