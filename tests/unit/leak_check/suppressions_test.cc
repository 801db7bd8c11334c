// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/suppressions.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>

#include "leak_check/symbol_names.h"

// Named as programs name theirs, for the symbol table.
extern "C" __attribute__((noinline)) uintptr_t suppressed_function() {
  return reinterpret_cast<uintptr_t>(__builtin_return_address(0));
}

namespace tcmalloc {
namespace {

TEST(SuppressionsTest, Patterns) {
  struct Case {
    const char* pattern;
    const char* text;
    bool matches;
  };
  const Case cases[] = {
      {"Load", "ReLoader", true},   {"^Load", "ReLoader", false},
      {"^Re", "ReLoader", true},    {"er$", "ReLoader", true},
      {"Load$", "ReLoader", false}, {"R*L*r", "ReLoader", true},
      {"^R*x", "ReLoader", false},  {"*", "", true},
      {"", "text", true},           {"^$", "", true},
      {"^$", "a", false},           {"a*b*c$", "aXbXcXc", true},
      {"^a*b$", "aXbXb", true},     {"^libz.so", "libz.so", true},
      {"b*b", "ab", false},         {"std::*::f", "std::x::f", true},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(MatchesPattern(one.pattern, one.text), one.matches) << one.pattern << " " << one.text;
  }
}

TEST(SuppressionsTest, StacksByFunctionAndFile) {
  const uintptr_t frames[] = {suppressed_function()};
  const Mappings mappings;
  SymbolNames names(mappings);
  const SymbolName own = names.Find(frames[0]);
  EXPECT_NE(own.function.find("StacksByFunctionAndFile"), std::string_view::npos);
  EXPECT_TRUE(own.file.ends_with(program_invocation_short_name));
  EXPECT_EQ(names.Find(reinterpret_cast<uintptr_t>(&suppressed_function) + 1).function,
            "suppressed_function");
  EXPECT_TRUE(names.Find(1).function.empty());

  Suppressions by_name;
  by_name.AddText("# comment\n\nleak:StacksByFunctionAndFile\n");
  EXPECT_TRUE(by_name.LeavesOut(frames));
  Suppressions by_file;
  by_file.AddText(std::string("leak:") + program_invocation_short_name + "$");
  EXPECT_TRUE(by_file.LeavesOut(frames));
  Suppressions other;
  other.AddText("leak:NoSuchFunction\nrace:StacksByFunctionAndFile\n");
  EXPECT_FALSE(other.LeavesOut(frames));
  EXPECT_FALSE(other.empty());
  EXPECT_FALSE(other.Load("/nowhere/suppressions"));
  EXPECT_EQ(other.unused_lines(), 0u);
}

struct Item {};
template <typename T, typename Allocator>
struct Pool {
  [[gnu::noinline]] static void Grow() { asm volatile(""); }
};

TEST(SuppressionsTest, MembersOfTemplates) {
  const auto grow = reinterpret_cast<uintptr_t>(&Pool<Item, std::allocator<Item>>::Grow);
  const uintptr_t frames[] = {grow + 1};
  Suppressions suppressions;
  suppressions.AddText("leak:Pool::Grow$\n");
  EXPECT_TRUE(suppressions.LeavesOut(frames));
}

// Names that were found are remembered, in fewer places than there are addresses here.
TEST(SuppressionsTest, AnAddressHasTheSameNameAgain) {
  const Mappings mappings;
  SymbolNames names(mappings);
  const auto begin = reinterpret_cast<uintptr_t>(&suppressed_function);
  for (int round = 0; round < 2; ++round) {
    for (uintptr_t offset = 0; offset < 1000; ++offset) {
      SymbolNames fresh(mappings);
      const SymbolName expected = fresh.Find(begin + offset);
      const SymbolName found = names.Find(begin + offset);
      ASSERT_EQ(found.function, expected.function) << offset;
      ASSERT_EQ(found.offset, expected.offset);
      ASSERT_EQ(found.file, expected.file);
      ASSERT_EQ(found.file_offset, expected.file_offset);
    }
  }
}

TEST(SuppressionsTest, FilesWithoutAnEndAreNotRead) {
  Suppressions suppressions;
  EXPECT_FALSE(suppressions.Load("/dev/zero"));
  EXPECT_FALSE(suppressions.Load("/"));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_FALSE(suppressions.Load(("/dev/fd/" + std::to_string(ends[0])).c_str()));
  close(ends[0]);
  close(ends[1]);
  EXPECT_TRUE(suppressions.empty());
}

TEST(SuppressionsTest, LinesThatAreNotUsedAreCounted) {
  Suppressions suppressions;
  suppressions.AddText("leak:a\nno_suppression\nrace:other tool\n\n# leak\n");
  EXPECT_EQ(suppressions.unused_lines(), 1u);
  for (size_t i = 0; i < Suppressions::kMostPatterns + 3; ++i) suppressions.AddText("leak:b\n");
  EXPECT_EQ(suppressions.unused_lines(), 5u);
}

// Would take hours if each place of the text were tried with each star.
TEST(SuppressionsTest, PatternsOfManyStars) {
  std::string pattern;
  for (int i = 0; i < 2000; ++i) pattern += "*a";
  EXPECT_FALSE(MatchesPattern(pattern + "b", std::string(100'000, 'a')));
  EXPECT_TRUE(MatchesPattern(pattern + "$", std::string(100'000, 'a')));
}

}  // namespace
}  // namespace tcmalloc
