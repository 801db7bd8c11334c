// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "profile_format/gzip_sink.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>

#include "string_sink.h"

namespace tcmalloc {
namespace {

using ::tcmalloc::testing::StringSink;
using ::tcmalloc::testing::Unpack;

std::string Pack(std::string_view text, size_t piece) {
  StringSink out;
  GzipSink gzip(out);
  EXPECT_TRUE(gzip.ok());
  for (size_t i = 0; i < text.size(); i += piece) gzip.Write(text.substr(i, piece));
  gzip.Finish();
  return out.text();
}

// Returns bytes of an alphabet: the smaller it is, the longer are the strings that repeat.
std::string RandomText(size_t bytes, int alphabet, std::mt19937& random) {
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random() % static_cast<unsigned>(alphabet));
  return text;
}

TEST(GzipSinkTest, PacksNothing) { EXPECT_EQ(Unpack(Pack("", 1)), ""); }

TEST(GzipSinkTest, PacksTextsAroundTheSizeOfItsBuffer) {
  std::mt19937 random(1);
  constexpr size_t kBuffer = 65536;
  for (const int alphabet : {1, 2, 256}) {
    for (const size_t bytes : {size_t{1}, size_t{3}, size_t{4}, size_t{5}, kBuffer - 1, kBuffer,
                               kBuffer + 1, 5 * kBuffer + 259}) {
      const std::string text = RandomText(bytes, alphabet, random);
      EXPECT_EQ(Unpack(Pack(text, 1000)), text) << bytes << " bytes of " << alphabet;
      EXPECT_EQ(Unpack(Pack(text, bytes)), text) << bytes << " bytes of " << alphabet;
    }
  }
}

// Strings of each length repeat at each distance for which deflate has a symbol of its own.
TEST(GzipSinkTest, FindsStringsOfEveryLengthAndDistance) {
  std::mt19937 random(2);
  const std::string word = RandomText(300, 256, random);
  std::string text;
  for (size_t length = 4; length <= 300; ++length) {
    text += word.substr(0, length);
    text += RandomText(size_t{1} << length % 16, 256, random);
  }
  EXPECT_EQ(Unpack(Pack(text, 777)), text);
}

TEST(GzipSinkTest, MakesWhatRepeatsSmall) {
  std::string text;
  while (text.size() < 1'000'000) text += "a profile repeats a lot, ";
  EXPECT_LT(Pack(text, 4096).size(), text.size() / 50);
}

}  // namespace
}  // namespace tcmalloc
