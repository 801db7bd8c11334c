// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hook/hook_list.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace tcmalloc {
namespace {

using Hook = void (*)(std::vector<int>* called);
using List = HookList<Hook>;

template <int kNumber>
void Called(std::vector<int>* called) {
  called->push_back(kNumber);
}

std::vector<int> CallAll(const List& list) {
  std::vector<int> called;
  list.ForEach([&](Hook hook) { hook(&called); });
  return called;
}

TEST(HookListTest, IsEmptyAtFirst) {
  constinit static List list;
  EXPECT_TRUE(list.empty());
  EXPECT_TRUE(CallAll(list).empty());
  EXPECT_FALSE(list.Remove(Called<1>));
}

TEST(HookListTest, CallsWhatWasAdded) {
  List list;
  EXPECT_TRUE(list.Add(Called<1>));
  EXPECT_TRUE(list.Add(Called<2>));
  EXPECT_FALSE(list.empty());
  EXPECT_EQ(CallAll(list), (std::vector<int>{1, 2}));
  EXPECT_TRUE(list.Remove(Called<1>));
  EXPECT_FALSE(list.Remove(Called<1>));
  EXPECT_EQ(CallAll(list), (std::vector<int>{2}));
  EXPECT_TRUE(list.Remove(Called<2>));
  EXPECT_TRUE(list.empty());
}

TEST(HookListTest, RefusesNull) {
  List list;
  EXPECT_FALSE(list.Add(nullptr));
  EXPECT_FALSE(list.Remove(nullptr));
  EXPECT_TRUE(list.empty());
}

TEST(HookListTest, HoldsSevenAndTheSingleOne) {
  List list;
  for (int i = 0; i < List::kMaxHooks; ++i) EXPECT_TRUE(list.Add(Called<1>));
  EXPECT_FALSE(list.Add(Called<1>));
  EXPECT_EQ(list.SetSingle(Called<9>), nullptr);
  EXPECT_EQ(CallAll(list), (std::vector<int>{1, 1, 1, 1, 1, 1, 1, 9}));
  EXPECT_TRUE(list.Remove(Called<1>));
  EXPECT_TRUE(list.Add(Called<2>));
  EXPECT_FALSE(list.Add(Called<2>));
}

TEST(HookListTest, SetsTheSingleOne) {
  List list;
  EXPECT_EQ(list.SetSingle(nullptr), nullptr);
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.SetSingle(Called<1>), nullptr);
  EXPECT_EQ(list.SetSingle(Called<2>), Called<1>);
  EXPECT_EQ(CallAll(list), (std::vector<int>{2}));
  EXPECT_EQ(list.SetSingle(nullptr), Called<2>);
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.SetSingle(Called<3>), nullptr);
  EXPECT_TRUE(list.Remove(Called<3>));
  EXPECT_TRUE(list.empty());
}

List changing;
void RemoveAndAdd(std::vector<int>* called) {
  called->push_back(0);
  EXPECT_TRUE(changing.Remove(RemoveAndAdd));
  EXPECT_TRUE(changing.Add(Called<1>));
  EXPECT_TRUE(changing.Add(Called<2>));
}

TEST(HookListTest, CallsWhatWasThereWhenItBegan) {
  ASSERT_TRUE(changing.Add(RemoveAndAdd));
  EXPECT_EQ(CallAll(changing), (std::vector<int>{0}));
  EXPECT_EQ(CallAll(changing), (std::vector<int>{1, 2}));
}

// Every thread owns one hook, adds and removes it, and never finds another thread's change in the
// way of its own.
TEST(HookListTest, ThreadsChangeItAtOnce) {
  constexpr int kRounds = 20000;
  List list;
  std::atomic<bool> stop{false};
  const auto toggle = [&](Hook hook, int number) {
    for (int i = 0; i < kRounds; ++i) {
      ASSERT_TRUE(list.Add(hook));
      ASSERT_FALSE(list.empty());
      const std::vector<int> called = CallAll(list);
      ASSERT_EQ(std::count(called.begin(), called.end(), number), 1);
      ASSERT_TRUE(list.Remove(hook));
      ASSERT_FALSE(list.Remove(hook));
    }
  };
  std::thread reader([&] {
    while (!stop) ASSERT_LE(CallAll(list).size(), 3U);
  });
  std::thread threads[] = {std::thread(toggle, Called<1>, 1), std::thread(toggle, Called<2>, 2),
                           std::thread(toggle, Called<3>, 3)};
  for (std::thread& thread : threads) thread.join();
  stop = true;
  reader.join();
  EXPECT_TRUE(list.empty());
}

}  // namespace
}  // namespace tcmalloc
