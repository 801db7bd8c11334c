// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/proc_maps.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "fakes/fake_file.h"

namespace tcmalloc {
namespace {

using ::tcmalloc::testing::FakeFile;
using Kind = ProcMapsLine::Kind;

constexpr char kFullLine[] =
    "7f1234567000-7f1234589000 r-xp 00026000 fe:01 1234567                    /usr/lib/libc.so.6";

TEST(ProcMapsTest, ParsesEveryFieldOfAMapping) {
  const ProcMapsLine line = ParseProcMapsLine(kFullLine);
  ASSERT_EQ(line.kind, Kind::kMapping);
  EXPECT_EQ(line.mapping.start, 0x7f1234567000u);
  EXPECT_EQ(line.mapping.end, 0x7f1234589000u);
  EXPECT_TRUE(line.mapping.readable);
  EXPECT_FALSE(line.mapping.writable);
  EXPECT_TRUE(line.mapping.executable);
  EXPECT_FALSE(line.mapping.shared);
  EXPECT_EQ(line.mapping.offset, 0x26000u);
  EXPECT_EQ(line.mapping.inode, 1234567u);
  EXPECT_EQ(line.mapping.name, "/usr/lib/libc.so.6");
}

TEST(ProcMapsTest, MappingsWithOddNames) {
  const std::string prefix = "1000-2000 rw-s 00000000 00:00 0 ";
  EXPECT_EQ(ParseProcMapsLine(prefix).mapping.name, "");
  EXPECT_EQ(ParseProcMapsLine("1000-2000 rw-s 00000000 00:00 0").kind, Kind::kMapping);
  EXPECT_EQ(ParseProcMapsLine(prefix + "  [anon:tcmalloc heap]").mapping.name,
            "[anon:tcmalloc heap]");
  EXPECT_EQ(ParseProcMapsLine(prefix + "/a b: 12 kB").mapping.name, "/a b: 12 kB");
  EXPECT_EQ(ParseProcMapsLine(prefix + "/gone (deleted)").mapping.name, "/gone (deleted)");
  EXPECT_TRUE(ParseProcMapsLine(prefix).mapping.shared);
  EXPECT_EQ(ParseProcMapsLine("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]")
                .mapping.start,
            0xffffffffff600000u);
}

TEST(ProcMapsTest, ParsesSizes) {
  const ProcMapsLine line = ParseProcMapsLine("Rss:                1234 kB");
  ASSERT_EQ(line.kind, Kind::kSize);
  EXPECT_EQ(line.field, "Rss");
  EXPECT_EQ(line.bytes, 1234u * 1024);
  EXPECT_EQ(ParseProcMapsLine("Private_Dirty: 0 kB").field, "Private_Dirty");
}

TEST(ProcMapsTest, EverythingElseIsOther) {
  for (const char* text : {
           "",
           ":",
           ": 12 kB",
           "Rss:",
           "Rss: kB",
           "Rss: 12",
           "Rss: 12 MB",
           "Rss: 12 kB ",
           "Rss: -1 kB",
           "Rss: 18446744073709551616 kB",
           "Rss: 18014398509481984 kB",
           "VmFlags: rd ex mr mw me",
           "THPeligible:    0",
           "1000",
           "1000-",
           "1000-2000",
           "1000-2000 ",
           "1000-2000 rwx",
           "1000-2000 rwxq 0 00:00 0",
           "1000-2000 rwqp 0 00:00 0",
           "1000-2000 rw-p 0",
           "1000-2000 rw-p 0 00 0",
           "1000-2000 rw-p 0 00:00",
           "1000-2000 rw-p 0 00:00 0x",
           "1000-2000 rw-p 0 00:00 a",
           "2000-1000 rw-p 0 00:00 0",
           "10000000000000000-20000000000000000 rw-p 0 00:00 0",
           "1000-2000 rw-p 0 00:00 99999999999999999999",
           "-1000-2000 rw-p 0 00:00 0",
           "1000 -2000 rw-p 0 00:00 0",
       }) {
    const ProcMapsLine line = ParseProcMapsLine(text);
    EXPECT_EQ(line.kind, Kind::kOther) << text;
    EXPECT_EQ(line.bytes, 0u);
    EXPECT_EQ(line.mapping.end, 0u);
  }
}

TEST(ProcMapsTest, ALineOfAnyLengthHidesNoOther) {
  const std::string first = "1000-2000 r--p 0 00:00 1 /" + std::string(5000, 'a');
  const std::string second = "2000-3000 r--p 0 00:00 2 /" + std::string(20000, 'b');
  FakeFile file(first + "\n" + second + "\n3000-4000 rw-p 0 00:00 3 /c\n");
  file.set_most_bytes_per_read(777);
  file.set_interrupted(true);
  ProcMapsReader reader;
  ASSERT_TRUE(reader.Open("/proc/self/maps"));
  ProcMapsLine line;
  ASSERT_TRUE(reader.Next(&line));
  EXPECT_EQ(line.mapping.name.size(), 5001u);
  ASSERT_TRUE(reader.Next(&line));
  EXPECT_EQ(line.mapping.start, 0x2000u);
  EXPECT_EQ(line.mapping.end, 0x3000u);
  ASSERT_TRUE(reader.Next(&line));
  EXPECT_EQ(line.mapping.inode, 3u);
  EXPECT_FALSE(reader.Next(&line));
}

TEST(ProcMapsTest, FindsOurselves) {
  static int variable;
  for (const char* path : {"/proc/self/maps", "/proc/self/smaps"}) {
    ProcMapsReader reader;
    ASSERT_TRUE(reader.Open(path));
    ProcMapsLine line;
    bool found = false;
    uint64_t rss = 0;
    uintptr_t last_end = 0;
    while (reader.Next(&line)) {
      if (line.kind == Kind::kSize && line.field == "Rss") rss += line.bytes;
      if (line.kind != Kind::kMapping) continue;
      EXPECT_GE(line.mapping.start, last_end);
      last_end = line.mapping.end;
      const auto address = reinterpret_cast<uintptr_t>(&variable);
      if (address < line.mapping.start || address >= line.mapping.end) continue;
      found = true;
      EXPECT_TRUE(line.mapping.writable);
    }
    EXPECT_TRUE(found) << path;
    EXPECT_EQ(rss != 0, std::string(path) == "/proc/self/smaps");
  }
}

void Mutate(std::minstd_rand& random, std::string* text) {
  constexpr char kInteresting[] = "0123456789abcdefrwxsp-: /[]\n\0\xff kB";
  const size_t position = text->empty() ? 0 : random() % text->size();
  const char letter = kInteresting[random() % (sizeof(kInteresting) - 1)];
  switch (random() % 5) {
    case 0:
      text->insert(position, 1, letter);
      break;
    case 1:
      if (!text->empty()) text->erase(position, 1 + random() % 4);
      break;
    case 2:
      if (!text->empty()) (*text)[position] = letter;
      break;
    case 3:
      text->insert(position, text->substr(0, random() % 30));
      break;
    default:
      text->resize(position);
  }
}

// Whatever the text: no crash, and views stay inside it. An allocation of its exact size lets the
// address sanitizer see a read beyond it.
TEST(ProcMapsTest, AnyTextIsSafe) {
  const std::vector<std::string> seeds = {kFullLine, "Rss:    1234 kB", "VmFlags: rd wr",
                                          "0-ffffffffffffffff rwxs 0 0:0 0 "};
  std::minstd_rand random(7);
  for (int round = 0; round < 200'000; ++round) {
    std::string text = seeds[random() % seeds.size()];
    for (size_t i = random() % 6; i > 0; --i) Mutate(random, &text);
    const std::vector<char> exact(text.begin(), text.end());
    const ProcMapsLine line = ParseProcMapsLine({exact.data(), exact.size()});
    const std::string_view view = line.kind == Kind::kMapping ? line.mapping.name : line.field;
    if (view.empty()) continue;
    ASSERT_GE(view.data(), exact.data());
    ASSERT_LE(view.data() + view.size(), exact.data() + exact.size());
    if (line.kind == Kind::kMapping) {
      ASSERT_LE(line.mapping.start, line.mapping.end);
    }
  }
}

}  // namespace
}  // namespace tcmalloc
