// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "fakes/fake_file.h"
#include "system/first_line.h"
#include "system/maps_line.h"
#include "system/number_text.h"

namespace tcmalloc::testing {
namespace {

TEST(NumberTextTest, TakesTheDigitsAtTheFront) {
  uint64_t number = 7;
  std::string_view text = "0123 4";
  EXPECT_TRUE(TakeNumber(&text, &number));
  EXPECT_EQ(number, 123u);
  EXPECT_EQ(text, " 4");
  EXPECT_FALSE(TakeNumber(&text, &number));
  EXPECT_EQ(number, 123u);
  EXPECT_EQ(text, " 4");
}

TEST(NumberTextTest, RefusesWhatDoesNotFit) {
  uint64_t number = 7;
  EXPECT_TRUE(ParseNumber("18446744073709551615", &number));
  EXPECT_EQ(number, UINT64_MAX);
  for (std::string_view text : {"18446744073709551616", "99999999999999999999999"}) {
    const std::string_view whole = text;
    EXPECT_FALSE(TakeNumber(&text, &number));
    EXPECT_EQ(text, whole);
    EXPECT_FALSE(ParseNumber(text, &number));
  }
  EXPECT_EQ(number, UINT64_MAX);
}

TEST(NumberTextTest, ANumberIsTheWholeText) {
  uint64_t number = 0;
  for (const std::string_view text : {"", "x", "1x", " 1", "1 ", "-1", "+1", "1.0", "f"}) {
    EXPECT_FALSE(ParseNumber(text, &number)) << text;
  }
}

TEST(NumberTextTest, TakesHexadecimalDigits) {
  uint64_t number = 7;
  std::string_view text = "0fa9 4";
  EXPECT_TRUE(TakeHexNumber(&text, &number));
  EXPECT_EQ(number, 0xfa9u);
  EXPECT_EQ(text, " 4");
  EXPECT_TRUE(ParseHexNumber("ffffffffffffffff", &number));
  EXPECT_EQ(number, UINT64_MAX);
  for (const std::string_view no : {"", "g", "F", "0x1", "1 ", "-1", "10000000000000000"}) {
    EXPECT_FALSE(ParseHexNumber(no, &number)) << no;
  }
}

TEST(MapsLineTest, HasEachField) {
  const std::optional<MapsLine> line =
      ParseMapsLine("7f12a000-7f12b000 r-xp 0002c000 08:01 1234      /lib/a b.so (deleted)");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->begin, 0x7f12a000u);
  EXPECT_EQ(line->end, 0x7f12b000u);
  EXPECT_EQ(line->permissions, "r-xp");
  EXPECT_EQ(line->offset, 0x2c000u);
  EXPECT_EQ(line->name, "/lib/a b.so (deleted)");
  EXPECT_EQ(ParseMapsLine("1000-2000 rw-p 00000000 00:00 0 ")->name, "");
}

TEST(MapsLineTest, RefusesOtherText) {
  for (const std::string_view text :
       {"", "nonsense", "1000 2000 rw-p 0 00:00 0", "1000-2000 rw 0 00:00 0", "1000-2000 rw-p",
        "1000-20g0 rw-p 0 00:00 0", "Size:   132 kB"}) {
    EXPECT_FALSE(ParseMapsLine(text)) << text;
  }
}

TEST(FirstLineTest, EndsBeforeTheNewline) {
  const FakeFile file("12 ab\nnext\n");
  char buffer[8];
  bool interfered = false;
  EXPECT_EQ(ReadFirstLine("/some/path", buffer, &interfered), "12 ab");
  EXPECT_FALSE(interfered);
  EXPECT_EQ(file.path(), "/some/path");
  EXPECT_EQ(file.open_files(), 0);
}

TEST(FirstLineTest, IsEmptyWhereTheLineIsTooLong) {
  const FakeFile file("1234567\n");
  char room[8];
  EXPECT_EQ(ReadFirstLine("", room), "1234567");
  char too_small[7];
  EXPECT_EQ(ReadFirstLine("", too_small), "");
}

TEST(FirstLineTest, SaysThatAFileCouldNotBeRead) {
  FakeFile file("12\n");
  file.set_bytes_before_error(0);
  char buffer[8];
  EXPECT_EQ(ReadFirstLine("", buffer), "");
  EXPECT_EQ(file.open_files(), 0);
}

TEST(FirstLineTest, AMissingFileIsEmptyAndNoInterference) {
  char buffer[8];
  bool interfered = false;
  EXPECT_EQ(ReadFirstLine("/nowhere/at/all", buffer, &interfered), "");
  EXPECT_FALSE(interfered);
}

}  // namespace
}  // namespace tcmalloc::testing
