// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/cpu_list.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace tcmalloc {
namespace {

TEST(CpuListTest, EndIsOneMoreThanTheLargest) {
  EXPECT_EQ(EndOfCpuList("0"), 1);
  EXPECT_EQ(EndOfCpuList("0-3"), 4);
  EXPECT_EQ(EndOfCpuList("0-3,8-11"), 12);
  EXPECT_EQ(EndOfCpuList("8-11,0-3"), 12);
  EXPECT_EQ(EndOfCpuList("1,63,7"), 64);
  EXPECT_EQ(EndOfCpuList("0-8191"), 8192);
}

TEST(CpuListTest, CountsEveryNumber) {
  EXPECT_EQ(CountOfCpuList("0"), 1);
  EXPECT_EQ(CountOfCpuList("0-3,8-11"), 8);
  EXPECT_EQ(CountOfCpuList("7,0-1,63"), 4);
  EXPECT_EQ(CountOfCpuList("0-65535,0-65535,0-65535"), 65536) << "no more than there can be";
  EXPECT_EQ(CountOfCpuList("0-3,"), 0);
  EXPECT_EQ(CountOfCpuList(""), 0);
}

TEST(CpuListTest, AnythingElseIsNoList) {
  for (const char* list : {"", ",", "-", "0-", "-3", "3-0", "0,", ",0", "0,,1", "a", "0-3 ", " 0",
                           "0-3,a", "0x1", "0-3-5", "65536", "0-99999999999999999999"}) {
    EXPECT_EQ(EndOfCpuList(list), 0) << list;
  }
}

TEST(CpuListTest, AnyTextIsSafe) {
  constexpr char kLetters[] = "0123456789-,, \n";
  std::minstd_rand random(3);
  for (int round = 0; round < 100'000; ++round) {
    std::vector<char> text(random() % 20);
    for (char& c : text) c = kLetters[random() % (sizeof(kLetters) - 1)];
    const int end = EndOfCpuList({text.data(), text.size()});
    ASSERT_GE(end, 0);
    ASSERT_LE(end, 1 << 16);
  }
}

TEST(CpuMaskTest, HasFourBitsForEachDigit) {
  EXPECT_EQ(BitsOfCpuMask("1"), 4);
  EXPECT_EQ(BitsOfCpuMask("0f"), 8);
  EXPECT_EQ(BitsOfCpuMask("f,ffffffff"), 36);
  EXPECT_EQ(BitsOfCpuMask("00000000,00000000,00000003"), 96);
  for (const char* mask : {"", ",", "f,", ",f", "f,,f", "0x3", "3 ", "g", "F"}) {
    EXPECT_EQ(BitsOfCpuMask(mask), 0) << mask;
  }
  EXPECT_EQ(BitsOfCpuMask(std::string(1 << 15, 'f')), 0) << "more than any system has";
}

}  // namespace
}  // namespace tcmalloc
