// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "profile_format/readable_name.h"

#include <gtest/gtest.h>

#include <string>

namespace tcmalloc {
namespace {

TEST(ReadableNameTest, HasNoParameters) {
  const auto readable = [](std::string_view symbol) {
    char text[64];
    return std::string(ReadableName(symbol, text, sizeof(text)));
  };
  EXPECT_EQ(readable("main"), "main");
  EXPECT_EQ(readable("_Z3fooi"), "foo");
  EXPECT_EQ(readable("_ZN3foo3barEv"), "foo::bar");
  EXPECT_EQ(readable("_ZNK3foo3bar3bazEv"), "foo::bar::baz");
  EXPECT_EQ(readable("_ZN3fooC2Ev"), "foo::foo");
  EXPECT_EQ(readable("_ZN3fooD1Ev"), "foo::~foo");
  EXPECT_EQ(readable("_ZN12_GLOBAL__N_13barEv"), "(anonymous namespace)::bar");
  EXPECT_EQ(readable("_ZN3fooIiE3barEv"), "foo::bar");
  EXPECT_EQ(readable("_ZNSt6vectorIiSaIiEE9push_backEOi"), "std::vector::push_back");
  EXPECT_EQ(readable("_Z"), "_Z");
  EXPECT_EQ(readable("_ZN999999foo"), "_ZN999999foo");
  EXPECT_EQ(readable("_ZN3fooI"), "foo");
}

}  // namespace
}  // namespace tcmalloc
