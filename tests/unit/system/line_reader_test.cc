// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/line_reader.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "fakes/fake_file.h"

namespace tcmalloc {
namespace {

using ::tcmalloc::testing::FakeFile;

struct Line {
  std::string text;
  bool truncated = false;
  bool operator==(const Line&) const = default;
};

std::vector<Line> ReadLines(size_t capacity, char delimiter = '\n') {
  std::vector<char> buffer(capacity);
  LineReader reader(buffer.data(), capacity, delimiter);
  EXPECT_TRUE(reader.Open("/some/file"));
  std::vector<Line> lines;
  std::string_view text;
  while (reader.Next(&text)) lines.push_back({std::string(text), reader.truncated()});
  return lines;
}

// Returns the lines that a reader with a buffer of `capacity` bytes must return.
std::vector<Line> ExpectedLines(const std::string& contents, size_t capacity) {
  std::vector<Line> lines;
  size_t begin = 0;
  while (begin < contents.size()) {
    const size_t end = std::min(contents.find('\n', begin), contents.size());
    const std::string text = contents.substr(begin, end - begin);
    const bool fits = text.size() < capacity;
    lines.push_back({fits ? text : text.substr(0, capacity), !fits});
    begin = end + 1;
  }
  return lines;
}

std::string RandomText(std::minstd_rand& random) {
  std::string text;
  const size_t lines = random() % 8;
  for (size_t i = 0; i < lines; ++i) {
    // Mostly short lines, some empty ones, a few longer than any buffer used here.
    const size_t length = random() % 10 == 0 ? random() % 200 : random() % 20;
    for (size_t j = 0; j < length; ++j) text += static_cast<char>('a' + random() % 26);
    if (i + 1 < lines || random() % 2 == 0) text += '\n';
  }
  return text;
}

TEST(LineReaderTest, SplitsAtTheDelimiter) {
  FakeFile file("one\n\nthree\nfour");
  EXPECT_EQ(ReadLines(100), (std::vector<Line>{{"one"}, {""}, {"three"}, {"four"}}));
  EXPECT_EQ(ReadLines(100, 'e'), (std::vector<Line>{{"on"}, {"\n\nthr"}, {""}, {"\nfour"}}));
  EXPECT_EQ(file.open_files(), 0);
}

TEST(LineReaderTest, CutsLongLinesAndFindsTheNext) {
  FakeFile file("short\n" + std::string(1000, 'x') + "\nafter\n" + std::string(1000, 'y'));
  EXPECT_EQ(ReadLines(10),
            (std::vector<Line>{
                {"short"}, {std::string(10, 'x'), true}, {"after"}, {std::string(10, 'y'), true}}));
}

TEST(LineReaderTest, AgreesWithAReferenceWhateverTheReadsReturn) {
  std::minstd_rand random(20);
  for (int round = 0; round < 3000; ++round) {
    const std::string contents = RandomText(random);
    const size_t capacity = 1 + random() % 64;
    FakeFile file(contents);
    file.set_most_bytes_per_read(1 + random() % 40);
    file.set_interrupted(random() % 2 == 0);
    ASSERT_EQ(ReadLines(capacity), ExpectedLines(contents, capacity)) << contents;
  }
}

TEST(LineReaderTest, EmptyAndMissingFiles) {
  {
    FakeFile file("");
    EXPECT_TRUE(ReadLines(10).empty());
  }
  char buffer[16];
  LineReader reader(buffer, sizeof(buffer), '\n');
  EXPECT_FALSE(reader.Open("/does/not/exist"));
  std::string_view line;
  EXPECT_FALSE(reader.Next(&line));
}

TEST(LineReaderTest, EndsAtAnError) {
  FakeFile file("one\ntwo\nthree\n");
  file.set_most_bytes_per_read(4);
  file.set_bytes_before_error(8);
  EXPECT_EQ(ReadLines(100), (std::vector<Line>{{"one"}, {"two"}}));
}

TEST(LineReaderTest, CanBeOpenedAgain) {
  FakeFile file("one\ntwo");
  char buffer[16];
  LineReader reader(buffer, sizeof(buffer), '\n');
  std::string_view line;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(reader.Open("/some/file"));
    ASSERT_TRUE(reader.Next(&line));
    EXPECT_EQ(line, "one");
    EXPECT_EQ(file.open_files(), 1);
  }
}

}  // namespace
}  // namespace tcmalloc
