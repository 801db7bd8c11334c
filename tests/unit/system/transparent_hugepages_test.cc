// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/transparent_hugepages.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "system/system_calls.h"

namespace tcmalloc {
namespace {

constexpr std::string_view kFolder = "/sys/kernel/mm/transparent_hugepage/";

// Redirects the kernel's folder to one that the test fills.
class TransparentHugepagesTest : public ::testing::Test {
 protected:
  TransparentHugepagesTest() : saved_(system_calls) {
    std::string folder = ::testing::TempDir() + "hugepages.XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    std::filesystem::create_directory(folder_ + "/khugepaged");
    system_calls.open = Open;
    system_calls.prctl = Prctl;
    Write("enabled", "always [madvise] never\n");
    Write("defrag", "always defer defer+madvise [madvise] never\n");
    Write("khugepaged/max_ptes_none", "511\n");
    Write("hpage_pmd_size", "2097152\n");
  }
  ~TransparentHugepagesTest() override {
    system_calls = saved_;
    std::filesystem::remove_all(folder_);
    disabled_ = 0;
  }

  static void Write(const std::string& name, const std::string& contents) {
    std::ofstream(folder_ + "/" + name) << contents;
  }

  static inline std::string folder_;
  static inline int disabled_ = 0;  // what the kernel says of this process

 private:
  static int Open(const char* path, int flags, mode_t mode) {
    const std::string_view name(path);
    EXPECT_TRUE(name.starts_with(kFolder)) << name;
    const std::string there = folder_ + "/" + std::string(name.substr(kFolder.size()));
    return real_system_calls.open(there.c_str(), flags, mode);
  }
  static int Prctl(int option, unsigned long, unsigned long, unsigned long, unsigned long) {
    EXPECT_EQ(option, PR_GET_THP_DISABLE);
    return disabled_;
  }

  SystemCalls saved_;
};

TEST_F(TransparentHugepagesTest, ReadsEveryFile) {
  const TransparentHugepages setting = ReadTransparentHugepages();
  EXPECT_EQ(setting.mode, HugepageMode::kMadvise);
  EXPECT_TRUE(setting.may_stall);
  EXPECT_EQ(setting.max_ptes_none, 511u);
  EXPECT_EQ(setting.hugepage_bytes, size_t{2} << 20);
}

TEST_F(TransparentHugepagesTest, EveryMode) {
  Write("enabled", "[always] madvise never\n");
  EXPECT_EQ(ReadTransparentHugepages().mode, HugepageMode::kAlways);
  Write("enabled", "always madvise [never]\n");
  EXPECT_EQ(ReadTransparentHugepages().mode, HugepageMode::kNever);
  for (const char* strange : {"", "\n", "always", "[sometimes]\n", "]madvise[\n"}) {
    Write("enabled", strange);
    EXPECT_EQ(ReadTransparentHugepages().mode, HugepageMode::kNever) << strange;
  }
}

TEST_F(TransparentHugepagesTest, WhoMayStall) {
  for (const char* word : {"always", "madvise", "defer+madvise"}) {
    Write("defrag", std::string("[") + word + "]\n");
    EXPECT_TRUE(ReadTransparentHugepages().may_stall) << word;
  }
  for (const char* word : {"defer", "never", ""}) {
    Write("defrag", std::string("[") + word + "]\n");
    EXPECT_FALSE(ReadTransparentHugepages().may_stall) << word;
  }
}

TEST_F(TransparentHugepagesTest, WhatIsNoNumberIsZero) {
  for (const char* text : {"", "x", "-1", "99999999999999999999999"}) {
    Write("hpage_pmd_size", text);
    EXPECT_EQ(ReadTransparentHugepages().hugepage_bytes, 0u) << text;
  }
}

TEST_F(TransparentHugepagesTest, NeverWithoutTheFile) {
  std::filesystem::remove_all(folder_);
  EXPECT_EQ(ReadTransparentHugepages().mode, HugepageMode::kNever);
}

TEST_F(TransparentHugepagesTest, NeverWhereTheProcessMayNot) {
  disabled_ = 1;
  EXPECT_EQ(ReadTransparentHugepages().mode, HugepageMode::kNever);
}

TEST(ChosenWordTest, IsBetweenBrackets) {
  EXPECT_EQ(ParseChosenWord("a [b] c"), "b");
  EXPECT_EQ(ParseChosenWord("[b]"), "b");
  for (const char* line : {"", "b", "[b", "b]", "]b["})
    EXPECT_EQ(ParseChosenWord(line), "") << line;
}

TEST(HugepageModeNameTest, IsWhatTheKernelSays) {
  EXPECT_STREQ(HugepageModeName(HugepageMode::kAlways), "always");
  EXPECT_STREQ(HugepageModeName(HugepageMode::kMadvise), "madvise");
  EXPECT_STREQ(HugepageModeName(HugepageMode::kNever), "never");
}

}  // namespace
}  // namespace tcmalloc
