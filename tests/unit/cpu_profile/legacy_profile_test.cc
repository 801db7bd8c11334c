// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cpu_profile/legacy_profile.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "unit/profile_format/string_sink.h"

namespace tcmalloc {
namespace {

using ::tcmalloc::testing::StringSink;
using Words = std::vector<uintptr_t>;

Words FirstWords(const std::string& text, size_t count) {
  Words words(count);
  EXPECT_GE(text.size(), count * sizeof(uintptr_t));
  std::memcpy(words.data(), text.data(), count * sizeof(uintptr_t));
  return words;
}

TEST(LegacyProfileTest, HasHeaderRecordsTrailerAndMappings) {
  StringSink sink;
  LegacyWriter writer(sink);
  writer.Begin(10'000);
  writer.Add(Words{0x1001, 0x2002}, 7);
  writer.Add(Words{0x3003}, 1);
  writer.Add({}, 5);
  writer.End();
  const Words expected = {0, 3, 0, 10'000, 0, 7, 2, 0x1001, 0x2002, 1, 1, 0x3003, 0, 1, 0};
  EXPECT_EQ(FirstWords(sink.text(), expected.size()), expected);
  const std::string rest = sink.text().substr(expected.size() * sizeof(uintptr_t));
  std::string line;
  std::ifstream("/proc/self/maps") >> line;
  EXPECT_EQ(rest.substr(0, line.size()), line);
  EXPECT_EQ(rest.back(), '\n');
  EXPECT_NE(rest.find("r-xp"), std::string::npos);
}

TEST(LegacyProfileTest, WritesMoreThanItBuffers) {
  StringSink sink;
  LegacyWriter writer(sink);
  writer.Begin(1);
  Words expected = {0, 3, 0, 1, 0};
  for (uintptr_t i = 1; i <= 50; ++i) {
    const Words stack(100, i);
    writer.Add(stack, i);
    expected.insert(expected.end(), {i, 100});
    expected.insert(expected.end(), stack.begin(), stack.end());
  }
  writer.End();
  expected.insert(expected.end(), {0, 1, 0});
  EXPECT_EQ(FirstWords(sink.text(), expected.size()), expected);
}

}  // namespace
}  // namespace tcmalloc
