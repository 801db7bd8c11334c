// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "options/parse.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace tcmalloc {
namespace {

TEST(ParseSwitchTest, GoesByTheFirstCharacter) {
  for (const char* text : {"", "t", "T", "y", "Y", "1", "true", "TRUE", "yes", "1x"}) {
    EXPECT_EQ(ParseSwitch(text), true) << text;
  }
  for (const char* text : {"f", "F", "n", "N", "0", "false", "No", "0.5"}) {
    EXPECT_EQ(ParseSwitch(text), false) << text;
  }
  for (const char* text : {"on", "off", "2", " 1", "-1", "x"}) {
    EXPECT_EQ(ParseSwitch(text), std::nullopt) << text;
  }
}

TEST(ParseCountTest, DecimalNumbers) {
  EXPECT_EQ(ParseCount("0"), 0u);
  EXPECT_EQ(ParseCount("33554432"), 33554432u);
  EXPECT_EQ(ParseCount(" \t+12 \n"), 12u);
  EXPECT_EQ(ParseCount("007"), 7u);
  EXPECT_EQ(ParseCount("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(ParseCount("18446744073709551614"), UINT64_MAX - 1);
}

TEST(ParseCountTest, WhatDoesNotFitIsTheLargest) {
  EXPECT_EQ(ParseCount("18446744073709551616"), UINT64_MAX);
  EXPECT_EQ(ParseCount("99999999999999999999999999999999"), UINT64_MAX);
  EXPECT_EQ(ParseCount("184467440737095516150"), UINT64_MAX);
  EXPECT_EQ(ParseCount("100000000000000000000000000000000000000000000000000000001"), UINT64_MAX);
}

TEST(ParseCountTest, AnythingElseIsNoNumber) {
  for (const char* text : {"", " ", "+", "-1", "1 2", "1k", "0x10", "1.0", "++1", "+ 1", "one"}) {
    EXPECT_EQ(ParseCount(text), std::nullopt) << text;
  }
}

TEST(ParseSizeTest, WithoutASuffixCountsUnits) {
  EXPECT_EQ(ParseSize("64", 1), 64u);
  EXPECT_EQ(ParseSize(" +64\n", 1 << 20), 64u);
  EXPECT_EQ(ParseSize("18446744073709551616", 1 << 20), UINT64_MAX);
}

TEST(ParseSizeTest, SuffixesArePowersOf1024Bytes) {
  EXPECT_EQ(ParseSize("3K", 1), 3u << 10);
  EXPECT_EQ(ParseSize("3M", 1), 3u << 20);
  EXPECT_EQ(ParseSize("3G", 1), uint64_t{3} << 30);
  EXPECT_EQ(ParseSize("3T", 1), uint64_t{3} << 40);
  EXPECT_EQ(ParseSize(" 3T ", 1 << 20), uint64_t{3} << 20);
  for (const char* text : {"5K", "5k", "5KB", "5kB", "5kb", "5KiB", "5kib"}) {
    EXPECT_EQ(ParseSize(text, 1), 5u << 10) << text;
  }
}

TEST(ParseSizeTest, RoundsUpToWholeUnits) {
  EXPECT_EQ(ParseSize("0K", 1 << 20), 0u);
  EXPECT_EQ(ParseSize("1K", 1 << 20), 1u);
  EXPECT_EQ(ParseSize("1024K", 1 << 20), 1u);
  EXPECT_EQ(ParseSize("1025K", 1 << 20), 2u);
}

TEST(ParseSizeTest, WhatDoesNotFitIsTheLargest) {
  EXPECT_EQ(ParseSize("16777215T", 1), uint64_t{16777215} << 40);
  EXPECT_EQ(ParseSize("16777216T", 1), UINT64_MAX);
  EXPECT_EQ(ParseSize("99999999999999999999G", 1 << 20), uint64_t{1} << 44);
}

TEST(ParseSizeTest, AnythingElseIsNoSize) {
  for (const char* text : {"", "K", "-1K", "1 K", "1i", "1B", "1iB", "1Ki", "1KIB", "1KiBs", "1MK",
                           "1P", "1.5G", "1e3", "K1", "1K1", "0x1K"}) {
    EXPECT_EQ(ParseSize(text, 1), std::nullopt) << text;
  }
}

TEST(ParseSignedSizeTest, SizesWithASign) {
  EXPECT_EQ(ParseSignedSize("0"), 0);
  EXPECT_EQ(ParseSignedSize("-0"), 0);
  EXPECT_EQ(ParseSignedSize(" -17\n"), -17);
  EXPECT_EQ(ParseSignedSize("-1k"), -1024);
  EXPECT_EQ(ParseSignedSize("2GiB"), int64_t{2} << 30);
  EXPECT_EQ(ParseSignedSize("+1073741824"), 1073741824);
  EXPECT_EQ(ParseSignedSize("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(ParseSignedSize("-9223372036854775807"), -INT64_MAX);
  EXPECT_EQ(ParseSignedSize("-9223372036854775808"), INT64_MIN);
}

TEST(ParseSignedSizeTest, WhatDoesNotFitIsTheNearest) {
  EXPECT_EQ(ParseSignedSize("9223372036854775808"), INT64_MAX);
  EXPECT_EQ(ParseSignedSize("-99999999999999999999999"), INT64_MIN);
  EXPECT_EQ(ParseSignedSize("8388608T"), INT64_MAX);
}

TEST(ParseSignedSizeTest, AnythingElseIsNoNumber) {
  for (const char* text : {"", "-", "--1", "-+1", "+-1", "- 1", "1-", "-1x", "-0x1", "-1.5"}) {
    EXPECT_EQ(ParseSignedSize(text), std::nullopt) << text;
  }
}

TEST(ParseRealTest, DecimalNumbers) {
  EXPECT_EQ(ParseReal("0"), 0.0);
  EXPECT_EQ(ParseReal("1"), 1.0);
  EXPECT_EQ(ParseReal("1.5"), 1.5);
  EXPECT_EQ(ParseReal("1."), 1.0);
  EXPECT_EQ(ParseReal(".25"), 0.25);
  EXPECT_EQ(ParseReal("-2.5"), -2.5);
  EXPECT_EQ(ParseReal("+2.5"), 2.5);
  EXPECT_EQ(ParseReal(" 10 "), 10.0);
  EXPECT_EQ(ParseReal("1e3"), 1000.0);
  EXPECT_EQ(ParseReal("1E+3"), 1000.0);
  EXPECT_EQ(ParseReal("25e-1"), 2.5);
}

TEST(ParseRealTest, WhatDoesNotFit) {
  EXPECT_EQ(ParseReal("1e400"), DBL_MAX);
  EXPECT_EQ(ParseReal("-1e400"), -DBL_MAX);
  EXPECT_EQ(ParseReal("1e999999999999"), DBL_MAX);
  EXPECT_EQ(ParseReal("1" + std::string(1000, '0')), DBL_MAX);
  EXPECT_EQ(ParseReal("1e-999999999999"), 0.0);
  EXPECT_EQ(ParseReal("0e999999999999"), 0.0);
  EXPECT_EQ(ParseReal("1" + std::string(1000, '0') + "e-1000"), 1.0);
  EXPECT_EQ(ParseReal("0." + std::string(999, '0') + "1e1000"), 1.0);
}

TEST(ParseRealTest, AnythingElseIsNoNumber) {
  for (const char* text : {"", " ", ".", "-", "+.", "e5", ".e5", "1e", "1e+", "1 2", "1,5", "0x1p3",
                           "inf", "nan", "1.2.3", "--1", "1e5x", "1e1.5"}) {
    EXPECT_EQ(ParseReal(text), std::nullopt) << text;
  }
}

TEST(ParseRealTest, AgreesWithStrtod) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 100'000; ++round) {
    char text[64];
    const double value =
        std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 200) - 100);
    const int digits = static_cast<int>(random() % 25);
    std::snprintf(text, sizeof(text), round % 2 == 0 ? "%.*e" : "%.*g", digits, value);
    const std::optional<double> parsed = ParseReal(text);
    ASSERT_TRUE(parsed.has_value()) << text;
    ASSERT_NEAR(*parsed / std::strtod(text, nullptr), 1.0, 1e-13) << text;
  }
}

// Whatever the text: no crash, no read beyond its end, and a number where strtod has one too.
TEST(ParseTest, AnyTextIsSafe) {
  constexpr char kLetters[] = "0123456789.eE+-  \ttfyn\0\xff";
  std::minstd_rand random(5);
  for (int round = 0; round < 200'000; ++round) {
    std::vector<char> text(random() % 30);
    for (char& c : text) c = kLetters[random() % (sizeof(kLetters) - 1)];
    const std::string_view view(text.data(), text.size());
    ParseSwitch(view);
    const std::optional<uint64_t> count = ParseCount(view);
    const std::optional<double> real = ParseReal(view);
    const std::string copy(view);
    if (count.has_value()) {
      ASSERT_TRUE(real.has_value()) << copy;
      ASSERT_EQ(std::strtoull(copy.c_str(), nullptr, 10), *count) << copy;
    }
    if (real.has_value() && std::abs(*real) < DBL_MAX) {
      ASSERT_NEAR(std::strtod(copy.c_str(), nullptr), *real, std::abs(*real) * 1e-13) << copy;
    }
  }
}

}  // namespace
}  // namespace tcmalloc
