// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "profile_format/mappings.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <string_view>

namespace tcmalloc {
namespace {

constexpr std::string_view kLine =
    "7f0000001000-7f0000003000 r-xp 00001000 fe:01 1234                       /lib/a b.so";

TEST(MappingsTest, ParsesALineOfCode) {
  const auto mapping = ParseMapping(kLine);
  ASSERT_TRUE(mapping.has_value());
  EXPECT_EQ(mapping->start, 0x7f0000001000U);
  EXPECT_EQ(mapping->limit, 0x7f0000003000U);
  EXPECT_EQ(mapping->offset, 0x1000U);
  EXPECT_EQ(mapping->path, "/lib/a b.so");
}

TEST(MappingsTest, LeavesOutDataAndWhatHasNoFile) {
  EXPECT_FALSE(ParseMapping("1000-2000 rw-p 00000000 fe:01 1 /lib/a.so"));
  EXPECT_FALSE(ParseMapping("1000-2000 r-xp 00000000 00:00 0 "));
  EXPECT_FALSE(ParseMapping(""));
  EXPECT_FALSE(ParseMapping("1000 2000"));
  EXPECT_FALSE(ParseMapping("11112222333344445-2000 r-xp 00000000 fe:01 1 /lib/a.so"));
}

// The line stands at the end of a block, so that sanitizers notice a read behind it.
TEST(MappingsTest, SurvivesAnyLine) {
  std::mt19937 random(1);
  for (int i = 0; i < 200'000; ++i) {
    std::string line(kLine.substr(0, random() % (kLine.size() + 1)));
    for (auto n = random() % 4; n > 0 && !line.empty(); --n) {
      line[random() % line.size()] = static_cast<char>(random());
    }
    const auto mapping = ParseMapping(line);
    if (!mapping) continue;
    ASSERT_FALSE(mapping->path.empty());
    ASSERT_EQ(mapping->path.data() + mapping->path.size(), line.data() + line.size());
  }
}

TEST(MappingsTest, FindsOwnCode) {
  const Mappings mappings;
  const auto code = reinterpret_cast<uintptr_t>(&ParseMapping);
  const size_t i = mappings.Find(code);
  ASSERT_LT(i, mappings.size());
  EXPECT_LE(mappings[i].start, code);
  EXPECT_GT(mappings[i].limit, code);
  EXPECT_EQ(mappings.Find(0), mappings.size());
  EXPECT_EQ(mappings.Find(UINTPTR_MAX), mappings.size());
  int local = 0;
  EXPECT_EQ(mappings.Find(reinterpret_cast<uintptr_t>(&local)), mappings.size());
}

TEST(MappingsTest, ReadsNoBuildIdFromWhatIsNoAbsoluteElfFile) {
  char text[2 * kMostBuildIdBytes];
  EXPECT_EQ(ReadBuildId("/dev/null", text), 0U);
  EXPECT_EQ(ReadBuildId("/no/such/file", text), 0U);
  EXPECT_EQ(ReadBuildId("/", text), 0U);
}

// A file of the name of a mapping without a file could stand in the current directory.
TEST(MappingsTest, OpensNoRelativePath) {
  ASSERT_EQ(chdir(::testing::TempDir().c_str()), 0);
  char text[2 * kMostBuildIdBytes];
  const size_t own = ReadBuildId("/proc/self/exe", text);
  if (own == 0) GTEST_SKIP() << "the test was linked without a build id";
  std::ofstream("[vdso]", std::ios::binary)
      << std::ifstream("/proc/self/exe", std::ios::binary).rdbuf();
  const std::string id(text, own);
  // That of the kernel's own, where it has one.
  const size_t length = ReadBuildId("[vdso]", text);
  EXPECT_EQ(length % 2, 0U);
  EXPECT_NE(std::string(text, length), id);
  EXPECT_EQ(unlink("[vdso]"), 0);
  EXPECT_EQ(ReadBuildId("[stack]", text), 0U);
}

// Returns an ELF file whose only segment is a note with the build id 0102 at an offset.
std::string FileWithNoteAt(size_t offset) {
  constexpr std::string_view kId("\1\2", 2);
  ElfW(Ehdr) file = {};
  std::memcpy(file.e_ident, ELFMAG, SELFMAG);
  file.e_phoff = sizeof(file);
  file.e_phnum = 1;
  ElfW(Nhdr) note = {.n_namesz = 4, .n_descsz = kId.size(), .n_type = NT_GNU_BUILD_ID};
  ElfW(Phdr) segment = {};
  segment.p_type = PT_NOTE;
  segment.p_offset = offset;
  segment.p_filesz = sizeof(note) + 4 + kId.size();
  std::string bytes(offset, '\0');
  std::memcpy(bytes.data(), &file, sizeof(file));
  std::memcpy(bytes.data() + sizeof(file), &segment, sizeof(segment));
  bytes.append(reinterpret_cast<const char*>(&note), sizeof(note));
  bytes.append("GNU", 4);
  return bytes.append(kId);
}

TEST(MappingsTest, FindsBuildIdsBehindTheFirstPage) {
  const std::string path = ::testing::TempDir() + "note.elf";
  for (const size_t offset : {size_t{512}, size_t{4076}, size_t{4077}, size_t{4095}, size_t{4096},
                              size_t{9000}, size_t{16366}}) {
    std::ofstream(path, std::ios::binary) << FileWithNoteAt(offset);
    char text[2 * kMostBuildIdBytes];
    const size_t length = ReadBuildId(path.c_str(), text);
    EXPECT_EQ(std::string_view(text, length), "0102") << offset;
  }
  EXPECT_EQ(unlink(path.c_str()), 0);
}

TEST(MappingsTest, SurvivesBrokenElfFiles) {
  std::ifstream self("/proc/self/exe", std::ios::binary);
  std::string head(16384, '\0');
  self.read(head.data(), static_cast<std::streamsize>(head.size()));
  const std::string path = ::testing::TempDir() + "broken.elf";
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    std::string broken = head.substr(0, i % 2 != 0 ? head.size() : random() % head.size());
    for (int n = 0; n < 8 && broken.size() > 8; ++n) {
      broken[4 + random() % (std::min<size_t>(broken.size(), 1200) - 4)] =
          static_cast<char>(random());
    }
    std::ofstream(path, std::ios::binary) << broken;
    char text[2 * kMostBuildIdBytes];
    ASSERT_LE(ReadBuildId(path.c_str(), text), sizeof(text));
  }
  EXPECT_EQ(unlink(path.c_str()), 0);
}

}  // namespace
}  // namespace tcmalloc
