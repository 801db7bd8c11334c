// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "base/intrusive_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <random>
#include <vector>

namespace tcmalloc {
namespace {

struct Element : ListNode {
  explicit Element(int v) : value(v) {}
  int value;
};

std::vector<int> Values(const IntrusiveList<Element>& list) {
  std::vector<int> values;
  for (Element* e = list.front(); e != nullptr; e = list.next(e)) values.push_back(e->value);
  return values;
}

TEST(IntrusiveListTest, EmptyList) {
  IntrusiveList<Element> list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.size(), 0u);
  EXPECT_EQ(list.front(), nullptr);
  EXPECT_EQ(list.back(), nullptr);
  EXPECT_EQ(list.PopFront(), nullptr);
  Element element(1);
  list.PushBack(&element);
  EXPECT_EQ(list.PopFront(), &element);
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.back(), nullptr);
  EXPECT_FALSE(element.linked());
}

TEST(IntrusiveListTest, ConstantInitialized) {
  static constinit IntrusiveList<Element> list;
  EXPECT_TRUE(list.empty());
}

TEST(IntrusiveListTest, AgreesWithADeque) {
  std::minstd_rand random(2);
  std::deque<Element> elements;
  for (int i = 0; i < 20; ++i) elements.emplace_back(i);
  IntrusiveList<Element> list;
  std::deque<int> model;
  for (int round = 0; round < 20'000; ++round) {
    Element& element = elements[random() % elements.size()];
    switch (random() % 3) {
      case 0:
        if (element.linked()) break;
        list.PushFront(&element);
        model.push_front(element.value);
        break;
      case 1:
        if (element.linked()) break;
        list.PushBack(&element);
        model.push_back(element.value);
        break;
      default:
        if (element.linked()) {
          list.Remove(&element);
          model.erase(std::find(model.begin(), model.end(), element.value));
        } else if (Element* front = list.PopFront(); front != nullptr) {
          ASSERT_EQ(front->value, model.front());
          model.pop_front();
        }
    }
    ASSERT_EQ(Values(list), std::vector<int>(model.begin(), model.end()));
    ASSERT_EQ(list.size(), model.size());
    ASSERT_EQ(list.empty(), model.empty());
    if (!model.empty()) {
      ASSERT_EQ(list.front()->value, model.front());
      ASSERT_EQ(list.back()->value, model.back());
    }
  }
}

TEST(IntrusiveListDeathTest, MisuseIsNoticedInDebugBuilds) {
  if (!kDebugChecks) GTEST_SKIP() << "no debug checks in this build";
  IntrusiveList<Element> list;
  Element element(1);
  EXPECT_DEATH(list.Remove(&element), "check failed: node->linked\\(\\)");
  list.PushBack(&element);
  EXPECT_DEATH(list.PushBack(&element), "check failed");
}

}  // namespace
}  // namespace tcmalloc
