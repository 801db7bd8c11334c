// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "profile_format/symbolizer.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

extern "C" __attribute__((noinline)) void function_of_the_symbolizer_test() { asm volatile("nop"); }

namespace named_by_the_symbolizer_test {
struct Holder {
  __attribute__((noinline)) static void Member(int) { asm volatile("nop"); }
};
}  // namespace named_by_the_symbolizer_test

namespace tcmalloc {
namespace {

std::string Describe(uintptr_t address, bool names = true) {
  Message message;
  Symbolizer(names).Describe(address, message);
  return std::string(message.view());
}

// The address behind the first byte of a function, as a call there would return to.
uintptr_t Inside(void (*function)()) { return reinterpret_cast<uintptr_t>(function) + 1; }

TEST(SymbolizerTest, NamesAFunctionOfTheProgram) {
  const std::string text = Describe(Inside(function_of_the_symbolizer_test));
  EXPECT_NE(text.find(" function_of_the_symbolizer_test+1 ("), std::string::npos) << text;
  EXPECT_NE(text.find(std::string(program_invocation_short_name) + "+0x"), std::string::npos)
      << text;
}

TEST(SymbolizerTest, NamesAMemberAsProgrammersDo) {
  const auto member = reinterpret_cast<uintptr_t>(&named_by_the_symbolizer_test::Holder::Member);
  const std::string text = Describe(member + 1);
  EXPECT_NE(text.find(" named_by_the_symbolizer_test::Holder::Member+1 ("), std::string::npos)
      << text;
}

TEST(SymbolizerTest, NamesAFunctionOfALibrary) {
  const std::string text = Describe(reinterpret_cast<uintptr_t>(&std::fwrite) + 1);
  EXPECT_NE(text.find("fwrite"), std::string::npos) << text;
}

TEST(SymbolizerTest, GivesFileAndOffsetIfNamesAreNotWanted) {
  const std::string text = Describe(Inside(function_of_the_symbolizer_test), false);
  EXPECT_EQ(text.find("function_of"), std::string::npos) << text;
  EXPECT_NE(text.find(std::string(program_invocation_short_name) + "+0x"), std::string::npos)
      << text;
}

TEST(SymbolizerTest, SaysNothingOfAddressesWithoutCode) {
  int local = 0;
  EXPECT_EQ(Describe(reinterpret_cast<uintptr_t>(&local)), "");
  EXPECT_EQ(Describe(0), "");
  EXPECT_EQ(Describe(UINTPTR_MAX), "");
}

class BrokenFileTest : public ::testing::Test {
 protected:
  BrokenFileTest() { close(mkstemp(path_)); }
  ~BrokenFileTest() override { unlink(path_); }

  void Write(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }

  char path_[32] = "/tmp/symbolizer_XXXXXX";
};

TEST_F(BrokenFileTest, FilesThatAreNoProgramsHaveNoFunctions) {
  EXPECT_FALSE(ElfFile("/absent").ok());
  EXPECT_FALSE(ElfFile("/").ok());
  EXPECT_FALSE(ElfFile(path_).ok());
  Write(std::string(1000, 'x'));
  EXPECT_FALSE(ElfFile(path_).ok());
}

TEST_F(BrokenFileTest, CutAndDamagedProgramsAreReadWithoutAFault) {
  std::ifstream own("/proc/self/exe", std::ios::binary);
  std::string whole((std::istreambuf_iterator<char>(own)), {});
  for (size_t size = 1; size < whole.size(); size = size * 3 / 2 + 1) {
    Write(whole.substr(0, size));
    const ElfFile file(path_);
    if (file.ok()) file.FindFunction(file.AddressAt(size / 2));
  }
  // The header's fields, and through them everything that it leads to.
  for (size_t i = 16; i < 64; ++i) {
    for (const char value : {'\0', '\1', '\x7f', '\xff'}) {
      std::string damaged = whole;
      damaged[i] = value;
      Write(damaged);
      const ElfFile file(path_);
      if (file.ok()) file.FindFunction(file.AddressAt(5000));
    }
  }
}

}  // namespace
}  // namespace tcmalloc
