// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/near_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace tcmalloc::testing {
namespace {

using Added = NearOrder::Added;
using Objects = std::vector<void*>;

constexpr uintptr_t kStart = uintptr_t{1} << 36;

void* At(uintptr_t address) { return reinterpret_cast<void*>(address); }

Objects Taken(NearOrder* order) {
  Objects objects;
  order->TakeDownwards([&objects](void* object) { objects.push_back(object); });
  return objects;
}

TEST(NearOrderTest, ObjectsComeBackInOrder) {
  for (uint32_t size : {8U, 48U, 64U, 112U, 2048U}) {
    Objects objects;
    for (uintptr_t i = 0; i < 200; ++i) objects.push_back(At(kStart + i * size));
    Objects freed = objects;
    std::shuffle(freed.begin(), freed.end(), std::mt19937_64(size));
    NearOrder order(size);
    order.MoveTo(freed[0]);
    for (void* object : freed) EXPECT_EQ(order.Add(object), Added::kYes);
    std::reverse(objects.begin(), objects.end());
    EXPECT_EQ(Taken(&order), objects);
    EXPECT_TRUE(Taken(&order).empty());
  }
}

TEST(NearOrderTest, NothingStaysInTheWindow) {
  NearOrder order(64);
  order.MoveTo(At(kStart));
  EXPECT_EQ(order.Add(At(kStart)), Added::kYes);
  EXPECT_EQ(order.Add(At(kStart + 64)), Added::kYes);
  EXPECT_EQ(Taken(&order), Objects({At(kStart + 64), At(kStart)}));
  EXPECT_EQ(order.Add(At(kStart)), Added::kYes);
  EXPECT_EQ(Taken(&order), Objects({At(kStart)}));
}

TEST(NearOrderTest, TheWindowEnds) {
  constexpr uintptr_t kHalf = NearOrder::kPlaces / 2 * 64;
  NearOrder order(64);
  order.MoveTo(At(kStart));
  EXPECT_EQ(order.Add(At(kStart - kHalf - 64)), Added::kOutside);
  EXPECT_EQ(order.Add(At(kStart + kHalf)), Added::kOutside);
  EXPECT_EQ(order.Add(At(kStart - kHalf)), Added::kYes);
  EXPECT_EQ(order.Add(At(kStart + kHalf - 64)), Added::kYes);
  EXPECT_EQ(Taken(&order), Objects({At(kStart + kHalf - 64), At(kStart - kHalf)}));
  order.MoveTo(At(kStart + kHalf));
  EXPECT_EQ(order.Add(At(kStart + kHalf)), Added::kYes);
}

TEST(NearOrderTest, TheLowestAddressesHaveAWindow) {
  NearOrder order(8);
  order.MoveTo(At(8));
  EXPECT_EQ(order.Add(At(16)), Added::kYes);
  EXPECT_EQ(order.Add(At(8)), Added::kYes);
  EXPECT_EQ(Taken(&order), Objects({At(16), At(8)}));
}

TEST(NearOrderTest, ADoubleFreeIsTold) {
  NearOrder order(128);
  order.MoveTo(At(kStart));
  EXPECT_EQ(order.Add(At(kStart)), Added::kYes);
  EXPECT_EQ(order.Add(At(kStart + 128)), Added::kYes);
  EXPECT_EQ(order.Add(At(kStart)), Added::kTwice);
}

// An address inside an object must not become that of the object.
TEST(NearOrderTest, WhatIsNoPlaceLiesOutside) {
  NearOrder order(64);
  order.MoveTo(At(kStart));
  for (uintptr_t inside : {1U, 8U, 16U, 32U, 63U}) {
    EXPECT_EQ(order.Add(At(kStart + inside)), Added::kOutside) << inside;
  }
  order.MoveTo(At(kStart + 8));
  EXPECT_EQ(order.Add(At(kStart)), Added::kOutside);
}

}  // namespace
}  // namespace tcmalloc::testing
