// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/vdso.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "system/system_calls.h"

namespace tcmalloc::testing {
namespace {

uint32_t GnuHash(const char* name) {
  uint32_t hash = 5381;
  for (; *name != 0; ++name) hash = (hash << 5) + hash + static_cast<unsigned char>(*name);
  return hash;
}

constexpr char kNames[] = "\0alpha\0beta\0outside\0object";
constexpr uint32_t kAlpha = 1;
constexpr uint32_t kBeta = 7;
constexpr uint32_t kOutside = 12;
constexpr uint32_t kObject = 20;
constexpr uintptr_t kVaddr = 0x7000;
constexpr size_t kEntries = 5;

// An image with two functions, one that is defined elsewhere, and an object.
struct Image {
  Elf64_Ehdr header = {};
  Elf64_Phdr segments[3] = {};
  Elf64_Dyn dynamic[5] = {};
  Elf64_Sym symbols[kEntries] = {};
  uint32_t hash[2] = {0, kEntries};
  // One bucket, which begins with the first symbol; a filter of one word.
  struct {
    uint32_t bucket_count = 1;
    uint32_t first = 1;
    uint32_t filter_words = 1;
    uint32_t shift = 0;
    uint32_t filter[2] = {};
    uint32_t bucket = 1;
    uint32_t hashes[kEntries - 1] = {};
  } gnu_hash;
  char names[sizeof(kNames)] = {};

  Image() {
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_phoff = offsetof(Image, segments);
    header.e_phnum = 3;
    segments[0].p_type = PT_NOTE;
    segments[1].p_type = PT_LOAD;
    segments[1].p_vaddr = kVaddr;
    segments[2].p_type = PT_DYNAMIC;
    segments[2].p_vaddr = kVaddr + offsetof(Image, dynamic);
    std::memcpy(names, kNames, sizeof(kNames));
    symbols[1] = Symbol(kAlpha, STT_FUNC, 1, 0x100);
    symbols[2] = Symbol(kBeta, STT_FUNC, 1, 0x200);
    symbols[3] = Symbol(kOutside, STT_FUNC, SHN_UNDEF, 0x300);
    symbols[4] = Symbol(kObject, STT_OBJECT, 1, 0x400);
    for (size_t i = 1; i < kEntries; ++i) {
      gnu_hash.hashes[i - 1] = GnuHash(kNames + symbols[i].st_name) & ~uint32_t{1};
    }
    gnu_hash.hashes[kEntries - 2] |= 1;
    Point(0, DT_SYMTAB, offsetof(Image, symbols));
    Point(1, DT_STRTAB, offsetof(Image, names));
  }

  static Elf64_Sym Symbol(uint32_t name, unsigned char type, uint16_t section, uint64_t offset) {
    Elf64_Sym symbol = {};
    symbol.st_name = name;
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, type);
    symbol.st_shndx = section;
    symbol.st_value = kVaddr + offset;
    return symbol;
  }
  void Point(size_t entry, int64_t tag, size_t offset) {
    dynamic[entry].d_tag = tag;
    dynamic[entry].d_un.d_ptr = kVaddr + offset;
  }

  uintptr_t address() const { return reinterpret_cast<uintptr_t>(this); }
  uintptr_t Find(const char* name) const { return FindVdsoFunction(address(), name); }
};

class VdsoTest : public ::testing::TestWithParam<int64_t> {
 protected:
  VdsoTest() {
    const bool gnu = GetParam() == DT_GNU_HASH;
    image_.Point(2, GetParam(), gnu ? offsetof(Image, gnu_hash) : offsetof(Image, hash));
  }

  Image image_;
};

TEST_P(VdsoTest, FunctionsAreFound) {
  EXPECT_EQ(image_.Find("alpha"), image_.address() + 0x100);
  EXPECT_EQ(image_.Find("beta"), image_.address() + 0x200);
}

TEST_P(VdsoTest, NothingElseIs) {
  EXPECT_EQ(image_.Find("gamma"), 0u);
  EXPECT_EQ(image_.Find("alph"), 0u);
  EXPECT_EQ(image_.Find("outside"), 0u);
  EXPECT_EQ(image_.Find("object"), 0u);
}

TEST_P(VdsoTest, WhatIsNoImageHasNone) {
  image_.header.e_ident[EI_CLASS] = ELFCLASS32;
  EXPECT_EQ(image_.Find("alpha"), 0u);
  image_.header.e_ident[EI_CLASS] = ELFCLASS64;
  image_.header.e_ident[0] = 0;
  EXPECT_EQ(image_.Find("alpha"), 0u);
}

TEST_P(VdsoTest, EveryPartIsNeeded) {
  for (const size_t segment : {size_t{1}, size_t{2}}) {
    Image image = image_;
    image.segments[segment].p_type = PT_NULL;
    EXPECT_EQ(image.Find("alpha"), 0u);
  }
  for (const size_t entry : {size_t{0}, size_t{1}, size_t{2}}) {
    Image image = image_;
    image.dynamic[entry].d_tag = DT_SONAME;
    EXPECT_EQ(image.Find("alpha"), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Hashes, VdsoTest, ::testing::Values(DT_HASH, DT_GNU_HASH));

TEST(VdsoClockTest, IsTheKernels) {
  timespec before = {};
  timespec between = {};
  timespec after = {};
  ASSERT_EQ(::syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &before), 0);
  ASSERT_EQ(real_system_calls.clock_gettime(CLOCK_MONOTONIC, &between), 0);
  ASSERT_EQ(::syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &after), 0);
  const auto nanoseconds = [](timespec t) { return t.tv_sec * int64_t{1'000'000'000} + t.tv_nsec; };
  EXPECT_LE(nanoseconds(before), nanoseconds(between));
  EXPECT_LE(nanoseconds(between), nanoseconds(after));
}

TEST(VdsoClockTest, FailsAsLibcsDoes) {
  timespec time = {};
  errno = 0;
  EXPECT_EQ(real_system_calls.clock_gettime(9999, &time), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST(VdsoClockTest, IsFoundInTheRunningKernel) {
  const uintptr_t image = ::getauxval(AT_SYSINFO_EHDR);
  if (image == 0) GTEST_SKIP() << "no image is mapped here, as in an emulator";
#if defined(__x86_64__)
  EXPECT_NE(FindVdsoFunction(image, "__vdso_clock_gettime"), 0u);
#else
  EXPECT_NE(FindVdsoFunction(image, "__kernel_clock_gettime"), 0u);
#endif
}

}  // namespace
}  // namespace tcmalloc::testing
