// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hook/hooks.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace tcmalloc {
namespace {

int calls = 0;

void Hear(const void*, size_t) {
  ++calls;
  errno = EXDEV;
}

void Nest(const void* block, size_t size) {
  ++calls;
  Invoke(hooks.new_block, block, size);
}

TEST(HooksTest, WatchesBlocksWhileAHookIsThere) {
  EXPECT_FALSE(BlocksAreWatched());
  ASSERT_TRUE(hooks.new_block.Add(Hear));
  EXPECT_TRUE(BlocksAreWatched());
  ASSERT_TRUE(hooks.new_block.Remove(Hear));
  EXPECT_FALSE(BlocksAreWatched());
  const auto hear = [](const void*) {};
  ASSERT_TRUE(hooks.delete_block.Add(hear));
  EXPECT_TRUE(BlocksAreWatched());
  ASSERT_TRUE(hooks.delete_block.Remove(hear));
  EXPECT_FALSE(BlocksAreWatched());
}

TEST(HooksTest, ReportsBlocksAndNotTheirAbsence) {
  ASSERT_TRUE(hooks.new_block.Add(Hear));
  calls = 0;
  errno = 0;
  int block = 0;
  EXPECT_EQ(ReportNew(&block, 4), &block);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(errno, 0);
  EXPECT_EQ(ReportNew(nullptr, 4), nullptr);
  EXPECT_EQ(calls, 1);
  ASSERT_TRUE(hooks.new_block.Remove(Hear));
}

int nested_new = 0;
int nested_delete = 0;

// The nested hooks see this hook's own blocks, and none of those that they have themselves.
TEST(HooksTest, ReportsBlocksOfAHookToTheNestedHooks) {
  const auto on_new = [](const void* block, size_t size) {
    ++calls;
    ReportNew(const_cast<void*>(block), size);
    ReportResized(const_cast<void*>(block), size);
    ReportDelete(block);
  };
  const auto on_nested_delete = [](const void*) {
    EXPECT_FALSE(BlockStays());
    ++nested_delete;
  };
  ASSERT_TRUE(hooks.new_block.Add(on_new));
  ASSERT_TRUE(hooks.nested_new.Set([](const void*, size_t) { ++nested_new; }));
  ASSERT_TRUE(hooks.nested_delete.Set(on_nested_delete));
  for (int i = 1; i <= 2; ++i) {
    calls = nested_new = nested_delete = 0;
    ReportNew(&calls, 1);
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(nested_new, 2);
    EXPECT_EQ(nested_delete, 1);
  }
  ASSERT_TRUE(hooks.nested_new.Remove(hooks.nested_new.get()));
  ASSERT_TRUE(hooks.nested_delete.Remove(hooks.nested_delete.get()));
  ASSERT_TRUE(hooks.new_block.Remove(on_new));
}

TEST(HooksTest, ABlockThatIsFreedWhileAnotherOneIsResizedDoesNotStay) {
  const auto on_delete = [](const void* block) {
    EXPECT_TRUE(BlockStays());
    ReportDelete(block);
    EXPECT_TRUE(BlockStays());
  };
  nested_delete = 0;
  ASSERT_TRUE(hooks.delete_block.Add(on_delete));
  ASSERT_TRUE(
      hooks.nested_delete.Set([](const void*) { nested_delete += BlockStays() ? 100 : 1; }));
  ReportResized(&calls, 1);
  EXPECT_EQ(nested_delete, 1);
  ASSERT_TRUE(hooks.nested_delete.Remove(hooks.nested_delete.get()));
  ASSERT_TRUE(hooks.delete_block.Remove(on_delete));
}

TEST(HooksTest, ReportsNothingThatAHookDoes) {
  ASSERT_TRUE(hooks.new_block.Add(Nest));
  ASSERT_TRUE(hooks.new_block.Add(Hear));
  for (int i = 1; i <= 2; ++i) {
    calls = 0;
    ReportNew(&calls, 1);
    EXPECT_EQ(calls, 2);
  }
  ASSERT_TRUE(hooks.new_block.Remove(Nest));
  ASSERT_TRUE(hooks.new_block.Remove(Hear));
}

TEST(HooksTest, ScopesNest) {
  const HookScope outer;
  EXPECT_TRUE(outer.entered());
  {
    const HookScope inner;
    EXPECT_FALSE(inner.entered());
  }
  const HookScope again;
  EXPECT_FALSE(again.entered());
}

TEST(ReplacementTest, IsTheOnlyOne) {
  using Function = int (*)();
  const Function one = [] { return 1; };
  const Function two = [] { return 2; };
  Replacement<Function> replacement;
  EXPECT_EQ(replacement.get(), nullptr);
  EXPECT_FALSE(replacement.Set(nullptr));
  EXPECT_FALSE(replacement.Remove(nullptr));
  EXPECT_TRUE(replacement.Set(one));
  EXPECT_FALSE(replacement.Set(two));
  EXPECT_FALSE(replacement.Remove(two));
  EXPECT_EQ(replacement.get(), one);
  EXPECT_TRUE(replacement.Remove(one));
  EXPECT_TRUE(replacement.Set(two));
}

int stays = 0;
int news = 0;

TEST(HooksTest, ABlockThatIsResizedInPlaceStays) {
  const auto on_delete = [](const void*) { stays += BlockStays() ? 1 : 0; };
  const auto on_new = [](const void*, size_t) { news += BlockStays() ? 0 : 1; };
  ASSERT_TRUE(hooks.delete_block.Add(on_delete));
  ASSERT_TRUE(hooks.new_block.Add(on_new));
  int block = 0;
  ReportResized(&block, 4);
  EXPECT_EQ(stays, 1);
  EXPECT_EQ(news, 1);
  ReportDelete(&block);
  EXPECT_EQ(stays, 1);
  ASSERT_TRUE(hooks.delete_block.Remove(on_delete));
  ASSERT_TRUE(hooks.new_block.Remove(on_new));
}

}  // namespace
}  // namespace tcmalloc
